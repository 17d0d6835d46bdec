"""Ctrl-C and SIGTERM as a flag checked between two slices instead of an exception in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupt:
    """While this is open, the first signal only sets ``requested``; the second ends the process as it would have.

    Outside the main thread Python delivers no signals, and there nothing is changed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self.__exit__()
