"""The one thread that computes: streams take turns, the slices of each come in their order.

One thread, because on CPUs JAX can wait for ever when small computations come from several, and one stream at a time,
because that is faster than a fleet there: 6 ms for a 12×12 slice, beside 8 ms in a fleet of sixteen. What a stream
gives is bit for bit the same whoever else is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from undertow.incidents import Change
from undertow.service.hosted import Hosted, Models, Outcome
from undertow.service.settings import Limits
from undertow.service.spec import Spec
from undertow.service.store.base import Feedback, Store
from undertow.service.writer import Writer

_LOG = logging.getLogger("undertow.service")


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

    def remove(self, key: int) -> None:
        """Forget a stream; jobs that wait are dropped."""
        with self._changed:
            self._specs.pop(key, None)
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
                key, job = self._next()
            if key is None:
                break
            try:
                self._do(key, job)
            except Exception as error:  # a defect of one stream must not stop the others
                _LOG.exception("stream failed", extra={"fields": {"key": key}})
                self._resident.pop(key, None)
                if job is not None and not job.done.done():
                    job.done.set_exception(error)
        for hosted in list(self._resident.values()):
            self._save(hosted)

    def _next(self) -> tuple[int | None, Job | None]:
        """A job of the stream whose turn it is; else a stream to catch up with; else the end."""
        if self._jobs:
            key, jobs = next(iter(self._jobs.items()))
            job = jobs.popleft()
            self._jobs.move_to_end(key)
            if not jobs:
                del self._jobs[key]
            return key, job
        if self._behind and not self._stopping:
            return self._behind.popleft(), None
        return None, None

    def _do(self, key: int, job: Job | None) -> None:
        hosted = self._hosted(key)
        if hosted is None:
            if job is not None:
                job.done.cancel()
        elif job is None:
            return
        elif job.values is not None:
            _answer(job.done, self._step(hosted, job.time, job.values))
        elif job.said is not None:
            _answer(job.done, self._listen(hosted, job.said))
        elif job.call is not None:
            _answer(job.done, job.call(hosted))

    def _catch_up(self, hosted: Hosted) -> None:
        """Learn what the log holds and has been promised: of the time before a restart, or before a failure."""
        said = deque(self._store.feedback(hosted.key, hosted.feedback))
        while hosted.next < self._reached[hosted.key]:
            found = hosted.behind(self._store)
            if not found or found[0][0] != hosted.next:
                raise RuntimeError(f"slice {hosted.next} is not in the log")
            for _, time_, values in found:
                self._listen_until(hosted, said)
                self._step(hosted, time_, values)
        self._listen_until(hosted, said)

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

    def _step(self, hosted: Hosted, time_: str, values: NDArray[Any]) -> Outcome:
        started = time.perf_counter()
        outcome = hosted.step(time_, values)
        self._reached[hosted.key] = max(self._reached[hosted.key], hosted.next)
        seconds = time.perf_counter() - started
        self.seconds += 0.1 * (min(seconds, 10 * self.seconds) - self.seconds)
        self._writer.lazily(hosted.kept(outcome))
        self._listener.slice_done(hosted.key, outcome, seconds)
        if outcome.changes:
            self._listener.incidents_changed(hosted.key, outcome.changes)
        # Last: what a checkpoint holds is not found again after a crash, so it must have been told before.
        if hosted.next - hosted.saved >= self._limits.checkpoint_every:
            self._save(hosted)
        return outcome

    def _save(self, hosted: Hosted) -> None:
        each = max(1, 16 * hosted.spec.entries)
        history = max(1, min(self._limits.history, self._limits.history_bytes // each))
        self._writer.lazily([hosted.checkpoint(history)])

    def _hosted(self, key: int) -> Hosted | None:
        """The stream in memory; others are saved and let go where there are too many."""
        with self._changed:
            spec = self._specs.get(key)
        if spec is None:
            self._resident.pop(key, None)
            return None
        if key not in self._resident:
            self._resident[key] = Hosted.restored(self._store, key, spec, self._models)
            self._catch_up(self._resident[key])
        self._resident.move_to_end(key)
        while (
            len(self._resident) > 1 and sum(one.size for one in self._resident.values()) > self._limits.resident_bytes
        ):
            _, oldest = self._resident.popitem(last=False)
            self._save(oldest)
            self._writer.durable([]).result()  # it may be read back at once
        return self._resident[key]


def _answer(done: Future[Any], value: Any) -> None:
    if done.set_running_or_notify_cancel():
        done.set_result(value)
