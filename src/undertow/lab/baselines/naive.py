"""What needs no model: the last value, the exponentially weighted mean, and the median of a window, entry by entry.

    last    x̂ = the last value seen at the entry
    mean    x̂ ← x̂ + w (y − x̂), w = (1−ρ)/(1−ρᵏ) at the k-th value seen there: the weighted mean Σ ρ^(age) y / Σ ρ^(age),
            ages counted in values seen at the entry, unbiased from the first value on
    median  x̂ = median of the values seen at the entry in the last `window` slices; when none is left there, the last x̂

The prediction of a slice is x̂ before it, the low-rank slice x̂ after it. An entry never seen so far gets the mean of x̂
over all entries that were seen; before the first observation of all, zero. A slice without any observation does not
count. The outlier score is |y − prediction|.
Equivariant to the unit of the data. No citation: the first idea one has, and hard to beat on real streams.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import numpy as np

from undertow.lab.baselines.baseline import SCALES, Array, Baseline, BaselineResult, Mask, Stage
from undertow.lab.baselines.validation import check_settings, check_shape, observe


@dataclass(frozen=True)
class Config:
    """Settings of the naive methods.

    kind        "last", "mean" or "median"
    forgetting  ρ of the mean, in [0, 1); 0 makes it the last value
    window      slices of the median
    """

    kind: Literal["last", "mean", "median"] = "last"
    forgetting: float = 0.7
    window: int = 9

    def __post_init__(self) -> None:
        check_settings(self, integer=("window",))
        if not 0 <= self.forgetting < 1:
            raise ValueError(f"forgetting must lie in [0, 1), got {self.forgetting!r}")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What a naive method carries on.

    estimate  x̂, zero where never seen, shape
    seen      values seen at each entry, shape
    recent    the last slices, NaN where unobserved, (window, *shape); an empty window unless the kind is "median"
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    estimate: Array
    seen: Array
    recent: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Nothing seen yet."""
    sizes = check_shape(shape)
    length = config.window if config.kind == "median" else 0
    return State(config, sizes, np.zeros(sizes), np.zeros(sizes), np.full((length, *sizes), np.nan))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Move every observed entry on."""
    slice_values, observed = observe(values, mask, state.shape)
    known = bool((state.seen > 0).any())
    prediction = _with_mean(state.estimate, state.seen) if known else None
    if not observed.any():
        zero = np.zeros(state.shape)
        held = zero.copy() if prediction is None else prediction.copy()
        return state, BaselineResult(held, prediction, None, zero, None, "no data")
    seen = state.seen + observed
    recent = state.recent
    if state.config.kind == "median":
        recent = np.concatenate([recent[1:], np.where(observed, slice_values, np.nan)[None]])
    estimate = _moved(state.config, state.estimate, slice_values, observed, seen, recent)
    low_rank = _with_mean(estimate, seen)
    score = np.zeros(state.shape) if prediction is None else np.where(observed, np.abs(slice_values - prediction), 0.0)
    new = State(state.config, state.shape, estimate, seen, recent)
    return new, BaselineResult(low_rank, prediction, None, score, None, "ok")


def _moved(config: Config, old: Array, values: Array, observed: Mask, seen: Array, recent: Array) -> Array:
    if config.kind == "last":
        return np.where(observed, values, old)
    if config.kind == "mean":
        weight = (1 - config.forgetting) / (1 - config.forgetting ** np.maximum(seen, 1))
        return np.where(observed, old + weight * (values - old), old)
    ordered = np.sort(recent, axis=0)  # NaN last
    count = (~np.isnan(recent)).sum(axis=0)
    below, above = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, len(recent) - 1)
    pair = np.take_along_axis(ordered, np.stack([below, above]), axis=0)
    return np.where(count > 0, pair.mean(axis=0), old)


def _with_mean(estimate: Array, seen: Array) -> Array:
    """The estimate, its never-seen entries at the mean of the others."""
    return np.where(seen > 0, estimate, estimate.sum() / max(int((seen > 0).sum()), 1))


# A last value and a median are the same on every scale.
_MEAN: tuple[Stage, ...] = ({"forgetting": (0.3, 0.5, 0.7, 0.85, 0.95, 0.98), "scale": SCALES},)
_MEDIAN: tuple[Stage, ...] = ({"window": (3, 5, 9, 19, 41, 81)},)
BASELINES = tuple(
    Baseline(name, label, init, step, Config, "", needs_unit_scale=False, defaults={"kind": kind}, hindsight=grid)
    for name, label, kind, grid in (
        ("last_value", "last value", "last", ()),
        ("moving_mean", "moving mean", "mean", _MEAN),
        ("running_median", "running median", "median", _MEDIAN),
    )
)
