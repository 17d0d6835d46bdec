"""Online-SGD, known as TeCPSGD: CP of incomplete slices by one stochastic gradient step a slice.

M. Mardani, G. Mateos, G. B. Giannakis, "Subspace learning and imputation for streaming big data matrices and tensors",
IEEE Transactions on Signal Processing 63(10), 2015, equations (18) and (20) to (22).

For slice t with the observed entries Ω:

    c    = argmin_c Σ_Ω (y − Σ_r c_r Π_n a_r)² + λ ‖c‖²                     temporal row, old factors
    A⁽ⁿ⁾ ← (1 − λη) A⁽ⁿ⁾ + η · mttkrp_n(Ω ∘ (y − x̂)) diag(c)               every mode from the same old factors
    η    = step / (1 + λ · step · t)                                       slice number t from 1
    c    again with the new factors; the low-rank slice is Σ_r c_r a⁽¹⁾_r ∘ … ∘ a⁽ᴺ⁾_r

The start is A⁽ⁿ⁾ ~ N(0, 1). Cost O(Π I · R²) a slice. The published code takes matrix slices; this one any order.
Deviation: a slice without a single observation is skipped instead of shrinking the factors, and η counts the slices
learned from. The method is not equivariant to the unit of the data: it expects entries of about 1 (the gradient
step diverges on large ones).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from undertow.lab.baselines import cp
from undertow.lab.baselines.baseline import RANK_AND_SCALE, Array, Baseline, BaselineResult
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe


@dataclass(frozen=True)
class Config:
    """Settings of Online-SGD; the defaults are the published ones.

    rank            R, components of the slice
    regularisation  λ, weight of ‖c‖² and of the factors
    step            the step size before it shrinks with the slice number
    seed            of the random start
    """

    rank: int = 5
    regularisation: float = 0.001
    step: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank",), not_negative=("regularisation",), positive=("step",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What Online-SGD carries on.

    factors  A⁽ⁿ⁾, one (I_n, R) per mode
    row      c of the last slice, (R,)
    count    slices learned from, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    factors: tuple[Array, ...]
    row: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Random factors, as the published code starts."""
    sizes = check_shape(shape)
    draw = np.random.default_rng(config.seed)
    factors = tuple(draw.standard_normal((size, config.rank)) for size in sizes)
    return State(config, sizes, factors, np.zeros(config.rank), np.zeros(()))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Learn from one slice; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    config = state.config
    with jax.enable_x64(True):
        settings = np.array([config.regularisation, config.step])
        learned = _learn(slice_values, observed.astype(np.float64), state.factors, state.row, state.count, settings)
        factors, row, low_rank, previous = jax.tree.map(np.array, learned)
    prediction = previous if state.count > 0 else None
    if not observed.any():
        return state, BaselineResult(previous, prediction, None, np.zeros(state.shape), config.rank, "no data")
    if not finite(factors, row, low_rank):
        zero = np.zeros(state.shape)
        return state, BaselineResult(zero, prediction, None, np.abs(slice_values), config.rank, "diverged")
    score = np.where(observed, np.abs(slice_values - low_rank), 0.0)
    state = State(config, state.shape, tuple(factors), row, state.count + 1)
    return state, BaselineResult(low_rank, prediction, None, score, config.rank, "ok")


@jax.jit
def _learn(
    values: jax.Array,
    mask: jax.Array,
    factors: tuple[jax.Array, ...],
    last_row: jax.Array,
    count: jax.Array,
    settings: jax.Array,
) -> tuple[tuple[jax.Array, ...], jax.Array, jax.Array, jax.Array]:
    regularisation, step_size = settings
    rate = step_size / (1 + regularisation * step_size * (count + 1))
    row = cp.temporal_row(values, mask, factors, regularisation)
    residual = mask * (values - cp.compose(factors, row))
    moved = tuple(
        (1 - regularisation * rate) * factor + rate * cp.contract(residual, factors, mode) * row
        for mode, factor in enumerate(factors)
    )
    row = cp.temporal_row(values, mask, moved, regularisation)
    return moved, row, cp.compose(moved, row), cp.compose(factors, last_row)


_CITATION = "M. Mardani, G. Mateos, G. B. Giannakis, IEEE Trans. Signal Process. 63(10), 2015"
BASELINES = (
    Baseline(
        "online_sgd",
        "Online-SGD",
        init,
        step,
        Config,
        _CITATION,
        hindsight=(*RANK_AND_SCALE, {"step": (0.01, 0.03, 0.1, 0.3), "regularisation": (0.001, 0.1)}),
    ),
)
