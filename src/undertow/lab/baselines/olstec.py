"""OLSTEC: CP of incomplete slices by recursive least squares, one small regression per row of every factor.

H. Kasai, "Online low-rank tensor subspace tracking from incomplete data by CP decomposition using recursive least
squares", ICASSP 2016 (exponential window) and "Fast online low-rank tensor subspace tracking by CP decomposition using
recursive least squares from incomplete observations", Neurocomputing 347, 2019 (truncated window).

For slice t: the temporal row c by ridge regression on the factors of t−1, then mode after mode, all rows i together,

    G_i = Σ_Ω α αᵀ,  p_i = Σ_Ω α y        α = c ∘ (rows of the other modes; modes before n already new)
    R_i ← ρ R_i + G_i + μ(1−ρ) I          − ρ^L G_i of slice t−L     (truncated window only)
    s_i ← ρ s_i + p_i                     − ρ^L p_i of slice t−L     (truncated window only)
    a_i = R_i⁻¹ s_i

and c once more. This is the published recursion a ← a + R⁻¹(Σ α (y − αᵀa) − μ(1−ρ) a) written with the statistics it
stands for: it minimises Σ_t ρ^(T−t) Σ_Ω (y − αᵀa)² + a decaying ridge that ends at μ. The start is A⁽ⁿ⁾ ~ N(0, 1),
R = I/100, s = R a. Cost O(Π I · R²) + O(Σ I · R³) a slice.

Deviations from the published code. Its truncated window holds two errors, both absent here: the second factor is
shrunk along the last row of the first factor's loop instead of its own, and the residual of the slice that leaves is
subtracted without R⁻¹. Slices of any order instead of matrices. A slice without a single observation is skipped.
As published, the ridge of the temporal row has the same value as the forgetting factor (0.7): one variable serves both
in that code; here it is a setting of its own. Not equivariant to the unit of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines import cp
from undertow.lab.baselines.baseline import RANK_AND_SCALE, Array, Baseline, BaselineResult
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

_START_PRECISION = 0.01  # the published start, R⁻¹ = 100 I


@dataclass(frozen=True)
class Config:
    """Settings of OLSTEC; the defaults are the published ones.

    rank                     R, components of the slice
    forgetting               ρ, weight of a slice relative to the next one
    regularisation           μ, ridge of the factor rows
    temporal_regularisation  ridge of the temporal row
    window                   L, slices of the truncated window; None for the exponential one (published: 10)
    seed                     of the random start
    """

    rank: int = 5
    forgetting: float = 0.7
    regularisation: float = 0.1
    temporal_regularisation: float = 0.7
    window: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(
            self,
            integer=("rank",),
            fraction=("forgetting",),
            not_negative=("regularisation",),
            positive=("temporal_regularisation",),
        )
        if self.window is not None:
            check_settings(self, integer=("window",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What OLSTEC carries on; one array per mode in every tuple.

    factors      A⁽ⁿ⁾, (I_n, R)
    information  R_i of every row, (I_n, R, R)
    targets      s_i of every row, (I_n, R)
    grams        G_i of the last L slices, oldest first, (L, I_n, R, R); L = 0 for the exponential window
    projections  p_i of the last L slices, (L, I_n, R)
    row          c of the last slice, (R,)
    count        slices learned from, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    factors: tuple[Array, ...]
    information: tuple[Array, ...]
    targets: tuple[Array, ...]
    grams: tuple[Array, ...]
    projections: tuple[Array, ...]
    row: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Random factors with a weak memory of themselves."""
    sizes, rank, length = check_shape(shape), config.rank, config.window or 0
    draw = np.random.default_rng(config.seed)
    factors = tuple(draw.standard_normal((size, rank)) for size in sizes)
    return State(
        config,
        sizes,
        factors,
        information=tuple(np.tile(_START_PRECISION * np.eye(rank), (size, 1, 1)) for size in sizes),
        targets=tuple(_START_PRECISION * factor for factor in factors),
        grams=tuple(np.zeros((length, size, rank, rank)) for size in sizes),
        projections=tuple(np.zeros((length, size, rank)) for size in sizes),
        row=np.zeros(rank),
        count=np.zeros(()),
    )


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Learn from one slice; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    config = state.config
    with jax.enable_x64(True):
        settings = np.array([config.forgetting, config.regularisation, config.temporal_regularisation])
        memory = (state.factors, state.information, state.targets, state.grams, state.projections, state.row)
        learned = _learn(
            slice_values, observed.astype(np.float64), memory, settings, truncated=config.window is not None
        )
        new_memory, low_rank, previous = jax.tree.map(np.array, learned)
    prediction = previous if state.count > 0 else None
    if not observed.any():
        return state, BaselineResult(previous, prediction, None, np.zeros(state.shape), config.rank, "no data")
    if not finite(new_memory, low_rank):
        zero = np.zeros(state.shape)
        return state, BaselineResult(zero, prediction, None, np.abs(slice_values), config.rank, "diverged")
    score = np.where(observed, np.abs(slice_values - low_rank), 0.0)
    state = State(config, state.shape, *(*new_memory, state.count + 1))
    return state, BaselineResult(low_rank, prediction, None, score, config.rank, "ok")


