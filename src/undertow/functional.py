"""The functional core: ``state = init(config, shape)``, ``state, result = step(state, values, mask)``.

Between the door (slices.py) and the compiled step (model/step.py) stands the unit of the stream: the median size of
the first data that are not 0. Everything inside is in that unit, so the answer does not depend on the user's.
"""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.model import rank
from undertow.model.config import Config
from undertow.model.state import Core
from undertow.model.step import Report, advance, init_core, project, smooth
from undertow.model.trouble import Trouble
from undertow.result import Estimate, Status, StepResult
from undertow.slices import Slice, as_slice

LARGEST = 1e9
"""Values beyond this many units cannot be squared and weighed safely in float32; they are outliers anyway."""


@dataclass(frozen=True)
class State:
    """All that is carried from slice to slice. Treat it as a value: `step` never changes it."""

    config: Config
    shape: tuple[int, ...]
    """(I_1, …, I_N)."""
    unit: float
    """Size of the data, fixed by the first that are not 0; 0 until then."""
    steps: int
    """Slices seen."""
    core: Core
    """The arrays, in units of the stream."""


def init(config: Config, shape: tuple[int, ...]) -> State:
    """A state that has seen nothing. Refuses shapes whose state would not fit into memory."""
    try:
        shape = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be a tuple of whole numbers, got {shape!r}.") from None
    if not shape or min(shape) < 1:
        raise ValueError(f"shape must name at least one mode, each of size 1 or more, got {shape}.")
    check_memory(config, shape)
    with scope(config):
        return State(config, shape, unit=0.0, steps=0, core=init_core(config, shape))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, StepResult]:
    """Learn from one slice. Bad input raises and leaves the state usable; numerical trouble is a `status`."""
    return learn(state, as_slice(values, mask, shape=state.shape))


def learn(state: State, piece: Slice) -> tuple[State, StepResult]:
    """`step` for a slice that has been checked already."""
    state = _with_unit(state, piece)
    values, mask, left_out = _scaled(state, piece)
    with scope(state.config):
        core, report = advance(state.core, values, mask, state.config)
        report = jax.device_get(report)
    estimate = _estimate(state, report, piece, left_out)
    result = StepResult(**vars(estimate), iterations=int(report.iterations), evidence=_finite(report.evidence))
    if Trouble.NOT_FINITE in estimate.status.trouble:
        return state, result
    return replace(state, steps=state.steps + 1, core=core), result


def look(state: State, values: Any, mask: Any = None) -> Estimate:
    """What `step` would say with the factors held fixed: nothing is learned."""
    piece = as_slice(values, mask, shape=state.shape)
    state = _with_unit(state, piece)
    values, mask, left_out = _scaled(state, piece)
    with scope(state.config):
        report = jax.device_get(project(state.core, values, mask, state.config))
    return _estimate(state, report, piece, left_out)


def smoothed(state: State, lag: int) -> Estimate:
    """What is known now about the slice `lag` steps before the newest; later slices have corrected it."""
    most = min(state.steps, state.config.window)
    if isinstance(lag, bool) or not hasattr(lag, "__index__"):
        raise TypeError(f"lag must be a whole number, got {lag!r}.")
    if not 0 <= lag < most:
        raise ValueError(f"lag must be at least 0 and below the {most} slices now in the window, got {lag!r}.")
    with scope(state.config):
        report = jax.device_get(smooth(state.core, np.int32(lag), state.config))
    return _estimate(state, report)


def living(state: State) -> NDArray[np.bool_]:
    """Which of the `max_rank` components count."""
    with scope(state.config):
        return np.asarray(rank.living(state.core.factors, state.config.start))


def scope(config: Config) -> Any:
    """The precision of this model, whatever JAX's global setting; to be held around every compiled call."""
    return jax.enable_x64(config.dtype == "float64")


def check_memory(config: Config, shape: tuple[int, ...]) -> None:
    """Refuse, before anything is allocated, what cannot fit into the memory now free."""
    size = 8 if config.dtype == "float64" else 4
    entries, packed = math.prod(shape), config.max_rank * (config.max_rank + 1) // 2
    window = config.window * entries * (12 * size + 1)
    contracted = sorted((config.window, *shape))[-2]  # the sweeps sum over the two biggest axes first
    products = 4 * config.window * entries // contracted * packed * size
    rows = 8 * (sum(shape) + config.window) * config.max_rank**2 * size
    rows += 3 * max(shape) ** 2 * size if config.start == "svd" else 0
    free = _free_memory()
    if window + products + rows > free:
        raise ValueError(
            f"x of shape {shape} with window={config.window} and max_rank={config.max_rank} needs about "
            f"{(window + products + rows) / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free: "
            "use a smaller window or max_rank, or cut the slices into smaller ones."
        )


def _free_memory() -> int:
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux: all there is, since what is free cannot be told
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62


def _with_unit(state: State, piece: Slice) -> State:
    """Fix the unit when the first data other than 0 arrive; what was learned from zeros alone is dropped."""
    if state.unit > 0:
        return state
    sizes = np.abs(piece.values[piece.mask & (piece.values != 0)])
    if not sizes.size:
        return state
    with scope(state.config):
        core = replace(init_core(state.config, state.shape), window=state.core.window)
    largest = sizes.max().astype(np.float64)  # the median averages two values: they must not overflow
    return replace(state, unit=float(np.median(sizes / largest) * largest), core=core)


def _scaled(state: State, piece: Slice) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
    """Values in units of the stream, the mask of those that can be computed with, and what was left out."""
    values = piece.values.astype(np.float64)
    if state.unit > 0:
        with np.errstate(over="ignore"):
            values = values / state.unit
    left_out = np.abs(values) > LARGEST
    mask = piece.mask & ~left_out
    return np.where(mask, values, 0).astype(state.config.dtype), mask, left_out


def _estimate(
    state: State, report: Report, piece: Slice | None = None, left_out: NDArray[np.bool_] | None = None
) -> Estimate:
    """The report in units of the data; entries of the slice that were left out are added as outliers."""

    def in_data_units(values: Any) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # data at the very end of float64; the largest number is near enough
            return np.nan_to_num(np.nan_to_num(np.asarray(values, np.float64)) * state.unit)

    variance = np.asarray(report.low_rank_variance, np.float64)
    low_rank = in_data_units(report.low_rank)
    outliers = in_data_units(report.outliers)
    probability = np.nan_to_num(np.asarray(report.outlier_probability, np.float64))
    trouble = Trouble(int(report.trouble))
    if piece is not None and left_out is not None and left_out.any():
        trouble |= Trouble.OUT_OF_RANGE
        outliers = np.where(left_out, piece.values - low_rank, outliers)
        probability = np.where(left_out, 1.0, probability)
    return Estimate(
        low_rank=low_rank,
        std=in_data_units(np.sqrt(variance + np.asarray(report.noise_variance, np.float64))),
        low_rank_std=in_data_units(np.sqrt(variance)),
        outliers=outliers,
        outlier_probability=probability,
        rank=int(report.rank),
        noise_std=float(in_data_units(np.sqrt(np.float64(report.typical_noise)))),
        status=Status(trouble),
    )


def _finite(value: Any) -> float:
    return float(np.nan_to_num(np.float64(value)))
