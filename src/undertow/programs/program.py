"""`program`: like `jax.jit`, but what was compiled once is kept in the user's cache directory.

A function that is called with new shapes is looked for on disk, by everything that decides what the compiler would
make of it (`identity`). If it is found, it runs without having been traced, lowered or compiled; else all that is done
and the executable is stored (`folder`). Whatever goes wrong on the way, the function is compiled as `jax.jit` does.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import jax

from undertow.programs import identity, runtime, structure
from undertow.programs.folder import Folder
from undertow.programs.waiting import WAITING

_log = logging.getLogger("undertow.programs")
_all: weakref.WeakSet[Program] = weakref.WeakSet()


class Program:
    """A function that is compiled for each combination of shapes and static arguments; see `program`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str], donate: Sequence[str], small: int) -> None:
        self.__wrapped__ = function
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._static, self._donate, self._small = tuple(static), tuple(donate), small
        self._jitted: Any = jax.jit(function, static_argnames=static, donate_argnames=donate)
        parameters = inspect.signature(function).parameters.values()
        self._names = tuple(parameter.name for parameter in parameters)
        self._all_names = set(self._names)
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self._loaded: dict[Hashable, Callable[[list[Any]], Any] | None] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        _all.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; within a function that is being traced, become part of that one."""
        ready, leaves = self._ready(args, kwargs)
        return self._jitted(*args, **kwargs) if ready is None else ready(leaves)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Load or compile it for arguments like these, without running it; meanwhile other threads may do other things.

        Whoever calls it with such arguments in the meantime waits until it is ready.
        """
        self._ready(args, kwargs)

    def _ready(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[[list[Any]], Any] | None, list[Any]]:
        """What runs, and the flat arguments it takes; None where that is left to `jax.jit`."""
        given = dict(zip(self._names, args, strict=False))
        named = {**self._defaults, **given, **kwargs}
        if named.keys() != self._all_names or len(given) != len(args) or not given.keys().isdisjoint(kwargs):
            return None, []  # `jax.jit` says what is wrong with these arguments
        static = tuple([(name, named.pop(name)) for name in self._static])
        leaves, tree = jax.tree.flatten(named)
        kinds = set(map(type, leaves))
        if any(issubclass(kind, jax.core.Tracer) for kind in kinds) or not runtime.usual():
            return None, []
        if not all(issubclass(kind, jax.Array) for kind in kinds):
            leaves = [leaf if isinstance(leaf, jax.Array) else runtime.sent(leaf) for leaf in leaves]
        place = runtime.place(leaves)
        key = (static, tree, tuple([leaf.aval for leaf in leaves]), place, runtime.context())
        try:
            return self._loaded[key], leaves
        except KeyError:
            return self._made_ready(key, place, dict(static), tree, leaves), leaves

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As of `jax.jit`: the function lowered for these arguments, to be looked at."""
        return self._jitted.lower(*args, **kwargs)

    def count(self) -> int:
        """How many programs are loaded now."""
        return len(self._loaded)

    def forget(self) -> None:
        """Let the loaded programs go; what is on disk stays."""
        self._loaded.clear()
        self._jitted.clear_cache()

    def _made_ready(
        self, key: Hashable, place: runtime.Place | None, static: dict[str, Any], tree: Any, leaves: list[Any]
    ) -> Callable[[list[Any]], Any] | None:
        """The executable for new shapes, from disk or compiled; None where only `jax.jit` knows how."""
        if place is None:
            return None
        with self._locks.setdefault(key, threading.Lock()):  # threads that need the same wait for one of them
            if key in self._loaded:
                return self._loaded[key]
            folder = Folder.of_user()
            described = None if folder is None else identity.described(self.name, static, tree, leaves, place)
            if folder is None or described is None:
                with WAITING.compiling(self.name, folder):
                    ready = self._compiled(place, static, tree, leaves)
            else:
                ready = self._from_disk(key, place, folder, described)
                if ready is None:
                    with WAITING.compiling(self.name, folder):
                        ready = self._compiled(place, static, tree, leaves, partial(folder.write, described))
            self._loaded[key] = ready
            return ready

    def _from_disk(
        self, key: Hashable, place: runtime.Place, folder: Folder, described: str
    ) -> Callable[[list[Any]], Any] | None:
        """What was stored, if it can be loaded."""
        stored = folder.read(described)
        if stored is None:
            return None
        try:
            ready = runtime.loaded(stored, place)
        except Exception as error:
            _log.debug("%s was stored and cannot be loaded: %s", self.name, error)
            return None

        def first_run(leaves: list[Any]) -> Any:
            try:
                result = ready(leaves)
            except Exception:  # whatever the reason, the next attempt compiles
                folder.remove(described)
                self._loaded.pop(key, None)
                raise
            self._loaded[key] = ready
            return result

        return first_run

    def _compiled(
        self,
        place: runtime.Place,
        static: dict[str, Any],
        tree: Any,
        leaves: list[Any],
        keep: Callable[[bytes], None] | None = None,
    ) -> Callable[[list[Any]], Any] | None:
        """Compiled now, and given to `keep`; None where only `jax.jit` knows how to run it."""
        traced = self._anew().trace(**jax.tree.unflatten(tree, leaves), **static)
        if traced.jaxpr.effects:
            return None
        lowered = traced.lower()
        calls = runtime.calls(lowered)
        if not runtime.callable_later(calls):
            _log.debug("%s is left to jax.jit: it calls %s", self.name, ", ".join(calls))
            return None
        with runtime.watching_for_cache_hits() as hits:
            compiled: Any = runtime.compiled(lowered, place.device, self._small)
        try:
            ready, outline = runtime.executable(compiled, place, len(leaves), calls)
        except Exception as error:
            _log.debug("%s is left to jax.jit: %s", self.name, error)
            return None
        if keep is not None and not hits:
            try:
                keep(structure.packed(outline, compiled.runtime_executable().serialize()))
            except Exception as error:
                _log.debug("%s is not kept: %s", self.name, error)
        return ready

    def _anew(self) -> Any:
        """The function as JAX has not seen it before: what it has in memory may have come out of its cache on disk.

        It takes every argument, used or not: a later process knows the arguments, not which of them are used.
        """

        @functools.wraps(self.__wrapped__)
        def function(*args: Any, **kwargs: Any) -> Any:
            return self.__wrapped__(*args, **kwargs)

        return jax.jit(function, static_argnames=self._static, donate_argnames=self._donate, keep_unused=True)


def program(
    *, static: Sequence[str] = (), donate: Sequence[str] = (), small: int = runtime.SMALL
) -> Callable[[Callable[..., Any]], Program]:
    """Compile a function, and keep what was compiled for later processes.

    Args:
        static: Names of arguments that select the program; hashable, with a `repr` that says all.
        donate: Names of arguments whose memory the results take over.
        small: Numbers of its arguments up to which it is compiled quickly, and runs a little longer, on a CPU.

    Returns:
        What turns a pure function of arrays into a `Program`. Its results may be tuples, lists, dictionaries and the
        dataclasses of this package.

    Examples:
        >>> import numpy as np
        >>> from undertow.programs.program import program
        >>> @program(static=["times"])
        ... def repeated(x, times):
        ...     return times * x
        >>> float(repeated(np.float32(2), times=3))
        6.0
    """
    return partial(Program, static=static, donate=donate, small=small)


def forget_all() -> None:
    """Let every loaded program go: each takes memory, of which a process may map a limited number of pieces."""
    for one in list(_all):
        one.forget()
