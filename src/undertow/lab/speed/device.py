"""Where and with what a run was made: times from different devices must not be compared."""

from __future__ import annotations

import gc
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax

import undertow
from undertow.programs.program import forget_all

_PACKAGES = ("jax", "jaxlib", "numpy", "tensorly")


def device() -> dict[str, Any]:
    """The device of JAX, the processor, the cores that this process may use, and the threads of NumPy's products."""
    first = jax.devices()[0]
    return {
        "platform": first.platform,
        "kind": first.device_kind,
        "processor": _processor(),
        "cores": _cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS"),
    }


def in_words(found: dict[str, Any]) -> str:
    """One line for people."""
    cores = "1 core" if found["cores"] == 1 else f"{found['cores']} cores"
    host = f"{found['processor']}, {cores}"
    return host if found["platform"] == "cpu" else f"{found['kind']} ({host})"


def let_programs_go() -> None:
    """Forget what was compiled. A process may map a limited number of pieces of memory, every program takes some, and
    all workloads and sizes together would need more: the process died near its end."""
    forget_all()
    jax.clear_caches()  # type: ignore[no-untyped-call]
    gc.collect()


def has_gpu() -> bool:
    """Whether JAX computes on something other than the processor."""
    return str(jax.devices()[0].platform) != "cpu"


def versions() -> dict[str, str]:
    """Of Python, of this package and of those that set the speed."""
    found = {"python": platform.python_version(), "undertow": undertow.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or a processor without a name
        return platform.processor() or platform.machine()
