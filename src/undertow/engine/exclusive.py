"""One thread at a time in a model, and one process: what compiled code leaves to its callers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Self, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Exclusive:
    """An object with a lock, which neither copies nor pickles take along."""

    _lock: threading.RLock

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Here, so that objects made without `__init__` (copies, pickles, files) have a lock too."""
        self = super().__new__(cls)
        self._lock = threading.RLock()
        return self

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}


def exclusive(method: Method) -> Method:
    """A method that only one thread at a time can be in; others wait. In a forked process it is refused."""

    @wraps(method)
    def alone(self: Exclusive, *args: Any, **settings: Any) -> Any:
        _refuse_fork()  # first: a lock that was held during a fork is never released
        with self._lock:
            return method(self, *args, **settings)

    return cast(Method, alone)


def check_process() -> None:
    """Refuse to compute in a process that was forked after the first computation: it would wait for ever.

    Raises:
        RuntimeError: This is such a process.
    """
    _first_process()
    _refuse_fork()


def _refuse_fork() -> None:
    if _first_process.cache_info().currsize and _first_process() != os.getpid():
        raise RuntimeError(
            f"undertow was used in process {_first_process()} before this process was forked from it, and JAX does not "
            "survive a fork: start processes with multiprocessing.get_context('spawn'), or fork before the first use."
        )


@cache
def _first_process() -> int:
    """The process of the first computation; a forked process inherits the answer."""
    return os.getpid()
