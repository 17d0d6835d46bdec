"""Why nothing happens: while programs are compiled for longer than a second, a terminal or a notebook says so, once.

Each program is also logged (`logging.getLogger("undertow.programs")`, level INFO), which is quiet unless asked for.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator

from undertow.programs.folder import Folder

PATIENCE = 1.0
"""Seconds of compilation, all programs together, that need no explanation."""
_KEY = "seconds that the last process compiled for"
_log = logging.getLogger("undertow.programs")


def say_to_people(sentence: str) -> None:
    """On standard error, if a terminal or a notebook shows it."""
    if "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()):
        print(sentence, file=sys.stderr, flush=True)


class Waiting:
    """What this process has compiled so far, and whether that was explained.

    Args:
        say: Called with the explanation, at most once.
    """

    def __init__(self, say: Callable[[str], None] = say_to_people) -> None:
        self.say = say
        self.seconds = 0.0  # programs compiled at the same time count once
        self._under_way = 0
        self._since = 0.0
        self._said = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def compiling(self, name: str, folder: Folder | None) -> Iterator[None]:
        """Around the compilation of a program; `folder` keeps how long all of them took."""
        start = time.monotonic()
        with self._lock:
            if not self._under_way:
                self._since = start
            self._under_way += 1
            pause = max(PATIENCE - self.seconds, 0.0)
        timer = threading.Timer(pause, self._explain, [folder])
        timer.daemon = True
        if not self._said:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            now = time.monotonic()
            with self._lock:
                self._under_way -= 1
                self.seconds, self._since = self.seconds + now - self._since, now
                total = self.seconds
            _log.info("compiled %s in %.1f s", name, now - start)
            if self._said and folder is not None:
                _beside(folder).write(_KEY, f"{total:.0f}".encode())

    def _explain(self, folder: Folder | None) -> None:
        with self._lock:
            if self._said or not self._under_way:
                return
            self._said = True
        before = _beside(folder).read(_KEY) if folder is not None else None
        last = f" (it took {before.decode()} s last time)" if before is not None and before.isdigit() else ""
        kept = ", and keeps the programs for the next time" if folder is not None else ""
        self.say(f"undertow is compiling for slices of this shape{last}{kept}")


def _beside(folder: Folder) -> Folder:
    """Where the time is kept: not among the programs."""
    return Folder(folder.path.with_name(f"{folder.path.name}-times"))


WAITING = Waiting()
"""Of this process."""
