"""Ctrl-C, SIGTERM and SIGHUP from the first moment of a command to its last: one sentence, exit code 128 + signal.

Python runs its signal handlers between two instructions of the main thread: not while that compiles for twenty seconds.
And what a handler raises in the middle of an import or of native code ends in tracebacks and crashes. Here the signal
wakes a thread (`signal.set_wakeup_fd`), which gives work that wants an orderly end some time for it, and then leaves
without the interpreter's shutdown. A store survives that as it survives SIGKILL.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from undertow.cli.terminal import printable

HANDLED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_GRACE = 1.5  # seconds for an orderly end
_SHOW_CURSOR = "\r\x1b[K\x1b[?25h"  # a progress bar hides it


def _unfinished() -> str:
    return "stopped before it was done"


class Signals:
    """What signals do to one command; before `watch` they do what they always did."""

    def __init__(self) -> None:
        self._watching = False
        self._number: int | None = None
        self.sentence: Callable[[], str] = _unfinished
        """Says what a signal has left; called in another thread, at any moment."""
        self._grace = 0.0
        self._received = threading.Event()
        self._leaving = threading.Lock()

    def watch(self) -> None:
        """From now on every signal ends this process; one that it was started to ignore (nohup) stays ignored."""
        woken, waker = socket.socketpair()
        waker.setblocking(False)
        threading.Thread(target=self._wait, args=(woken, waker), name="undertow signals", daemon=True).start()
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        for number in HANDLED:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                signal.signal(number, self._handle)
        self._watching = True

    @contextlib.contextmanager
    def orderly(self) -> Iterator[None]:
        """What happens inside is given a moment to end: to finish a slice, to remove a temporary file."""
        self._grace = _GRACE
        try:
            yield
        except KeyboardInterrupt:  # a run that has ended in order
            if self._watching:
                self._received.wait(_GRACE)
                self._leave()
            print(f"undertow: {printable(self.sentence())}", file=sys.stderr)
            raise SystemExit(128 + signal.SIGINT) from None
        finally:
            self._grace = 0.0

    def hand_over(self) -> None:
        """Leave signals to a server, which finishes its requests and saves its streams first."""
        if self._watching:
            signal.set_wakeup_fd(-1)
        self._watching = False

    def finish(self, code: int) -> None:
        """End the process with this code; not through Python's shutdown, which threads in native code can crash."""
        if not self._watching:
            sys.exit(code)
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # nobody reads any more
            code = code or 1
        if self._number is not None:
            self._leave()
        with self._leaving:
            os._exit(code)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """In the main thread, for work outside `undertow.run` that has to clean up after itself."""
        self._number = number
        if self._grace:
            sys.unraisablehook = lambda _: None  # where Python cannot pass the exception on, the thread below ends it
            raise SystemExit(128 + number)

    def _wait(self, woken: socket.socket, waker: socket.socket) -> None:
        """In a thread of its own."""
        while True:
            number = woken.recv(1)[0]
            if number in HANDLED:
                break
        self._number = number
        self._received.set()
        woken.settimeout(self._grace or 1e-6)
        with contextlib.suppress(OSError):
            woken.recv(1)  # a second signal ends the patience
        self._leave()

    def _leave(self) -> None:
        """Say it and go. Neither sys.stderr nor imports: the main thread may hold their locks."""
        with self._leaving:
            try:
                sentence = self.sentence()
            except Exception:
                sentence = _unfinished()
            text = f"{_SHOW_CURSOR if os.isatty(2) else ''}undertow: {printable(sentence)}\n"
            with contextlib.suppress(OSError):  # the terminal may be gone
                os.write(2, text.encode(errors="replace"))
            os._exit(128 + (self._number or signal.SIGINT))


SIGNALS = Signals()
"""Those of this process."""
