"""The functional core: ``state = init(config, shape)``, ``state, result = step(state, values, mask)``.

Between the door (slices.py) and the compiled step (model/step.py) stands the unit of the stream: the median size of
the first data that are not 0. Everything inside is in that unit, so the answer does not depend on the user's.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.model import rank
from undertow.model.config import Config
from undertow.model.level import PACES
from undertow.model.state import Core
from undertow.model.step import Report, advance, init_core, project, smooth
from undertow.model.step import foretell as run_foretell
from undertow.model.trouble import Trouble
from undertow.result import Estimate, Status, StepResult
from undertow.slices import Slice, as_slice

TOLD = ("level", "robust", "noise", "scale", "forgetting", "max_rank", "window")
"""Settings that every result names."""
LOG_UNIT = 0.5
"""Where the logarithmic scale bends into a linear one, in units of the stream."""
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
    check_memory([config], shape)
    with scope(config):
        return State(config, shape, unit=0.0, steps=0, core=init_core(config, shape))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, StepResult]:
    """Learn from one slice. Bad input raises and leaves the state usable; numerical trouble is a `status`."""
    piece = as_slice(values, mask, shape=state.shape)
    foretold = None if state.config.robust else foretell(state, piece)
    lesson = Lesson.begin(state, piece)
    return lesson.state(), lesson.result(foretold)


@dataclass(frozen=True)
class Lesson:
    """A slice that is being learned: the device may still be at work."""

    before: State
    after: State
    report: Report
    piece: Slice
    left_out: NDArray[np.bool_]

    @classmethod
    def begin(cls, state: State, piece: Slice) -> Lesson:
        """Hand the slice to the compiled step, and do not wait for it."""
        state = _with_unit(state, piece)
        values, mask, left_out = _scaled(state, piece)
        with scope(state.config):
            core, report = advance(state.core, values, mask, state.config)
        return cls(state, replace(state, steps=state.steps + 1, core=core), report, piece, left_out)

    def state(self) -> State:
        """The state that has learned; the one before if the arithmetic overflowed."""
        return self.before if Trouble.NOT_FINITE in Trouble(int(self.report.trouble)) else self.after

    def result(self, foretold: Foretold | None) -> StepResult:
        """What the slice holds; a model that is not robust tells outliers by what was foretold."""
        report = jax.device_get(self.report)
        expected = None
        if foretold is not None and not self.before.config.robust:
            report, expected = _surprises(self.before, report, self.piece, foretold), foretold.mean
        estimate = _estimate(self.before, report, self.piece, self.left_out, expected)
        return StepResult(**vars(estimate), iterations=int(report.iterations), evidence=_finite(report.evidence))


@dataclass(frozen=True)
class Foretold:
    """Every observed entry of a slice as the other half of it tells it, before anything is learned from it."""

    mean: NDArray[Any]
    """On the scale and in the unit of the model, as is all here."""
    variance: NDArray[Any]

    def in_data_units(self, state: State) -> NDArray[np.float64]:
        """The means in units of the data."""
        return _unscaled(state, self.mean)


def foretell(state: State, piece: Slice) -> Foretold | None:
    """Foretell one half of a slice from the other, both ways; None as long as nothing has been learned."""
    if state.unit == 0 or state.steps == 0:
        return None
    values, mask, _ = _scaled(state, piece)
    half = np.random.default_rng(state.steps).random(state.shape) < 0.5
    with scope(state.config):
        mean, variance = jax.device_get(run_foretell(state.core, values, mask, half, state.config))
    return Foretold(mean, variance)


def _surprises(state: State, report: Report, piece: Slice, foretold: Foretold) -> Report:
    """The report with outliers by what was foretold: for a model that learns from every entry alike."""
    values, mask, _ = _scaled(state, piece)
    rate, ratio = state.config.outlier_rate, state.config.outlier_variance
    surprise = values - foretold.mean
    logit = np.log(rate / (1 - rate)) - np.log(ratio) / 2 + (1 - 1 / ratio) / 2 * surprise**2 / foretold.variance
    probability = np.where(mask, 1 / (1 + np.exp(-np.clip(logit, -700, 700))), 0)
    outliers: Any = probability * (1 - 1 / ratio) * surprise
    told: Any = probability
    return replace(report, outlier_probability=told, outliers=outliers)


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


def check_memory(configs: Sequence[Config], shape: tuple[int, ...]) -> None:
    """Refuse, before anything is allocated, what cannot fit into the memory now free. All configurations together."""
    config = configs[0]
    size = 8 if config.dtype == "float64" else 4
    entries, packed = math.prod(shape), config.max_rank * (config.max_rank + 1) // 2
    kept = (config.window * (5 * size + 1) + 5 * len(PACES) * size) * entries
    rows = 8 * (sum(shape) + config.window) * config.max_rank**2 * size
    worked = config.window * entries * 11 * size
    contracted = sorted((config.window, *shape))[-2]  # the sweeps sum over the two biggest axes first
    worked += 4 * config.window * entries // contracted * packed * size
    worked += 3 * max(shape) ** 2 * size if config.start == "svd" else 0
    needed, free = len(configs) * (kept + rows) + worked, _free_memory()
    if needed > free:
        raise ValueError(
            f"x of shape {shape} with window={config.window} and max_rank={config.max_rank} needs about "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free: "
            "use a smaller window or max_rank, preset='fixed', or cut the slices into smaller ones."
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
    """Values on the scale and in the unit of the model, the mask of those to compute with, and what was left out."""
    values = piece.values.astype(np.float64)
    if state.unit > 0:
        with np.errstate(over="ignore"):
            values = values / state.unit
    left_out = np.abs(values) > LARGEST
    mask = piece.mask & ~left_out
    values = np.where(mask, values, 0)
    if state.config.scale == "log":
        values = np.arcsinh(values / LOG_UNIT)
    return values.astype(state.config.dtype), mask, left_out


def _unscaled(state: State, scaled: Any) -> NDArray[np.float64]:
    """What `_scaled` did, undone; what does not fit float64 becomes its largest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        values: NDArray[np.float64] = np.nan_to_num(np.asarray(scaled, np.float64))
        if state.config.scale == "log":
            values = LOG_UNIT * np.sinh(values)
        back: NDArray[np.float64] = np.nan_to_num(values * state.unit)
        return back


