"""Local level: a random walk seen through noise at every entry, its pace chosen from a bank, robust against outliers.

A. C. Harvey, "Forecasting, structural time series models and the Kalman filter", Cambridge University Press, 1989,
section 4.1 (the filter); C. J. Masreliez, R. D. Martin, "Robust Bayesian estimation for the linear model and
robustifying the Kalman filter", IEEE Transactions on Automatic Control 22(3), 1977 (bounded innovations).

At every entry, for every pace q of the bank (variance of a step of the walk over that of the noise, σ² = 1):

    p ← p + q                     the walk goes on, also where nothing is observed
    e = y − m                     innovation, variance σ² (p + 1)
    g = p / (p + 1)
    m ← m + g · ψ(e)              ψ cuts e off at ± bound · σ √(p + 1)
    p ← g

and the answer is that of the pace with the least loss, an exponentially weighted mean of Huber's function of its
own past innovations at that entry, so a pace is judged by what it predicted before it saw the value. σ² is the
exponentially weighted mean of the chosen pace's min(e², bound² σ² (p+1)) / (p+1), drawn towards the mean over the
slice as if that had been seen three times. The first value at an entry is its level. Never-seen entries get the mean
of the others.

Cost and memory O(Π I · paces). Equivariant to the unit of the data. The bank, the choice from it and the estimate of σ
are ours; the sources leave them open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from undertow.lab.baselines.baseline import SCALES, Array, Baseline, BaselineResult, Mask
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

_PRIOR = 3.0  # values that the slice's mean variance counts for at every entry


@dataclass(frozen=True)
class Config:
    """Settings of the local level.

    paces       q of the bank, each above 0
    bound       where an innovation is cut off, in its standard deviations
    forgetting  ρ, weight of a past innovation relative to the next one, in losses and in σ²
    """

    paces: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    bound: float = 4.0
    forgetting: float = 0.98

    def __post_init__(self) -> None:
        check_settings(self, positive=("bound",), fraction=("forgetting",))
        if not self.paces or not all(np.isfinite(pace) and pace > 0 for pace in self.paces):
            raise ValueError(f"paces must be one or more numbers above 0, got {self.paces!r}")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What the bank carries on; the paces are the first axis.

    levels     m, (paces, *shape)
    variances  p after the last slice, in units of σ², (paces, *shape)
    losses     exponentially weighted sums of Huber's function, (paces, *shape)
    squares    the same sum of what σ² is the mean of, shape
    weights    the weights in both sums, shape
    seen       values seen at each entry, shape
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    levels: Array
    variances: Array
    losses: Array
    squares: Array
    weights: Array
    seen: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Nothing seen yet."""
    sizes = check_shape(shape)
    bank, entries = np.zeros((len(config.paces), *sizes)), np.zeros(sizes)
    return State(config, sizes, bank, bank.copy(), bank.copy(), entries, entries.copy(), entries.copy())


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Move every filter on; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    known = bool((state.seen > 0).any())
    prediction = _answer(state) if known else None
    zero = np.zeros(state.shape)
    if not observed.any() or not finite(slice_values**2):
        held = zero.copy() if prediction is None or observed.any() else prediction.copy()
        status = "diverged" if observed.any() else "no data"
        return _waited(state), BaselineResult(held, prediction, zero.copy(), zero, None, status)
    new, beyond = _learned(state, slice_values, observed)
    score = zero if prediction is None else np.where(observed, np.abs(slice_values - prediction), 0.0)
    return new, BaselineResult(_answer(new), prediction, beyond, score, None, "ok")


def _waited(state: State) -> State:
    """A slice in which nothing was seen: the walks go on."""
    paces = _column(state)
    return State(
        state.config,
        state.shape,
        state.levels,
        np.where(state.seen > 0, state.variances + paces, state.variances),
        state.losses,
        state.squares,
        state.weights,
        state.seen,
    )


def _learned(state: State, values: Array, observed: Mask) -> tuple[State, Array]:
    """The state after a slice, and by how much the innovations of the chosen pace went beyond the bound."""
    config = state.config
    begun = state.seen > 0
    first, again = observed & ~begun, observed & begun
    chosen = _chosen(state)
    deviation = _deviation(state)
    walked = np.where(begun, state.variances + _column(state), 0.0)
    gain = walked / (walked + 1)
    innovation = values - state.levels
    limit = config.bound * deviation * np.sqrt(walked + 1)
    bounded = np.clip(innovation, -limit, limit)
    levels = np.where(first, values, np.where(again, state.levels + gain * bounded, state.levels))
    variances = np.where(first, 1.0, np.where(again, gain, walked))

    size, knee = np.abs(innovation), np.broadcast_to(config.bound * deviation, innovation.shape)
    inside = np.minimum(size, knee)
    huber = inside * (2 * size - inside)  # e² up to the knee, a straight line beyond
    fresh = _pick(bounded, chosen) ** 2 / (_pick(walked, chosen) + 1)
    new = State(
        config,
        state.shape,
        levels,
        variances,
        np.where(again, config.forgetting * state.losses + huber, state.losses),
        np.where(again, config.forgetting * state.squares + fresh, state.squares),
        np.where(again, config.forgetting * state.weights + 1, state.weights),
        state.seen + observed,
    )
    beyond = np.where(again, _pick(innovation - bounded, chosen), 0.0)
    return new, beyond


def _deviation(state: State) -> Array:
    """σ of every entry; without bound until the first innovation."""
    total = float(state.weights.sum())
    if total == 0:
        return np.full(state.shape, np.inf)
    mean = float(state.squares.sum()) / total
    return np.sqrt((state.squares + _PRIOR * mean) / (state.weights + _PRIOR))


def _answer(state: State) -> Array:
    """The level of the chosen pace, never-seen entries at the mean of the others."""
    level, seen = _pick(state.levels, _chosen(state)), state.seen > 0
    return np.where(seen, level, level[seen].mean() if seen.any() else 0.0)


def _chosen(state: State) -> Any:
    return state.losses.argmin(axis=0)


def _pick(bank: Array, chosen: Any) -> Array:
    picked: Array = np.take_along_axis(bank, chosen[None], axis=0)[0]
    return picked


def _column(state: State) -> Array:
    """The paces, to be combined with arrays of the bank."""
    return np.reshape(state.config.paces, (-1, *[1] * len(state.shape)))


_CITATION = "A. C. Harvey, 1989; C. J. Masreliez, R. D. Martin, IEEE Trans. Autom. Control 22(3), 1977"
BASELINES = (
    Baseline(
        "local_level",
        "local level",
        init,
        step,
        Config,
        _CITATION,
        needs_unit_scale=False,
        robust=True,
        hindsight=({"scale": SCALES, "bound": (3.0, 4.0, 1e6)}, {"forgetting": (0.9, 0.95, 0.98, 0.995)}),
    ),
)
