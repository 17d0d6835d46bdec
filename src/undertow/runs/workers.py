"""Threads at both ends of a run: one reads ahead, one writes behind, each with a short queue."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from undertow.sources.base import Item

_PATIENCE = 0.1  # seconds between checks of whether the other side is still there


class NothingYet(Exception):
    """The source has neither given a slice nor ended; not a `TimeoutError`, which a source may well raise itself."""


class ReadAhead:
    """Reads slices in a thread, at most ``capacity`` ahead of the computation.

    The thread is a daemon: one that waits for a silent pipe must not keep the process alive.
    """

    def __init__(self, slices: Callable[[], Iterator[Item]], capacity: int) -> None:
        self._slices = slices
        self._queue: queue.Queue[Item | BaseException | None] = queue.Queue(capacity)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="undertow reader", daemon=True)
        self._thread.start()

    def next(self) -> Item | None:
        """The next slice, or None at the end of the stream; whatever reading raised is raised here.

        Raises:
            NothingYet: ask again.
        """
        try:
            got = self._queue.get(timeout=_PATIENCE)
        except queue.Empty:
            raise NothingYet from None
        if isinstance(got, BaseException):
            raise got
        return got

    def stop(self) -> None:
        """End the thread, unless it is stuck in a read."""
        self._stopped.set()
        self._thread.join(timeout=1.0)

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._slices():
                self._put(item)
                if self._stopped.is_set():
                    return
        except BaseException as error:
            end = error
        self._put(end)

    def _put(self, item: Item | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                return self._queue.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue


class WriteBehind:
    """Does jobs in a thread, in order, at most ``capacity`` of them waiting; after a failure the rest is dropped."""

    def __init__(self, capacity: int) -> None:
        self._queue: queue.Queue[Callable[[], Any] | None] = queue.Queue(capacity)
        self.error: BaseException | None = None
        """What a job raised."""
        self._thread = threading.Thread(target=self._work, name="undertow writer", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], Any]) -> None:
        """Hand over a job, waiting while the queue is full; raises what an earlier job raised."""
        while True:
            self.check()
            try:
                return self._queue.put(job, timeout=_PATIENCE)
            except queue.Full:
                continue

    def check(self) -> None:
        """Raise what a job raised."""
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Wait until everything handed over is done or dropped."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if self.error is None:
                try:
                    job()
                except BaseException as error:
                    self.error = error
