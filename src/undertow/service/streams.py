"""All streams of a service: accepts slices, in order and once, and asks for what was found."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import Change
from undertow.incidents.delivery import Courier
from undertow.inputs.labels import growing
from undertow.service import times
from undertow.service.bodies import Given
from undertow.service.errors import Busy, Conflict, Full, Invalid, NotFound, Unavailable
from undertow.service.hosted import Hosted, Models, Outcome, array_bytes
from undertow.service.inference import Inference, Job
from undertow.service.live import Hub
from undertow.service.metrics import Metrics
from undertow.service.settings import Limits
from undertow.service.spec import Spec
from undertow.service.store.base import Described, Feedback, LoggedSlice, Store, Stored, Write
from undertow.service.writer import Writer


@dataclass(eq=False)
class Stream:
    """What the service knows of a stream without its model.

    Attributes:
        key: Of the store.
        name: What clients call it.
        spec: Shape and labels.
        next: Sequence number of the next slice.
        feedback: Number of the next feedback.
        last: Done when everything that was accepted is on the disk.
        lock: Held while slices are given their numbers.
        heard: For each mode the newest slice in which a row was observed; none before a slice whose rows are named.
    """

    key: int
    name: str
    spec: Spec
    next: int = 0
    feedback: int = 0
    last: Future[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    heard: list[NDArray[np.int64]] = field(default_factory=list)

    def hear(self, sequence: int, values: NDArray[Any]) -> None:
        """A slice whose rows were named."""
        if not self.heard:  # also after a restart: nobody is silent before that time has passed again
            self.heard = [np.full(size, sequence) for size in values.shape]
        added = [np.full(size - len(last), sequence) for size, last in zip(values.shape, self.heard, strict=True)]
        self.heard = [np.concatenate(both) for both in zip(self.heard, added, strict=True)]
        seen, modes = ~np.isnan(values), range(values.ndim)
        for mode, last in enumerate(self.heard):
            last[seen.any(axis=tuple(other for other in modes if other != mode))] = sequence

    def silent(self) -> list[list[int]]:
        """Rows with a label that were not observed for long, for each mode."""
        pairs = zip(self.heard, self.spec.labels, strict=True)
        old = [(self.next - last > growing.SILENT, labels or ()) for last, labels in pairs]
        return [[n for n, label in enumerate(labels) if label is not None and gone[n]] for gone, labels in old]


@dataclass(frozen=True)
class Accepted:
    """A slice that will survive; what came of it, where that was waited for (else None)."""

    sequence: int
    time: str | None
    duplicate: bool
    outcome: Outcome | None = None


class Streams:
    """Everything between the requests and the two threads that write and compute.

    Attributes:
        fed: Names of the streams that take slices from a broker alone.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        limits: Limits,
        hub: Hub,
        metrics: Metrics,
        failed: Callable[[], None],
        courier: Courier | None = None,
    ) -> None:
        self.courier, self.fed = courier, frozenset[str]()
        self.store, self.limits, self.hub, self.metrics = store, limits, hub, metrics
        self.writer = Writer(store, failed)
        self.inference = Inference(store, self.writer, models, limits, self)
        self._streams: dict[str, Stream] = {}
        self._names: dict[int, str] = {}
        self._creating = asyncio.Lock()
        self._waiting = self._waiting_bytes = 0
        self._loop = asyncio.get_running_loop()
        for stored in store.streams():
            self._add(stored)
        self.inference.start()
        for name, text, value in (
            ("streams", "Streams that there are.", lambda: len(self._streams)),
            ("streams_resident", "Streams whose models are in memory.", lambda: self.inference.resident),
            ("queue_slices", "Slices that wait.", lambda: self._waiting),
            ("queue_bytes", "Bytes that wait.", lambda: self._waiting_bytes),
            ("pages", "Pages that watch.", lambda: hub.pages),
            ("commits", "Transactions so far.", lambda: self.writer.commits),
        ):
            metrics.watch(name, text, value)

    def _add(self, stored: Stored) -> Stream:
        spec = Spec.from_json(stored.spec)
        stream = Stream(stored.key, stored.name, spec, stored.next, stored.feedback)
        self._streams[stored.name], self._names[stored.key] = stream, stored.name
        self.inference.add(stored.key, spec, stored.next, behind=stored.behind)
        return stream

    def all(self) -> list[Stream]:
        """By name."""
        return [self._streams[name] for name in sorted(self._streams)]

    def get(self, name: str) -> Stream:
        """A stream.

        Raises:
            NotFound: There is none.
        """
        if name not in self._streams:
            raise NotFound(f"there is no stream {name!r:.80}: create it with PUT")
        return self._streams[name]

    async def create(self, name: str, spec: Spec) -> tuple[Stream, bool]:
        """A stream, and whether it is new; to ask twice for the same is no error."""
        async with self._creating:
            if (found := self._streams.get(name)) is not None:
                if not found.spec.is_of(spec):
                    raise Conflict(f"stream {name} exists with other settings: delete it first, or use another name")
                return found, False
            if len(self._streams) >= self.limits.streams:
                raise Conflict(f"there are {self.limits.streams} streams already: delete one first")
            stored = await asyncio.to_thread(self.store.create, name, spec.to_json())
            return self._add(stored), True

    async def delete(self, name: str) -> None:
        """A stream and everything that belongs to it."""
        stream = self.get(name)
        async with self._creating, stream.lock:
            if self._streams.pop(name, None) is None:
                raise NotFound(f"there is no stream {name!r:.80}: it was deleted")
            self.inference.remove(stream.key)
            del self._names[stream.key]
            await asyncio.to_thread(self.store.delete, stream.key)
            self.hub.forget(name)
            self.metrics.forget(name)

    async def push(self, stream: Stream, given: Sequence[Given], *, wait: bool) -> list[Accepted]:
        """Accept slices; returns when they will survive a power cut, and with ``wait`` when they are learned.

        Raises:
            Conflict: A sequence number is not the next one.
            Busy: Too much is waiting.
            Unavailable: Nothing can be written.
        """
        async with stream.lock:
            if self._streams.get(stream.name) is not stream:
                raise NotFound(f"there is no stream {stream.name!r}: it was deleted")
            first = _numbered(stream, given)
            fresh = [one for number, one in enumerate(given) if first + number >= stream.next]
            repeated = len(given) - len(fresh)
            try:
                spec, placed = _placed(stream.spec, fresh)
            except Full:
                await self._retire(stream)
                spec, placed = _placed(stream.spec, fresh, stream.next, self.limits.entries)
            self._make_room(placed)
            for number, (before, one) in enumerate(zip(fresh, placed, strict=True), stream.next):
                if before.labels is not None:
                    stream.hear(number, one.values)
            fresh = placed
            jobs = self._log(stream, spec, fresh) if fresh else []
            durable = stream.last
        if durable is not None:
            await asyncio.wrap_future(durable)
        earlier = [await self._again(stream, first + number, wait=wait) for number in range(repeated)]
        outcomes = [await _result(job.done) for job in jobs] if wait else [None] * len(jobs)
        return earlier + [
            Accepted(job.sequence, job.time, False, outcome) for job, outcome in zip(jobs, outcomes, strict=True)
        ]

    async def _retire(self, stream: Stream) -> None:
        """Free the places of labels that were silent for long.

        With a checkpoint, so that no slice of the log from before is ever learned by who stands there afterwards.
        """
        silent = stream.silent() if stream.heard else []
        if not any(silent):
            return
        spec = stream.spec.without(silent)

        def forgotten(hosted: Hosted) -> Write:
            hosted.forget(silent, spec)
            return self.inference.checkpoint(hosted)

        checkpoint = await self.ask(stream, forgotten)
        stream.spec = spec
        self.inference.describe(stream.key, spec)
        stream.last = self.writer.durable([Described(stream.key, spec.to_json()), checkpoint])
        await asyncio.wrap_future(stream.last)

    def _log(self, stream: Stream, spec: Spec, fresh: Sequence[Given]) -> list[Job]:
        """Give the slices their numbers, and their stream its labels; they are learned once they are on the disk."""
        numbered = list(enumerate(fresh, stream.next))
        jobs = [Job(Future(), number, one.time or times.now(), one.values) for number, one in numbered]
        for job in jobs:
            job.done.add_done_callback(partial(self._released, _size(job.values)))
        writes: list[Write] = [
            LoggedSlice(stream.key, job.sequence, job.time, array_bytes(job.values))  # type: ignore[arg-type]
            for job in jobs
        ]
        named = [Job(Future(), call=lambda hosted: hosted.rename(spec))] if spec != stream.spec else []
        if named:
            writes.insert(0, Described(stream.key, spec.to_json()))
        stream.next, stream.spec = stream.next + len(jobs), spec
        stream.last = self.writer.durable(writes)
        stream.last.add_done_callback(lambda done: self._logged(stream, [*named, *jobs], done))
        return jobs

    def _logged(self, stream: Stream, jobs: Iterable[Job], done: Future[None]) -> None:
        """In the writing thread, which keeps the order."""
        for job in jobs:
            if done.exception() is None:
                self.inference.describe(stream.key, stream.spec)
                self.inference.submit(stream.key, job)
            else:
                job.done.cancel()

    async def _again(self, stream: Stream, sequence: int, *, wait: bool) -> Accepted:
        """A slice that came a second time: what was found the first time, if it is still kept."""
        if not wait:
            return Accepted(sequence, None, True)
        await self.readable(stream)
        kept = await asyncio.to_thread(self.store.kept, stream.key, sequence)
        if kept is None:
            return Accepted(sequence, None, True)
        return Accepted(sequence, kept.time, True, Outcome(sequence, kept.time, json.loads(kept.numbers), kept.body))

    async def readable(self, stream: Stream) -> None:
        """Until everything that was accepted is learned and can be read from the store."""
        await self.ask(stream, lambda _: None)
        await asyncio.wrap_future(self.writer.durable([]))

    def read_all(self) -> None:
        """Until what was acknowledged to clients can be read: results reach the store a moment after the answer."""
        with contextlib.suppress(Unavailable):  # what cannot be written will not be read either
            self.writer.caught_up().result()

    async def ask(self, stream: Stream, question: Callable[[Hosted], Any]) -> Any:
        """Anything about the stream's model, after all slices that were accepted."""
        if stream.last is not None:
            await asyncio.wrap_future(stream.last)
        job = Job(Future(), call=question)
        self.inference.submit(stream.key, job)
        return await _result(job.done)

    async def feedback(self, stream: Stream, incident: int, false_alarm: bool) -> tuple[Change, ...]:
        """What a user says about an incident; returns when that is kept."""
        known = await self.ask(stream, lambda hosted: {*hosted.incidents.open, *hosted.incidents.recent})
        if incident not in {one.id for one in known}:
            raise NotFound(f"incident {incident} of {stream.name} is not among the open and recent ones")
        async with stream.lock:
            said = Feedback(stream.key, stream.feedback, stream.next, incident, false_alarm)
            stream.feedback += 1
            job = Job(Future(), said=said)
            stream.last = self.writer.durable([said])
            stream.last.add_done_callback(lambda done: self._logged(stream, [job], done))
        await asyncio.wrap_future(stream.last)
        changes: tuple[Change, ...] = await _result(job.done)
        return changes

    def slice_done(self, key: int, outcome: Outcome, seconds: float) -> None:
        """In the inference thread."""
        name = self._names.get(key)
        if name is not None and outcome.error is None:
            self.metrics.slice_done(name, outcome, seconds)
            self.hub.publish(name, outcome)

    def incidents_changed(self, key: int, changes: tuple[Change, ...]) -> None:
        """In the inference thread."""
        if (name := self._names.get(key)) is not None:
            self.hub.incidents_changed(name)
            for change in changes:
                if self.courier is not None and change.what != "updated":
                    self.courier.put(change, name, str(key))

    def stop(self) -> None:
        """Learn what waits, save everything, end both threads."""
        self.inference.stop()
        self.writer.stop()

    def _make_room(self, fresh: Sequence[Given]) -> None:
        size = sum(_size(one.values) for one in fresh)
        too_many = self._waiting and self._waiting + len(fresh) > self.limits.waiting
        if too_many or (self._waiting and self._waiting_bytes + size > self.limits.waiting_bytes):
            after = min(60, max(1, math.ceil(self._waiting * self.inference.seconds / 2)))
            raise Busy(f"{self._waiting} slices are waiting: try again in {after} s", after)
        self._waiting += len(fresh)
        self._waiting_bytes += size

    def _release(self, size: int) -> None:
        self._waiting -= 1
        self._waiting_bytes -= size

    def _released(self, size: int, _: Future[Any]) -> None:
        """In whichever thread it was done."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._release, size)


def _placed(
    spec: Spec, given: Sequence[Given], sequence: int = 0, entries: int | None = None
) -> tuple[Spec, list[Given]]:
    """Slices with all rows, and what the stream is with the labels that come with them.

    Args:
        spec: Of the stream.
        given: The slices.
        sequence: Of the first of them.
        entries: That slices may grow to; None to have no more rows than there are.

    Raises:
        Full: A label finds no place.
    """
    named = [one.labels for one in given if one.labels is not None]
    if entries is not None and named:  # of all together: slices of one request have one shape
        modes = zip(*named, strict=True)
        together = [tuple(dict.fromkeys(label for one in mode for label in one or ())) or None for mode in modes]
        spec = spec.with_room(together, sequence, entries)
    found = []
    for one in given:
        if one.labels is not None:
            spec, values = spec.placed(one.values, one.labels)
            one = replace(one, values=values, labels=None)
        found.append(replace(one, values=spec.whole(one.values)))
    return spec, found


def _numbered(stream: Stream, given: Sequence[Given]) -> int:
    """The sequence number of the first slice; those of a request are consecutive.

    Raises:
        Invalid: They are not.
        Conflict: Slices between the newest and these are missing.
    """
    first = next((one.sequence - number for number, one in enumerate(given) if one.sequence is not None), stream.next)
    for number, one in enumerate(given):
        if one.sequence is not None and one.sequence != first + number:
            raise Invalid(
                f"sequence numbers must follow one another, got {one.sequence} where {first + number} follows"
            )
    if first < 0:
        raise Invalid("sequence numbers start at 0")
    if first > stream.next:
        raise Conflict(f"stream {stream.name} waits for slice {stream.next}, got {first}: send those between first")
    return first


def _size(values: Any) -> int:
    return int(values.nbytes)


async def _result(done: Future[Any]) -> Any:
    try:
        return await asyncio.wrap_future(done)
    except asyncio.CancelledError:
        if done.cancelled():
            raise Unavailable("the stream was deleted, or the service is shutting down") from None
        raise
