"""Everything that a kept program needs of JAX beyond its documented interface, in one place.

JAX documents no way to run an executable that it did not trace itself, other than by unpickling it. What is used here
was tried with JAX 0.10, 0.11 and 0.12; where it does not exist, a program stays with `jax.jit`.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import jax
import numpy as np

from undertow.programs.structure import Outline, unpacked

LAPACK = "lapack_"
"""How the names of the routines begin that programs for a CPU call."""
_OF_GPUS = ("cublas_", "cusolver_", "cusparse_", "cu_", "hipblas_", "hipsolver_", "hipsparse_", "hip_")
"""How the names of those begin that are ready as soon as a GPU is."""
_KERNEL = "__gpu$xla.gpu.triton"
"""A kernel written with Pallas, which XLA compiles with the rest of the program."""

QUICKLY: dict[str, dict[str, Any]] = {
    "cpu": {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1},
    "gpu": {"xla_gpu_autotune_level": 0},
}
"""Options of the compiler for small programs: it takes half the time. On CPUs they take a tenth longer, on GPUs not."""
SMALL = 2**18
"""Numbers that the arguments of such a program have together. With larger ones what is lost shows after some hundred
slices (decision 0032)."""
MIDDLING = 2**22
"""The same for programs that lose a tenth by it, not a half."""

_config: Any = jax.config
_log = logging.getLogger("undertow.programs")
_watched = threading.local()


@dataclass(frozen=True)
class Place:
    """Where a program runs.

    Attributes:
        device: The device.
        committed: Whether an argument insists on it; then the results do too.
    """

    device: Any
    committed: bool


def usual() -> bool:
    """Whether programs run as usual: not when the user asks JAX to watch over every operation."""
    return not (_config.jax_disable_jit or _config.jax_debug_nans or _config.jax_debug_infs)


def context() -> tuple[Any, ...]:
    """What a user may change in mid-run, and decides what is traced."""
    return _config.jax_enable_x64, _config.jax_default_matmul_precision


def sent(leaf: Any) -> jax.Array:
    """A number or array of the host as JAX's, in memory of its own: the host may go on and change it."""
    own = np.array(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf
    quickly, device = _quick_put(), _default_device()
    there: jax.Array
    if own is leaf or quickly is None or not _as_it_is(own.dtype):
        there = jax.device_put(own)
    else:
        there = quickly(jax.core.ShapedArray(own.shape, own.dtype), _alone(device), [own], [device], False)
    return there


def _as_it_is(dtype: np.dtype[Any]) -> bool:
    """Whether JAX takes numbers of a type as they are: in double precision only where that is switched on."""
    return dtype.kind in "biuf" and dtype.isnative and (dtype.itemsize <= 4 or _config.jax_enable_x64)


@cache
def _quick_put() -> Any:
    """What `jax.device_put` comes to for an array, in a fifth of its time; None where that does not work."""
    try:
        put, device = import_module("jax._src.lib").xla_client.batched_device_put, _default_device()
        put(jax.core.ShapedArray((), np.dtype(np.float32)), _alone(device), [np.zeros((), np.float32)], [device], False)
    except Exception as error:
        _log.debug("arrays are sent by jax.device_put: %s", error)
        return None
    return put


@cache
def _alone(device: Any) -> Any:
    """One object for each device: `place` tells shardings apart by that."""
    return jax.sharding.SingleDeviceSharding(device)


def place(leaves: list[Any]) -> Place | None:
    """Where to run with these arguments; None where that is more than one device.

    The rule is that of `jax.jit`: the device of arguments that were put there on purpose, or the default one.
    """
    committed = True in [getattr(leaf, "_committed", True) for leaf in leaves]
    shardings = {id(sharding): sharding for sharding in [leaf.sharding for leaf in leaves]}  # mostly one object
    devices = set[Any]().union(*[sharding.device_set for sharding in shardings.values()])
    if committed or len(devices) > 1:
        return Place(next(iter(devices)), committed) if len(devices) == 1 else None
    chosen = _default_device()
    return Place(chosen, False) if devices <= {chosen} else None


def _default_device() -> Any:
    chosen = _config.jax_default_device
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices(backend=chosen)[0]


def calls(lowered: jax.stages.Lowered) -> tuple[str, ...]:
    """Names of the routines that a program calls and XLA does not make: LAPACK's, a vendor's, functions of Python."""
    return tuple(sorted(set(re.findall(r"custom_call\s*@?\"?([^\s(\"]+)", lowered.as_text()))))


def callable_later(calls: Sequence[str]) -> bool:
    """Whether all these routines can be made ready without lowering the program.

    A function of Python lives as long as what JAX compiled. Others that are not named here are made ready by lowering,
    for all we know: to call one that is not ready ends the process.
    """
    return all(call.startswith((LAPACK, *_OF_GPUS)) or call == _KERNEL for call in calls)


def compiled(lowered: jax.stages.Lowered, device: Any, small: int = SMALL) -> jax.stages.Compiled:
    """Compiled for a device; programs of up to `small` numbers quickly, where the compiler knows how."""
    options = QUICKLY.get(device.platform)
    small = small if device.platform == "cpu" else MIDDLING
    if options and sum(aval.size for aval in jax.tree.leaves(lowered.in_avals)) <= small:
        try:
            return lowered.compile(compiler_options=options)
        except Exception as error:  # an option that it does not know; anything else comes again below
            _log.debug("compiled with the compiler's own options: %s", error)
    return lowered.compile()


def executable(
    compiled: jax.stages.Compiled, place: Place, arguments: int, calls: tuple[str, ...]
) -> tuple[Callable[[list[Any]], Any], Outline]:
    """What was just compiled as a function of flat arguments, and the outline of its results."""
    native: Any = compiled.runtime_executable()
    if len(native.get_parameter_layouts()) != arguments:
        raise ValueError("constants became arguments")
    results, tree = jax.tree.flatten(compiled.out_info)
    arrays = [(tuple(array.shape), str(array.dtype), bool(getattr(array, "weak_type", False))) for array in results]
    outline = Outline(tree, tuple(arrays), calls)
    return _callable(native, outline, place), outline


@contextmanager
def watching_for_cache_hits() -> Iterator[list[str]]:
    """A list that is empty as long as nothing came out of JAX's own compilation cache.

    On a CPU such an executable cannot be serialised again: it loads, and its kernels are not found when it runs.
    """
    _listen()
    hits: list[str] = []
    _watched.hits = hits
    try:
        yield hits
    finally:
        del _watched.hits


@cache
def _listen() -> None:
    """Once and for good: a listener that comes and goes could make JAX skip that of another thread."""
    jax.monitoring.register_event_listener(_noted)


def _noted(event: str, **_: Any) -> None:
    if event == "/jax/compilation_cache/cache_hits" and hasattr(_watched, "hits"):
        _watched.hits.append(event)


def loaded(stored: bytes, place: Place) -> Callable[[list[Any]], Any]:
    """A stored executable as a function of flat arguments."""
    outline, found = unpacked(stored)
    _make_ready(outline.calls)
    native = place.device.client.deserialize_executable(found, [place.device])
    return _callable(native, outline, place)


def _make_ready(calls: Sequence[str]) -> None:
    """What JAX does when it lowers a program that calls these routines.

    JAX takes the addresses of LAPACK's routines from SciPy, and only then. Until then they are null, and a program that
    calls one ends the process. Where that cannot be done, an error: then the program is compiled.
    """
    if not callable_later(calls):
        raise ValueError(f"it calls {', '.join(calls)}")
    if any(call.startswith(LAPACK) for call in calls):
        linalg: Any = import_module("jax._src.lax.linalg")
        linalg.initialize_lapack()


_one_at_a_time = threading.Lock()
"""Of programs of CPUs that call LAPACK: for many matrices it waits for threads of the pool in which programs run, and
several programs waited for each other for ever."""


def _callable(native: Any, outline: Outline, place: Place) -> Callable[[list[Any]], Any]:
    from jax._src.interpreters.pxla import global_aval_to_result_handler

    sharding = jax.sharding.SingleDeviceSharding(place.device)
    handlers = [
        global_aval_to_result_handler(
            jax.core.ShapedArray(shape, np.dtype(dtype), weak_type=weak), sharding, place.committed
        )
        for shape, dtype, weak in outline.arrays
    ]
    unflatten = outline.tree.unflatten

    def run(leaves: list[Any]) -> Any:
        return unflatten(native.execute_sharded(leaves).consume_with_handlers(handlers))

    def alone(leaves: list[Any]) -> Any:
        wait: Any = jax.block_until_ready
        with _one_at_a_time:
            return wait(run(leaves))

    calls_lapack = any(call.startswith(LAPACK) for call in outline.calls)
    return alone if calls_lapack and place.device.platform == "cpu" else run