def _estimate(
    state: State,
    report: Report,
    piece: Slice | None = None,
    left_out: NDArray[np.bool_] | None = None,
    expected: NDArray[Any] | None = None,
) -> Estimate:
    """The report in units of the data; entries of the slice that were left out are added as outliers.

    `expected` is what outliers stand on; the low rank, if nothing else.
    """
    centre = np.nan_to_num(np.asarray(report.low_rank, np.float64))

    def spread(reach: Any) -> NDArray[np.float64]:
        """From `reach` below the centre to as much above it."""
        if state.config.scale == "linear":
            return _unscaled(state, 2 * reach)
        return _unscaled(state, centre + reach) - _unscaled(state, centre - reach)

    def deviation(variance: Any) -> NDArray[np.float64]:
        """The 95 % interval over its width in standard deviations."""
        return spread(1.96 * np.sqrt(np.asarray(variance, np.float64))) / (2 * 1.96)

    low_rank = _unscaled(state, centre)
    outliers = _unscaled(state, report.outliers)
    if state.config.scale == "log":  # what the outlier adds depends on where it stands
        base = centre if expected is None else expected.astype(np.float64)
        outliers = _unscaled(state, base + np.asarray(report.outliers, np.float64)) - _unscaled(state, base)
    probability = np.nan_to_num(np.asarray(report.outlier_probability, np.float64))
    trouble = Trouble(int(report.trouble))
    if piece is not None and left_out is not None and left_out.any():
        trouble |= Trouble.OUT_OF_RANGE
        outliers = np.where(left_out, piece.values - low_rank, outliers)
        probability = np.where(left_out, 1.0, probability)
    noise = np.sqrt(np.float64(report.typical_noise)) * state.unit
    if state.config.scale == "log":
        noise *= np.hypot(LOG_UNIT, 1)  # as at the unit of the stream
    return Estimate(
        low_rank=low_rank,
        std=deviation(report.low_rank_variance + report.noise_variance),
        low_rank_std=deviation(report.low_rank_variance),
        outliers=outliers,
        outlier_probability=probability,
        rank=int(report.rank),
        noise_std=_finite(noise),
        status=Status(trouble),
        settings={name: getattr(state.config, name) for name in TOLD},
    )


def _finite(value: Any) -> float:
    return float(np.nan_to_num(np.float64(value)))
