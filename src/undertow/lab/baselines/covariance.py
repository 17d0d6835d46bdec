"""Covariance: exponentially weighted mean and covariance of all entries, missing ones by the Gaussian conditional mean.

R. J. A. Little, D. B. Rubin, "Statistical analysis with missing data", Wiley, 1987, section 8.2: the EM step of an
incomplete normal sample, here once for every slice and with forgetting instead of a fixed sample.

With the mean μ, the covariance Σ = D R D (D standard deviations, R correlations) and R drawn towards the identity,
R ← (1−s) R + s I, a slice with the observed entries o and the missing ones m is

    z_o = D_o⁻¹ (y_o − μ_o)
    z_m = R_mo R_oo⁻¹ z_o                       conditional mean
    V_m = R_mm − R_mo R_oo⁻¹ R_om               conditional covariance
    x̂  = μ + D z

and is then learned: w ← ρ w + 1, Σ ← Σ + (D (z zᵀ + V) D − Σ) / w with the deviation from the old mean, and the mean
of the observed entries as an exponentially weighted mean over the values seen there. The two have half-lives of
their own, ρ = ½^(1/half-life).

Cost O(n³) and memory O(n²) for n entries: for small slices only, at most 2,000. Not robust. Equivariant to the unit of
the data. Forgetting, shrinkage and the start (variance of the first slice at every entry, no correlation) are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from undertow.lab.baselines.baseline import SCALES, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

MOST_ENTRIES = 2_000


@dataclass(frozen=True)
class Config:
    """Settings of the covariance.

    mean_half_life        values after which one seen counts half in the mean
    covariance_half_life  slices after which one counts half in the covariance
    shrinkage             s, weight of the identity in the correlations
    """

    mean_half_life: float = 20.0
    covariance_half_life: float = 100.0
    shrinkage: float = 0.2

    def __post_init__(self) -> None:
        check_settings(self, positive=("mean_half_life", "covariance_half_life"), fraction=("shrinkage",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What the covariance carries on, for n entries.

    mean        μ, zero where never seen, (n,)
    seen        weights in the mean, (n,)
    covariance  Σ, (n, n)
    weight      w, the weights in Σ, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    mean: Array
    seen: Array
    covariance: Array
    weight: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Nothing seen yet; refuses slices whose covariance would not fit."""
    sizes = check_shape(shape)
    count = int(np.prod(sizes))
    if count > MOST_ENTRIES:
        raise ValueError(
            f"shape must hold at most {MOST_ENTRIES} entries for a full covariance, got {count}: choose another method"
        )
    return State(config, sizes, np.zeros(count), np.zeros(count), np.zeros((count, count)), np.zeros(()))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Complete one slice and learn it; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    flat, flags = slice_values.ravel(), observed.ravel()
    known, zero = bool((state.seen > 0).any()), np.zeros(state.shape)
    prediction = _mean(state).reshape(state.shape) if known else None
    if not flags.any():
        held = zero.copy() if prediction is None else prediction.copy()
        return state, BaselineResult(held, prediction, None, zero, None, "no data")
    begun = state if known else _started(state, flat, flags)
    new, completed = _learned(begun, flat, flags)
    if not finite(new, completed):
        return state, BaselineResult(zero, prediction, None, zero.copy(), None, "diverged")
    centre = _mean(begun).reshape(state.shape)
    score = np.where(observed, np.abs(slice_values - centre), 0.0)
    return new, BaselineResult(completed.reshape(state.shape), prediction, None, score, None, "ok")


def _started(state: State, values: Array, observed: Mask) -> State:
    """The standard deviation of the first slice stands for that of every entry until they have one of their own."""
    seen = values[observed]
    size = float(np.abs(seen).max()) or 1.0  # keeps the squares within range
    deviation = float((seen / size).std() or np.abs(seen / size).mean() or 1.0) * size
    mean = np.where(observed, values, 0.0)
    covariance = np.diag(np.full(values.size, deviation) ** 2)
    return State(state.config, state.shape, mean, np.where(observed, 1.0, 0.0), covariance, np.ones(()))


def _learned(state: State, values: Array, observed: Mask) -> tuple[State, Array]:
    """The state after a slice, and the slice with its missing entries at their conditional mean."""
    config, mean = state.config, _mean(state)
    deviation, correlation = _standardised(state)
    standard = np.where(observed, (values - mean) / deviation, 0.0)
    around = np.zeros_like(correlation)
    missing = ~observed
    if missing.any():
        across = correlation[np.ix_(observed, missing)]
        try:
            slopes = cho_solve(cho_factor(correlation[np.ix_(observed, observed)], lower=True), across)
        except (LinAlgError, ValueError):  # not positive definite, or not finite, any more: entries on their own
            slopes = np.zeros_like(across)
        standard[missing] = slopes.T @ standard[observed]
        around[np.ix_(missing, missing)] = correlation[np.ix_(missing, missing)] - across.T @ slopes
    completed = np.where(observed, values, mean + deviation * standard)

    weight = 0.5 ** (1 / config.covariance_half_life) * state.weight + 1
    target = np.outer(deviation, deviation) * (np.outer(standard, standard) + around)
    covariance = state.covariance + (target - state.covariance) / weight
    seen = np.where(observed, 0.5 ** (1 / config.mean_half_life) * state.seen + 1, state.seen)
    moved = np.where(state.seen > 0, mean + (values - mean) / np.maximum(seen, 1.0), values)
    return State(config, state.shape, np.where(observed, moved, state.mean), seen, covariance, weight), completed


def _standardised(state: State) -> tuple[Array, Array]:
    """D and R, shrunk; entries that have never varied get the mean variance."""
    variance = np.diag(state.covariance)
    mean = float(variance.mean())
    deviation = np.sqrt(np.where(variance > 1e-12 * mean, variance, mean or 1.0))
    correlation = (1 - state.config.shrinkage) * state.covariance / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, 1.0)
    return deviation, correlation


def _mean(state: State) -> Array:
    """μ, never-seen entries at the mean of the others."""
    known = state.seen > 0
    return np.where(known, state.mean, state.mean[known].mean() if known.any() else 0.0)


_CITATION = "R. J. A. Little, D. B. Rubin, Statistical Analysis with Missing Data, Wiley, 1987"
BASELINES = (
    Baseline(
        "covariance",
        "covariance",
        init,
        step,
        Config,
        _CITATION,
        needs_unit_scale=False,
        most_entries=MOST_ENTRIES,
        hindsight=(
            {"scale": SCALES, "shrinkage": (0.02, 0.1, 0.2, 0.4)},
            {"mean_half_life": (20.0, 100.0), "covariance_half_life": (5.0, 20.0, 100.0, 400.0)},
            {"shrinkage": (0.005, 0.02, 0.05, 0.1, 0.4)},
        ),
    ),
)
