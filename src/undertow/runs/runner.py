"""THE loop: source → step → sinks. Reading, computing and writing overlap; nothing is lost when it ends early."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from undertow.runs.checkpoints import Snapshot, Snapshots, loaded, saved
from undertow.runs.errors import RunError, RunInterrupted, room_is_gone
from undertow.runs.identity import Output, describe, identify, refuse_another
from undertow.runs.interrupt import Interrupt
from undertow.runs.progress import Progress, RunSummary, Speed
from undertow.runs.sinks import Sinks
from undertow.runs.store.files import StoreError, remove_leftovers
from undertow.runs.store.folder import PRIVATE, clear, holds_slices
from undertow.runs.store.times import Times
from undertow.runs.workers import NothingYet, Reader, Writer
from undertow.serialization.container import CheckpointError
from undertow.sources.base import Item, Stream

_QUEUE_BYTES = 64 * 2**20  # what may wait at either end of the loop
_READ_AHEAD = 8
_WRITE_BEHIND = 4


class Model(Protocol):
    """What the loop asks of a model; `undertow.RobustCP` is one."""

    def update(self, x: Any) -> Any:
        """Learn from a slice and say what it holds, as `undertow.StepResult` does."""

    def save(self, path: Path) -> None:
        """Write the state to one file."""


class Loop:
    """One run: what it was asked to do, and how far it has got."""

    def __init__(self, stream: Stream, model: Model, folder: Path, output: Output, interrupt: Interrupt) -> None:
        self.stream, self.model, self.folder, self.output, self.interrupt = stream, model, folder, output, interrupt
        self.checkpoint_seconds = math.inf
        self.limit: int | None = None
        self.progress: Callable[[Progress], None] | None = None
        self.tell: Callable[[str], None] | None = None
        self.private = folder / PRIVATE
        self.sinks: Sinks | None = None
        self.identity: dict[str, Any] = {}
        self.slices = self.first = 0
        self.position: dict[str, Any] | None = None
        self.last: Any = None
        self.notices: list[str] = []
        self._checkpointed, self._moment = 0, time.monotonic()
        self._heard = 0

    # Beginning

    def begin(self, resume: bool, load: Callable[[Path], Model] | None) -> None:
        """Go on from the newest checkpoint, or start with nothing."""
        remove_leftovers(self.folder)
        snapshot = Snapshots(self.private).newest(self.say) if resume else None
        if snapshot is None:
            if resume and holds_slices(self.folder):
                raise RunError(
                    f"{self.folder} holds results but no checkpoint to go on from: start again with --overwrite, "
                    "or name another store with --store"
                )
            clear(self.folder)
            return
        times = Times(snapshot.identity["layout"]["times"])
        self.identity = identify(self.stream, self.model, self.output, times)
        refuse_another(snapshot.identity, self.identity, self.folder)
        if snapshot.model:
            if load is None:
                from undertow.estimator import load as load_model

                load = load_model
            self.model = loaded(snapshot.model, self.private, load)
        self.slices = self.first = self._checkpointed = snapshot.slices
        self.position = snapshot.position
        self.sinks = self.open_sinks(times)
        self.sinks.prepare(snapshot.slices, snapshot.marks, snapshot.attributes)

    def start_store(self, item: Item) -> Sinks:
        """An empty store, made for the first slice: the type of its time is that of all."""
        times = Times.like(item.time)
        self.identity = identify(self.stream, self.model, self.output, times)
        sinks = self.open_sinks(times)
        sinks.prepare(0, {}, describe(self.stream, self.model, self.output, self.identity))
        # From now on there is always a checkpoint: results without one are not ours to throw away.
        sinks.checkpoint(Snapshot(0, None, self.identity))
        return sinks

    def open_sinks(self, times: Times) -> Sinks:
        """The store and the alerts, not yet prepared."""
        layout = self.output.layout(self.stream, times)
        return Sinks(self.folder, layout, self.output.alerts, self.output.threshold)

    # The way of the slices

    def go(self) -> RunSummary:
        """Until the stream ends, `limit` is reached, someone asks to stop, or something breaks."""
        begun = time.monotonic()
        size = 8 * math.prod(self.stream.shape)
        position = self.position
        reader = Reader(lambda: self.stream.slices(position), _fitting(size, _READ_AHEAD))
        writer = Writer(_fitting(5 * size, _WRITE_BEHIND))
        speed = Speed()
        trouble: RunError | None = None
        complete = False
        try:
            while not self.interrupt.asked and (self.limit is None or self.slices < self.limit):
                try:
                    item = reader.next()
                except NothingYet:
                    writer.check()
                    self.checkpoint_if_due(writer)  # a source that waits for more must not keep what it gave at risk
                    continue
                except Exception as error:
                    trouble = self.broken(f"reading {self.stream.name} failed", error)
                    break
                if item is None:
                    complete = True
                    break
                try:
                    result = self.model.update(item.values)
                except Exception as error:
                    trouble = self.broken(f"slice {self.slices} of {self.stream.name} was refused", error)
                    break
                if self.sinks is None:
                    self.sinks = self.start_store(item)
                writer.do(partial(self.sinks.add, item, result))
                self.slices, self.position, self.last = self.slices + 1, item.position, result
                self.checkpoint_if_due(writer)
                self.report(item, speed.tick())
                self.hear()
            self.hear()
            if self.sinks is not None:
                self.checkpoint(writer, alone=complete or self.slices == self.limit)
            writer.finish()
        except Exception as error:
            if error is writer.error or isinstance(error, (OSError, StoreError, CheckpointError)):
                raise self.cannot_write(error) from error
            raise  # from whoever watches
        finally:
            reader.stop()
            writer.stop()
            if self.sinks is not None:
                self.sinks.close()
        if trouble is not None:
            raise trouble
        if self.interrupt.asked and not complete:
            raise RunInterrupted(
                f"stopped after {self.slices} slices, all of them in {self.folder}: go on with --resume"
                if self.slices
                else "stopped before the first slice was done"
            )
        if self.slices == 0:
            raise RunError(f"{self.stream.name} holds no slices: there is nothing to do")
        return self.summary(complete, time.monotonic() - begun)

    def checkpoint_if_due(self, writer: Writer) -> None:
        """After so many slices, or so many seconds, if there is anything new."""
        if self.slices == self._checkpointed:
            return
        counted = self.output.checkpoint_every is not None and self.slices % self.output.checkpoint_every == 0
        if counted or time.monotonic() - self._moment >= self.checkpoint_seconds:
            self.checkpoint(writer)

    def checkpoint(self, writer: Writer, *, alone: bool = False) -> None:
        """Take the model as it is now; the writer adds how far it has got, once it gets there."""
        assert self.sinks is not None
        state = saved(self.model, self.private) if self.slices else b""
        snapshot = Snapshot(self.slices, self.position, self.identity, model=state)
        writer.do(partial(self.sinks.checkpoint, snapshot, alone=alone))
        self._checkpointed, self._moment = self.slices, time.monotonic()

    # What is told

    def report(self, item: Item, speed: float) -> None:
        """To whoever watches."""
        if self.progress is None or self.sinks is None:
            return
        result = self.last
        seen = int(np.count_nonzero(~np.isnan(item.values)))
        flagged = int(np.count_nonzero(result.outlier_probability >= self.output.threshold))
        rate = flagged / max(seen, 1)
        length = self.stream.length
        if self.limit is not None:
            length = self.limit if length is None else min(self.limit, length)
        self.progress(
            Progress(self.slices, length, speed, int(result.rank), float(result.noise_std), rate, self.sinks.safe)
        )

    def hear(self) -> None:
        """Pass on what the source has noticed since."""
        heard = list(getattr(self.stream, "notices", ()))
        for sentence in heard[self._heard :]:
            self.say(sentence)
        self._heard = len(heard)

    def say(self, sentence: str) -> None:
        """Something the user should see."""
        self.notices.append(sentence)
        if self.tell is not None:
            self.tell(sentence)

    def broken(self, what: str, error: Exception) -> RunError:
        """Trouble at the source or in the model: what was done before it is kept."""
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        kept = f"; the {self.slices} slices before it are in {self.folder}, go on with --resume" if self.slices else ""
        problem = RunError(f"{what} ({reason}){kept}")
        problem.__cause__ = error
        return problem

    def cannot_write(self, error: Exception) -> RunError:
        """Trouble at the store: what the last checkpoint covers is kept."""
        safe = 0 if self.sinks is None else self.sinks.safe
        kept = f"{safe} slices are safe in it, go on with --resume" if safe else "nothing had been kept yet"
        if room_is_gone(error):
            return RunError(f"there is no room left for {self.folder}: {kept} once there is room")
        reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
        return RunError(f"{self.folder} cannot be written ({reason}): {kept}")

    def summary(self, complete: bool, seconds: float) -> RunSummary:
        """How it went."""
        assert self.sinks is not None
        return RunSummary(
            store=self.folder,
            slices=self.slices,
            new_slices=self.slices - self.first,
            complete=complete,
            alerts=self.sinks.alerts,
            rank=None if self.last is None else int(self.last.rank),
            noise_std=None if self.last is None else float(self.last.noise_std),
            troubles=dict(self.sinks.troubles),
            notices=tuple(self.notices),
            seconds=seconds,
        )


def _fitting(size: int, most: int) -> int:
    return max(1, min(most, _QUEUE_BYTES // max(size, 1)))
