"""Along what the cost grows: sizes to measure at, everything else held fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from undertow.lab.speed.formula import sparse_bytes, sparse_flops, step_bytes, sweep_flops
from undertow.lab.speed.model import SparseModel
from undertow.lab.speed.slices import scattered
from undertow.lab.speed.workload import Workload

_BASE = Workload("base", "one of the sizes grows", (128, 128), window=20, max_rank=8, observed=0.5)
_SPARSE = Workload(
    "sparse base", "observed entries grow", (4096, 1024), window=10, max_rank=8, source=scattered, make=SparseModel
)
_GPU_FACTOR = 4  # a GPU is not busy with less


@dataclass(frozen=True)
class Axis:
    """One quantity that grows.

    Attributes:
        name: its key.
        title: what it is, with its symbol.
        at: the workload at a size.
        sizes: where to measure; all but the last in a quick run.
        work: operations at a size, by the formula, up to a constant.
        bytes: memory at a size, by the formula, up to a constant.
    """

    name: str
    title: str
    at: Callable[[float], Workload]
    sizes: tuple[float, ...]
    work: Callable[[float], float]
    bytes: Callable[[float], float]


def axes(gpu: bool = False) -> list[Axis]:
    """All of them; slices are larger on a GPU."""
    side = _BASE.shape[0] * (_GPU_FACTOR if gpu else 1)
    base = replace(_BASE, shape=(side, side))
    return [
        _axis("side", "side of a slice, I", lambda size: replace(base, shape=(int(size),) * 2), _around(side, 0.5, 4)),
        _axis("max_rank", "capacity for components, R", lambda size: replace(base, max_rank=int(size)), (4, 8, 16, 32)),
        _axis("window", "window, W", lambda size: replace(base, window=int(size)), (10, 20, 40, 80)),
        _axis("observed", "observed fraction", lambda size: replace(base, observed=size), (0.125, 0.25, 0.5, 1.0)),
        _entries(16 if gpu else 1),
    ]


def _entries(factor: int) -> Axis:
    """The entries of a slice of which only these are kept; the numbers fill their capacity exactly, or nearly."""
    base = replace(_SPARSE, shape=tuple(size * factor for size in _SPARSE.shape))

    def by(formula: Callable[[tuple[int, ...], int, int, int], float]) -> Callable[[float], float]:
        return lambda size: formula(base.shape, int(size), base.window, base.max_rank)

    return Axis(
        "entries",
        "observed entries of a sparse slice",
        lambda size: replace(base, observed=size / math.prod(base.shape)),
        _around(16_384 * factor, 1, 8),
        by(sparse_flops),
        by(sparse_bytes),
    )


def _axis(name: str, title: str, at: Callable[[float], Workload], sizes: tuple[float, ...]) -> Axis:
    def by(formula: Callable[[tuple[int, ...], int, int], float]) -> Callable[[float], float]:
        return lambda size: formula((grown := at(size)).shape, grown.window, grown.max_rank)

    return Axis(name, title, at, sizes, by(sweep_flops), by(step_bytes))


def _around(base: int, low: float, high: float) -> tuple[float, ...]:
    """Doubling from `low` to `high` times the base."""
    sizes, size = [], base * low
    while size <= base * high:
        sizes.append(size)
        size *= 2
    return tuple(sizes)
