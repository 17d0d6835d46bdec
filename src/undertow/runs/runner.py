"""One run: source → model → sinks. Reading, computing and writing overlap; nothing is lost when it ends early."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from undertow.incidents import FalseAlarms
from undertow.incidents.clock import as_datetime
from undertow.incidents.delivery import Courier, FileOutbox, channel
from undertow.incidents.rate import DEFAULT
from undertow.inputs.labels import growing
from undertow.runs.checkpoints import CheckpointFolder, RunCheckpoint, stopped
from undertow.runs.errors import STORE_ERRORS, RunError, RunInterrupted, input_failure, reason, write_failure
from undertow.runs.identity import describe, identify, other_remedies, require_same
from undertow.runs.interrupt import Interrupt
from undertow.runs.options import RunOptions, parse_keep
from undertow.runs.places import Places
from undertow.runs.progress import Progress, RunSummary, Speed
from undertow.runs.publishing import ResultSink, asked
from undertow.runs.sinks import Sinks
from undertow.runs.store.feedback import forget_feedback
from undertow.runs.store.folder import PRIVATE, holds_slices
from undertow.runs.store.growth import Growth
from undertow.runs.store.layout import EVENTS, Layout
from undertow.runs.store.manifest import (
    Manifest,
    clear,
    planned,
    read_manifest,
    remove_leftovers,
    require_free,
    write_manifest,
)
from undertow.runs.store.times import Times
from undertow.runs.workers import NothingYet, ReadAhead, WriteBehind
from undertow.sources.base import Item, Stream, StreamError
from undertow.sources.errors import left_out, shortened

_QUEUE_BYTES = 64 * 2**20  # what may wait at either end of a run
_READ_AHEAD = 8
_WRITE_BEHIND = 4
_MOST_INCIDENTS = 5  # that a summary repeats; the store holds all


class Model(Protocol):
    """What a run asks of a model; `undertow.Tracker` and `undertow.RobustCP` are such."""

    def update(self, x: Any) -> Any:
        """Learn from a slice; returns what `undertow.Tracker.update` returns."""

    def to_bytes(self) -> bytes:
        """The state, to be read back by what `run` is given as ``load``."""


class Runner:
    """One run: what it was asked to do, and how far it has got.

    Three threads share the work: one reads ahead, the caller's updates the model, one fetches results and writes them.
    Progress is made from what the writing thread has fetched and reported in the caller's thread, a few slices later.

    Args:
        stream: the source.
        model: learns every slice.
        folder: the store.
        options: what to write, and when to stop.
        interrupt: Ctrl-C, SIGTERM and SIGHUP.
        progress: called with a `Progress` for every slice written.
        notify: called with sentences that a user should see.
        learned: called with every slice and its result.
    """

    def __init__(
        self,
        stream: Stream,
        model: Model,
        folder: Path,
        options: RunOptions,
        interrupt: Interrupt,
        progress: Callable[[Progress], None] | None = None,
        notify: Callable[[str], None] | None = None,
        learned: Callable[[Item, Any], None] | None = None,
    ) -> None:
        self._stream, self._model, self._folder, self._options = stream, model, folder, options
        self._interrupt, self._progress, self._notify, self._learned = interrupt, progress, notify, learned
        self._private = folder / PRIVATE
        self._sinks: Sinks | None = None
        self._times: Times | None = None
        self._identity: dict[str, Any] = {}
        self._slices = self._first = self._checkpointed = 0
        self._places: Places | None = None
        self._has_retired = False
        self._checkpoint_time = time.monotonic()
        self._position: dict[str, Any] | None = None
        self._complete = False
        self._failure: RunError | None = None
        self._callback_error: Exception | None = None
        self._written: deque[Progress] = deque()
        self._speed = Speed()
        self._notices: list[str] = []
        self._source_notices = 0
        self._skipped: list[str] = []
        self._courier: Courier | None = None

    def prepare(self, load: Callable[[bytes], Model] | None) -> None:
        """Resume from the newest checkpoint, or clear the folder for a new run; ``load`` reads the model back."""
        remove_leftovers(self._folder)
        checkpoint = CheckpointFolder(self._private).newest(self._tell) if self._options.resume else None
        if checkpoint is not None:
            self._resume(checkpoint, load)
        elif self._options.resume and holds_slices(self._folder):
            raise RunError(
                f"{self._folder} holds results but no checkpoint to resume from: start again with --overwrite, "
                "or name another store with --store"
            )
        else:
            layout = self._options.layout(self._stream, Times("index"))  # of whatever kind, the names are the same
            clear(self._folder, self._planned(layout))
            FileOutbox.remove(self._private)
            forget_feedback(self._private)

    def run(self) -> RunSummary:
        """Update the model until the stream ends, the limit is reached, an interrupt comes or something fails."""
        started = time.monotonic()
        size, position = 8 * math.prod(self._stream.shape), self._position
        reader = ReadAhead(lambda: self._stream.slices(position), _queue_length(size, _READ_AHEAD))
        writer = WriteBehind(_queue_length(5 * size, _WRITE_BEHIND))
        try:
            self._update_all(reader, writer)
            if self._sinks is not None:
                self._checkpoint(writer)
            writer.stop()
            writer.check()
            self._report_end()
        except Exception as error:
            if error is self._callback_error or not (error is writer.error or isinstance(error, STORE_ERRORS)):
                raise
            raise write_failure(error, 0 if self._sinks is None else self._sinks.safe, self._folder) from error
        finally:
            reader.stop()
            writer.stop()
            if self._sinks is not None:
                self._sinks.close()
            if self._courier is not None:
                for sentence in self._courier.close():
                    self._tell(sentence)
        self._raise_early_end()
        return self._summary(time.monotonic() - started)

    def _resume(self, checkpoint: RunCheckpoint, load: Callable[[bytes], Model] | None) -> None:
        self._options = _as_begun(self._options, checkpoint.identity)
        times = self._times = Times(checkpoint.identity["layout"]["times"])
        layout = self._options.layout(self._stream, times, checkpoint.identity["layout"])
        self._identity = identify(self._stream, self._model, self._options, layout)
        former = getattr(self._stream, "former_fingerprints", ())
        require_same(checkpoint.identity, self._identity, self._folder, former)
        notice = other_remedies(checkpoint.identity, self._identity)
        if notice:
            self._tell(notice)
        if checkpoint.model:
            if load is None:
                from undertow.estimator import from_bytes  # not before it is needed: it brings jax

                load = from_bytes
            self._model = load(checkpoint.model)
        self._slices = self._first = self._checkpointed = checkpoint.slices
        self._position = self._restarted(checkpoint.position) if self._options.new_data else checkpoint.position
        write_manifest(self._folder, self._planned(layout))
        growth = Growth.read(checkpoint.attributes, layout.shape)
        self._places = Places(growth.shape, self._stream.labels)
        if checkpoint.places:
            self._places.restore(checkpoint.places)
        self._sinks = self._made_sinks(layout, growth)
        self._sinks.prepare(checkpoint.slices, checkpoint.marks, checkpoint.attributes, checkpoint.incidents)

    def _planned(self, layout: Layout) -> Manifest:
        return planned(layout, self._options.alerts, self._options.false_alarms is not None)

    def _made_sinks(self, layout: Layout, growth: Growth) -> Sinks:
        """With someone who delivers incidents, where that was asked for."""
        if self._options.deliver:
            channels = [channel(address) for address in self._options.deliver]
            outbox = FileOutbox(self._private, [one.name for one in channels])
            self._courier = Courier(outbox, channels, self._stream.name, self._stream.fingerprint)
        published, address = None, self._options.publish
        if address is not None:
            keep = parse_keep(asked(address))
            published = ResultSink(address, keep, self._stream.name, self._stream.fingerprint)
        return Sinks(self._folder, layout, self._options, self._courier, published, growth)

    def _restarted(self, position: dict[str, Any] | None) -> dict[str, Any] | None:
        """The beginning of a pipe that brings nothing but new slices."""
        if position is None:
            return None
        if not hasattr(self._stream, "restarted"):
            raise RunError(f"new_data is for pipes, got {self._stream.name}: leave it out")
        try:
            restarted: dict[str, Any] = self._stream.restarted(position)
        except StreamError as error:
            raise RunError(str(error)) from error
        return restarted

    def _start_store(self, item: Item) -> Sinks:
        """An empty store, made for the first slice: the type of its time is that of all."""
        times = self._times = Times.like(item.time)
        layout = self._options.layout(self._stream, times, predictors=getattr(self._model, "predictors", ()))
        self._identity = identify(self._stream, self._model, self._options, layout)
        wanted = self._planned(layout)
        require_free(self._folder, read_manifest(self._folder) or {}, wanted)
        write_manifest(self._folder, wanted)
        growth = Growth.of(item.values.shape)
        sinks = self._made_sinks(layout, growth)
        described = describe(self._stream, self._model, self._options, self._identity)
        sinks.prepare(0, {}, described | (growth.written() if layout.to_come else {}))
        # From now on there is always a checkpoint: results without one were not written by a run, and stay.
        sinks.checkpoint(RunCheckpoint(0, None, self._identity))
        return sinks

    def _update_all(self, reader: ReadAhead, writer: WriteBehind) -> None:
        limit = math.inf if self._options.limit is None else self._options.limit
        while not self._interrupt.requested and self._slices < limit:
            try:
                item = reader.next()
            except NothingYet:
                writer.check()
                self._checkpoint_if_due(writer)  # a source that waits for more must not put what it gave at risk
                self._report()
                continue
            except Exception as error:
                self._failure = input_failure(f"reading {self._stream.name} failed", error, self._slices, self._folder)
                return
            if item is None:
                self._complete = True
                return
            try:
                self._check_time(item)
                result = self._learn(item, writer)
            except Exception as error:
                if self._options.on_bad == "skip" and isinstance(error, (ValueError, TypeError)):
                    self._skipped.append(reason(error).partition(": ")[0])
                    continue
                what = f"slice {self._slices} of {self._stream.name} was refused"
                self._failure = input_failure(what, error, self._slices, self._folder)
                return
            self._call(self._learned, item, result)
            self._hand_over(item, result, writer)
            self._checkpoint_if_due(writer)
            self._report()

    def _learn(self, item: Item, writer: WriteBehind) -> Any:
        """The model's result, with room for labels that have come and without those that were silent for long."""
        if self._places is None or not self._slices:
            self._places = Places(item.values.shape, self._stream.labels)
        for mode, slots in self._places.retire(self._model, self._slices):
            if self._sinks is not None:
                writer.do(partial(self._sinks.forget, mode, slots))
            if not self._has_retired:
                self._has_retired = True
                labels = shortened([str((self._stream.labels[mode] or ())[slot]) for slot in slots])
                self._tell(
                    f"{self._stream.dims[mode]} {labels}: not observed in {growing.SILENT} slices, so nothing is said "
                    f"of it from slice {self._slices} on until it comes back; others in the same way"
                )
        return self._places.learn(self._model, item.values, item.time, self._slices)

    def _check_time(self, item: Item) -> None:
        """Refuse a time that the store cannot hold before the model learns the slice."""
        (self._times or Times.like(item.time)).stored(item.time, self._slices)
        asked = self._options.false_alarms
        if asked is not None and self._options.slice_seconds is None and as_datetime(item.time) is None:
            rate = FalseAlarms.parse(asked)
            if rate.kind == "time":
                rate.per_slice(None)  # says what is missing

    def _hand_over(self, item: Item, result: Any, writer: WriteBehind) -> None:
        """Nothing of the result is looked at here: that would wait for the device and stop the overlap."""
        if self._sinks is None:
            self._sinks = self._start_store(item)
        self._slices, self._position = self._slices + 1, item.position
        writer.do(partial(self._write, self._sinks, self._slices, item, result))

    def _write(self, sinks: Sinks, slices: int, item: Item, result: Any) -> None:
        """In the writing thread."""
        sinks.add(item, result)
        if self._progress is not None:
            figures = {name: sinks.last[name] for name in ("rank", "noise_std", "outlier_rate")}
            events = sinks.last.get(EVENTS, "")
            self._written.append(
                Progress(slices, self._length(), self._speed.tick(), **figures, safe=sinks.safe, events=events)
            )

    def _length(self) -> int | None:
        known = [length for length in (self._stream.length, self._options.limit) if length is not None]
        return min(known, default=None)

    def _checkpoint_if_due(self, writer: WriteBehind) -> None:
        if self._slices == self._checkpointed:
            return
        every = self._options.checkpoint_every
        counted = every is not None and self._slices % every == 0
        if counted or time.monotonic() - self._checkpoint_time >= self._options.checkpoint_seconds:
            self._checkpoint(writer)

    def _checkpoint(self, writer: WriteBehind) -> None:
        """Take the model as it is now; the writer adds how far it has got, once it gets there."""
        assert self._sinks is not None
        model = self._model.to_bytes() if self._slices else b""
        places = self._places.to_bytes() if self._places is not None else b""
        checkpoint = RunCheckpoint(self._slices, self._position, self._identity, model=model, places=places)
        writer.do(partial(self._sinks.checkpoint, checkpoint))
        if hasattr(self._stream, "done"):  # of a broker, which must not let go of anything before
            writer.do(partial(self._stream.done, self._position))
        self._checkpointed, self._checkpoint_time = self._slices, time.monotonic()

    def _report(self) -> None:
        """Pass on what the writer has done and what the source has noticed since the last call."""
        while self._written:
            self._call(self._progress, self._written.popleft())
        notices = list(self._stream.notices)
        for sentence in notices[self._source_notices :]:
            self._tell(sentence)
        self._source_notices = len(notices)
        if self._sinks is not None:
            while self._sinks.notices:
                self._tell(self._sinks.notices.popleft())

    def _report_end(self) -> None:
        """Sentences with counts were said when they began to apply; now they hold for the whole run."""
        self._report()
        for sentence in self._stream.notices:
            if sentence not in self._notices:
                self._tell(sentence)
        if self._skipped:
            self._tell(left_out("slice", len(self._skipped), self._stream.name, self._skipped[0]))

    def _tell(self, sentence: str) -> None:
        self._notices.append(sentence)
        self._call(self._notify, sentence)

    def _call(self, callback: Callable[..., None] | None, *arguments: Any) -> None:
        if callback is not None:
            try:
                callback(*arguments)
            except Exception as error:
                self._callback_error = error
                raise

    def _raise_early_end(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._interrupt.requested:  # after the last slice too: whoever called this was to stop as well
            raise RunInterrupted(stopped(self._folder))
        if self._slices == 0:
            raise RunError(f"{self._stream.name} holds no slices: there is nothing to do")

    def _summary(self, seconds: float) -> RunSummary:
        assert self._sinks is not None
        asked = self._options.false_alarms
        return RunSummary(
            store=self._folder,
            slices=self._slices,
            new_slices=self._slices - self._first,
            complete=self._complete,
            alerts=self._sinks.alerts,
            rank=self._sinks.last.get("rank"),
            noise_std=self._sinks.last.get("noise_std"),
            flags=dict(self._sinks.flags),
            events=tuple(map(str, self._sinks.noticed.events)),
            incidents=len(self._sinks.incidents),
            open_incidents=self._sinks.open_incidents,
            false_alarms=None if asked is None else FalseAlarms.parse(asked).text,
            believed_after=getattr(self._model, "believed_after", None),
            newest_incidents=tuple(
                one.said(getattr(self._stream, "time_zone", None) is not None)
                for one in list(self._sinks.incidents.values())[-_MOST_INCIDENTS:]
            ),
            notices=tuple(self._notices),
            seconds=seconds,
        )


def _as_begun(options: RunOptions, identity: dict[str, Any]) -> RunOptions:
    """Where nothing was said about false alarms, as the store was begun; earlier versions kept no incidents."""
    if options.false_alarms != DEFAULT:
        return options
    return replace(
        options,
        false_alarms=identity.get("false_alarms"),
        slice_seconds=options.slice_seconds or identity.get("slice_seconds"),
    )


def _queue_length(slice_bytes: int, most: int) -> int:
    return max(1, min(most, _QUEUE_BYTES // max(slice_bytes, 1)))
