"""Waiting for a file or a folder that still grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from undertow.sources.base import StreamError


class Follow:
    """How long to wait for more, and how often to check; ends on an idle limit, on :meth:`stop` and on Ctrl-C."""

    def __init__(self, idle: float | None = None, poll: float = 0.5) -> None:
        if idle is not None and not idle >= 0:
            raise StreamError(f"idle must be a number of seconds or None, got {idle}: leave it out to wait for ever")
        if not 0 < poll <= 3600:
            raise StreamError(f"poll must be a number of seconds above 0, got {poll}: use 0.5")
        self.idle, self.poll = idle, poll
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End every wait, now and from now on; may be called from another thread."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def wait(self, grew: Callable[[], bool]) -> bool:
        """Whether there is more: True as soon as ``grew()`` is, False once nothing came for ``idle`` seconds."""
        begin = time.monotonic()
        while not self._stopped.is_set():
            if grew():
                return True
            left = float("inf") if self.idle is None else begin + self.idle - time.monotonic()
            if left <= 0:
                return False
            self._stopped.wait(min(self.poll, left))
        return False
