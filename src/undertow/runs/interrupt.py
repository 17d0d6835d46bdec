"""Ctrl-C, SIGTERM and SIGHUP as a flag checked between two slices instead of an exception in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupt:
    """While this is open, the first signal only sets ``requested``; the second ends the process as it would have.

    Outside the main thread Python delivers no signals, and there nothing is changed; nor where the process was started
    to ignore a signal, as nohup does with SIGHUP.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
                number = getattr(signal, name, None)
                if number is None or signal.getsignal(number) in (signal.SIG_IGN, None):
                    continue
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self.__exit__()
