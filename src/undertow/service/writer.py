"""The one thread that writes: many requests share a transaction, and each is answered when it is on the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from undertow.service.errors import Unavailable
from undertow.service.store.base import Checkpoint, Kept, LoggedSlice, Store, Write

_LOG = logging.getLogger("undertow.service")
_PER_TRANSACTION = 512  # writes in a transaction
_LAZY_BYTES = 64 * 2**20  # results that may wait; the inference thread waits beyond that
_LAZY_SECONDS = 0.05  # how long results alone wait for company: each transaction is a wait for the disk


class Writer:
    """Group commit.

    Args:
        store: What is written.
        failed: Called once when the store cannot be written any more.
    """

    def __init__(self, store: Store, failed: Callable[[], None] = lambda: None) -> None:
        self._store, self._failed = store, failed
        self._waiting: deque[tuple[Sequence[Write], Future[None] | None]] = deque()
        self._bytes = 0
        self._urgent = 0
        self._busy = False
        self._changed = threading.Condition()
        self._stopping = False
        self.broken: str | None = None
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="undertow-writer", daemon=True)
        self._thread.start()

    def durable(self, writes: Sequence[Write]) -> Future[None]:
        """Write as soon as possible; the future is done when they will survive a power cut."""
        done: Future[None] = Future()
        with self._changed:
            if self.broken or self._stopping:
                done.set_exception(Unavailable(self.broken or "the service is shutting down: try again later"))
                return done
            self._waiting.append((writes, done))
            self._bytes += _size(writes)
            self._urgent += 1
            self._changed.notify_all()
        return done

    def lazily(self, writes: Sequence[Write]) -> None:
        """Write in passing, in the order of all calls; waits while too much is waiting."""
        if not writes:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _LAZY_BYTES or self.broken is not None)
            if self.broken:  # nothing is kept any more, and nothing is acknowledged
                return
            self._waiting.append((writes, None))
            self._bytes += _size(writes)
            self._changed.notify_all()

    def caught_up(self) -> Future[None]:
        """Done when all that was handed over before can be read, or never will be."""
        done: Future[None] = Future()
        with self._changed:
            if self.broken or not (self._busy or self._waiting):
                done.set_result(None)
                return done
            self._waiting.append(((), done))
            self._urgent += 1
            self._changed.notify_all()
        return done

    def stop(self) -> None:
        """Write what is waiting, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._batch():
            writes = [one for group, _ in batch for one in group]
            futures = [done for _, done in batch if done is not None]
            try:
                self._store.write(writes)
            except Exception as error:
                self._break(error, futures)
                continue
            self.commits += 1
            for done in futures:
                done.set_result(None)

    def _batch(self) -> list[tuple[Sequence[Write], Future[None] | None]]:
        with self._changed:
            self._busy = False
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            until = time.monotonic() + _LAZY_SECONDS
            while not self._urgent and not self._stopping and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._busy = bool(self._waiting)
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _PER_TRANSACTION))]
            self._bytes -= sum(_size(group) for group, _ in batch)
            self._urgent -= sum(done is not None for _, done in batch)
            self._changed.notify_all()
            return batch

    def _break(self, error: Exception, futures: list[Future[None]]) -> None:
        """Nothing is acknowledged any more: what was not written must not look as if it was."""
        reason = " ".join(str(error).split()) or type(error).__name__
        first = self.broken is None
        with self._changed:
            self.broken = f"the store cannot be written ({reason}): the service must be restarted"
            self._changed.notify_all()
        for done in futures:
            done.set_exception(Unavailable(self.broken))
        if first:
            _LOG.error("store failed", extra={"fields": {"reason": reason}})
            self._failed()


def _size(writes: Sequence[Write]) -> int:
    total = 0
    for one in writes:
        if isinstance(one, (LoggedSlice, Kept)):
            total += len(one.body)
        elif isinstance(one, Checkpoint):
            total += len(one.model)
    return total
