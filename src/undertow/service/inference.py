"""The one thread that computes: streams take turns, the slices of each come in their order.

One thread, because on CPUs JAX can wait for ever when small computations come from several. Small streams of one shape
that have a slice at the same time are stepped together, in one call, where they are enough for that to be quicker: each
goes on with a state of its own, and gets what it would have got alone, to rounding. Slices that take many times as
long as usual, as those with which trackers try other frames do, come in turn with those of the other streams, one by
one; many together where nobody else waits.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from undertow.incidents import Change
from undertow.service.hosted import Hosted, Models, Outcome, stepped
from undertow.service.settings import Limits
from undertow.service.spec import Spec
from undertow.service.store.base import Checkpoint, Feedback, Store
from undertow.service.writer import Writer

_LOG = logging.getLogger("undertow.service")
SMALL = 1024
"""Entries of a slice up to which they are: larger ones keep the machine busy alone."""

WORTH = 10.0
"""A model is saved once what it has learned since took this many times as long as saving it."""


class Listener(Protocol):
    """Is told what happens, in the inference thread: it must not wait."""

    def slice_done(self, key: int, outcome: Outcome, seconds: float) -> None:
        """A slice was learned."""

    def incidents_changed(self, key: int, changes: tuple[Change, ...]) -> None:
        """Incidents opened, changed or closed."""


@dataclass(frozen=True)
class Job:
    """One slice, or what a user said, or anything else that needs the stream (``call``)."""

    done: Future[Any]
    sequence: int = -1
    time: str = ""
    values: NDArray[Any] | None = None
    said: Feedback | None = None
    call: Callable[[Hosted], Any] | None = None


class Inference:
    """Steps streams, saves them now and then, and lets go of those that have not been used for long."""

    def __init__(self, store: Store, writer: Writer, models: Models, limits: Limits, listener: Listener) -> None:
        self._store, self._writer, self._models, self._limits = store, writer, models, limits
        self._listener = listener
        self._specs: dict[int, Spec] = {}
        self._reached: dict[int, int] = {}
        self._jobs: OrderedDict[int, deque[Job]] = OrderedDict()
        self._behind: deque[int] = deque()
        self._resident: OrderedDict[int, Hosted] = OrderedDict()
        self._alone: set[int] = set()
        self._long: set[int] = set()
        self._was_long = False
        self._changed = threading.Condition()
        self._stopping = False
        self.seconds = 0.01
        """What a slice took lately."""
        self._thread = threading.Thread(target=self._run, name="undertow-inference", daemon=True)

    def start(self) -> None:
        """From now on jobs are done."""
        self._thread.start()

    def add(self, key: int, spec: Spec, reached: int = 0, *, behind: bool = False) -> None:
        """A stream.

        Args:
            key: Of the stream.
            spec: Its shape.
            reached: Slices of it that are in the store already; later ones come as jobs.
            behind: Whether some of them may not have been learned before the last end.
        """
        with self._changed:
            self._specs[key], self._reached[key] = spec, reached
            if behind:
                self._behind.append(key)
                self._changed.notify_all()

    def describe(self, key: int, spec: Spec) -> None:
        """A stream whose labels may have changed, for when it is restored."""
        with self._changed:
            if key in self._specs:
                self._specs[key] = spec

    def remove(self, key: int) -> None:
        """Forget a stream; jobs that wait are dropped."""
        with self._changed:
            self._specs.pop(key, None)
            self._alone.discard(key)
            self._long.discard(key)
            for job in self._jobs.pop(key, ()):
                job.done.cancel()

    def submit(self, key: int, job: Job) -> None:
        """Do this after all that was submitted before for the same stream."""
        with self._changed:
            if key not in self._specs or self._stopping:
                job.done.cancel()
                return
            self._jobs.setdefault(key, deque()).append(job)
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        with self._changed:
            return sum(map(len, self._jobs.values()))

    @property
    def catching_up(self) -> int:
        """Streams whose log holds slices from before the last end."""
        with self._changed:
            return len(self._behind)

    @property
    def resident(self) -> int:
        """Streams whose models are in memory."""
        return len(self._resident)

    def stop(self) -> None:
        """Finish what is waiting, save every stream, end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._behind or self._stopping)
                turn = self._next()
            if not turn:
                break
            try:
                self._do(turn)
            except Exception as error:  # a defect of one stream must not stop the others
                _LOG.exception("streams failed", extra={"fields": {"keys": [key for key, _ in turn]}})
                if len(turn) > 1:  # from now on each for itself: who is to blame is found out
                    self._alone |= {key for key, _ in turn}
                for key, job in turn:
                    self._resident.pop(key, None)
                    if job is not None and not job.done.done():
                        job.done.set_exception(error)
        for hosted in list(self._resident.values()):
            self._save(hosted)

    def _next(self) -> list[tuple[int, Job | None]]:
        """The stream whose turn it is, with its job, and others that can be stepped with it; else some that are to
        catch up; else nothing, at the end."""
        if self._jobs:
            usual, long = ([key for key in self._jobs if (key in self._long) == slow] for slow in (False, True))
            self._was_long = bool(long) and not (usual and self._was_long)
            mine = long if self._was_long else usual
            some = mine[:1]
            if self._jobs[some[0]][0].values is not None and self._can_join(some[0]) and not (self._was_long and usual):
                some += self._joining(some[0], (key for key in mine[1:] if self._jobs[key][0].values is not None))
            return [(key, self._taken(key)) for key in some]
        if self._behind and not self._stopping:
            first = self._behind.popleft()
            some = [first, *(self._joining(first, self._behind) if self._can_join(first) else ())]
            self._behind = deque(key for key in self._behind if key not in some)
            return [(key, None) for key in some]
        return []

    def _can_join(self, key: int) -> bool:
        spec = self._specs.get(key)
        return spec is not None and spec.entries <= SMALL and key not in self._alone

    def _joining(self, first: int, others: Iterable[int]) -> list[int]:
        """Those of the others that can be stepped with the first, unless they are too few for that."""
        shape = self._specs[first].shape
        alike = (key for key in others if self._can_join(key) and self._specs[key].shape == shape)
        most = self._limits.together
        found = list(itertools.islice(alike, most - 1))
        return found if len(found) + 1 >= min(most, self._models.fewest) else []

    def _taken(self, key: int) -> Job:
        """The next job of a stream, whose turn comes again after all others."""
        jobs = self._jobs[key]
        job = jobs.popleft()
        self._jobs.move_to_end(key)
        if not jobs:
            del self._jobs[key]
        return job

    def _do(self, turn: Sequence[tuple[int, Job | None]]) -> None:
        for key, job in turn:
            if job is not None and key in self._reached:  # also if one before it has failed
                self._reached[key] = max(self._reached[key], job.sequence)
        hosted = self._ready([key for key, _ in turn])
        slices: list[tuple[Hosted, Job]] = []
        for key, job in turn:
            if job is None:
                continue
            if key not in hosted:
                job.done.cancel()
            elif job.values is not None:
                slices.append((hosted[key], job))
            elif job.said is not None:
                _answer(job.done, self._listen(hosted[key], job.said))
            elif job.call is not None:
                _answer(job.done, job.call(hosted[key]))
        given = [(one, job.time, job.values) for one, job in slices if job.values is not None]
        for (_, job), outcome in zip(slices, self._step(given), strict=True):
            _answer(job.done, outcome)
        self._let_go()

    def _catch_up(self, streams: Sequence[Hosted]) -> None:
        """Learn what the log holds and has been promised: of the time before a restart, or before a failure."""
        said = {one.key: deque(self._store.feedback(one.key, one.feedback)) for one in streams}
        logged: dict[int, deque[tuple[int, str, NDArray[Any]]]] = {one.key: deque() for one in streams}
        left = list(streams)
        while left:
            given = []
            for one in left:
                self._listen_until(one, said[one.key])
                if one.next < self._reached[one.key]:
                    found = logged[one.key] or deque(one.behind(self._store))
                    if not found or found[0][0] != one.next:
                        raise RuntimeError(f"slice {one.next} is not in the log")
                    given.append((one, *found.popleft()[1:]))
                    logged[one.key] = found
            self._step(given)
            left = [one for one, _, _ in given]

    def _listen_until(self, hosted: Hosted, said: deque[Feedback]) -> None:
        """Feedback that was given before the next slice came."""
        while said and said[0].after <= hosted.next:
            self._listen(hosted, said.popleft())

    def _listen(self, hosted: Hosted, said: Feedback) -> tuple[Change, ...]:
        if said.number < hosted.feedback:  # it was in the log when the stream was restored
            return ()
        changes = hosted.listen(said)
        self._writer.lazily(hosted.kept_changes(changes))
        if changes:
            self._listener.incidents_changed(hosted.key, changes)
        return changes

    def _step(self, given: Sequence[tuple[Hosted, str, NDArray[Any]]]) -> list[Outcome]:
        """One slice of each of these streams."""
        if not given:
            return []
        started = time.perf_counter()
        outcomes = stepped(self._models, given)
        seconds = (time.perf_counter() - started) / len(given)  # of each
        self.seconds += 0.1 * (min(seconds, 10 * self.seconds) - self.seconds)
        for (hosted, _, _), outcome in zip(given, outcomes, strict=True):
            self._reached[hosted.key] = max(self._reached[hosted.key], hosted.next)
            (self._long.add if self._models.long(hosted.model) else self._long.discard)(hosted.key)
            hosted.work += seconds
            self._writer.lazily(hosted.kept(outcome))
            self._listener.slice_done(hosted.key, outcome, seconds)
            if outcome.changes:
                self._listener.incidents_changed(hosted.key, outcome.changes)
            # Last: what a checkpoint holds is not found again after a crash, so it must have been told before.
            many = hosted.next - hosted.saved >= self._limits.checkpoint_every
            if many or hosted.work >= WORTH * hosted.saving:
                self._save(hosted)
        return outcomes

    def checkpoint(self, hosted: Hosted) -> Checkpoint:
        """Of a stream as it is now."""
        each = max(1, 16 * hosted.spec.entries)
        return hosted.checkpoint(max(1, min(self._limits.history, self._limits.history_bytes // each)))

    def _save(self, hosted: Hosted) -> None:
        started = time.perf_counter()
        self._writer.lazily([self.checkpoint(hosted)])
        hosted.saving, hosted.work = time.perf_counter() - started, 0.0

    def _ready(self, keys: Sequence[int]) -> dict[int, Hosted]:
        """Those of these streams that there still are, in memory and caught up."""
        found: dict[int, Hosted] = {}
        restored = []
        for key in keys:
            with self._changed:
                spec = self._specs.get(key)
            if spec is None:
                self._resident.pop(key, None)
                continue
            if key not in self._resident:
                self._resident[key] = Hosted.restored(self._store, key, spec, self._models)
                restored.append(self._resident[key])
            self._resident.move_to_end(key)
            found[key] = self._resident[key]
        self._catch_up(restored)
        return found

    def _let_go(self) -> None:
        """Where there are too many in memory, those that were not used for longest are saved and forgotten."""
        size = sum(one.size for one in self._resident.values())
        gone = False
        while len(self._resident) > 1 and size > self._limits.resident_bytes:
            _, oldest = self._resident.popitem(last=False)
            self._save(oldest)
            size -= oldest.size
            gone = True
        if gone:
            self._writer.durable([]).result()  # they may be read back immediately


def _answer(done: Future[Any], value: Any) -> None:
    if done.set_running_or_notify_cancel():
        done.set_result(value)
