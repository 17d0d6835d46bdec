"""A line of progress for calls that take long; nothing where nobody is looking."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Tick = Callable[[int, int | None], None]
"""Called with the slices done, and how many there will be where that is known."""


def ticker(progress: bool | Tick | None, what: str) -> Tick:
    """What is called for every slice.

    Args:
        progress: True or False; a function to call instead; None: where standard error is a terminal or a notebook.
        what: Is being done.
    """
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    return _Line(what) if progress else lambda done, length: None


class _Line:
    """Written over itself a few times a second: how much is done, and how long the rest will take."""

    def __init__(self, what: str) -> None:
        self._what, self._start, self._last, self._width = what, time.monotonic(), 0.0, 0

    def __call__(self, done: int, length: int | None) -> None:
        now = time.monotonic()
        ended = done == length
        if now - self._last < 0.3 and not ended:
            return
        self._last = now
        share = "" if not length else f" of {length}"
        percent = "" if not length else f" ({100 * done // length} %)"
        rest = (now - self._start) * ((length or 0) - done) / max(done, 1)
        left = f", {_duration(rest)} left" if length and not ended and done > 1 else ""
        text = f"{self._what}: {done}{share} slices{percent}{left}"
        print(f"\r{text:<{self._width}}", end="\n" if ended else "", file=sys.stderr, flush=True)
        self._width = len(text)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