@partial(jax.jit, static_argnames="truncated")
def _learn(
    values: jax.Array, mask: jax.Array, memory: tuple[Any, ...], settings: jax.Array, truncated: bool
) -> tuple[tuple[Any, ...], jax.Array, jax.Array]:
    old_factors, old_information, old_targets, old_grams, old_projections, last_row = memory
    forgetting, regularisation, ridge = settings
    rank = last_row.shape[0]
    factors, powers = list(old_factors), [cp.squares(factor) for factor in old_factors]
    information, targets, grams, projections = [], [], [], []
    row = cp.temporal_row(values, mask, factors, ridge)
    for mode in range(len(factors)):
        gram = cp.contract(mask, powers, mode).reshape(-1, rank, rank) * jnp.outer(row, row)
        projection = cp.contract(values, factors, mode) * row
        kept = forgetting * old_information[mode] + gram
        target = forgetting * old_targets[mode] + projection
        if truncated:
            evicted = forgetting ** old_grams[mode].shape[0]
            kept = kept - evicted * old_grams[mode][0]
            target = target - evicted * old_projections[mode][0]
            grams.append(jnp.concatenate([old_grams[mode][1:], gram[None]]))
            projections.append(jnp.concatenate([old_projections[mode][1:], projection[None]]))
        else:
            grams.append(old_grams[mode])
            projections.append(old_projections[mode])
        information.append(kept + regularisation * (1 - forgetting) * jnp.eye(rank, dtype=row.dtype))
        targets.append(target)
        factors[mode] = cp.solve_positive(information[mode], target)
        powers[mode] = cp.squares(factors[mode])
    row = cp.temporal_row(values, mask, factors, ridge)
    new_memory = (tuple(factors), tuple(information), tuple(targets), tuple(grams), tuple(projections), row)
    return new_memory, cp.compose(factors, row), cp.compose(old_factors, last_row)


_CITATION = "H. Kasai, ICASSP 2016; Neurocomputing 347, 2019"
_GRID = (*RANK_AND_SCALE, {"forgetting": (0.9, 0.98), "temporal_regularisation": (0.01, 0.7)})
_TRUNCATED_GRID = (*RANK_AND_SCALE, {"window": (10, 20, 40), "forgetting": (0.9, 0.98)})
BASELINES = (
    Baseline("olstec", "OLSTEC", init, step, Config, _CITATION, hindsight=_GRID),
    Baseline(
        "olstec_truncated",
        "OLSTEC (truncated)",
        init,
        step,
        Config,
        _CITATION,
        defaults={"window": 10},
        hindsight=_TRUNCATED_GRID,
    ),
)
