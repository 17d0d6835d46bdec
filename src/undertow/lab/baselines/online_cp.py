"""Online-CP: CP of full slices that grows with the stream, by accumulating the normal equations of every mode.

S. Zhou, N. X. Vinh, J. Bailey, Y. Jia, I. Davidson, "Accelerating online CP decompositions for higher order tensors",
KDD 2016.

The first slices are decomposed together by CP-ALS. Then for every new slice, with the factors of t−1 throughout,

    c    = vec(X)ᵀ K (∘_n A⁽ⁿ⁾ᵀA⁽ⁿ⁾)⁻¹                             K = Khatri-Rao product of all factors
    P⁽ⁿ⁾ ← P⁽ⁿ⁾ + mttkrp_n(X) diag(c)
    Q⁽ⁿ⁾ ← Q⁽ⁿ⁾ + c cᵀ ∘ (∘_{k≠n} A⁽ᵏ⁾ᵀA⁽ᵏ⁾)
    A⁽ⁿ⁾ = P⁽ⁿ⁾ Q⁽ⁿ⁾⁻¹

and the low-rank slice is Σ_r c_r a⁽¹⁾_r ∘ … ∘ a⁽ᴺ⁾_r with the new factors and that c. Nothing is forgotten and nothing
is robust: as published. Cost O(Π I · R) a slice. Full data only. Equivariant to the unit of the data.

Deviation: singular normal equations are solved in the least-squares sense (as where a component is zero), and slices of
order one are taken too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines import cp
from undertow.lab.baselines.baseline import RANK_AND_SCALE, Array, Baseline, BaselineResult
from undertow.lab.baselines.cp_als import cp_als
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe_all


@dataclass(frozen=True)
class Config:
    """Settings of Online-CP; the defaults are those of the published experiments.

    rank            R, components
    initial_slices  slices gathered for the CP-ALS start
    iterations      of CP-ALS, at most; the published 100 sometimes end in a swamp that 1000 would leave
    tolerance       change of fit at which CP-ALS stops
    seed            of the random start of CP-ALS
    """

    rank: int = 5
    initial_slices: int = 5
    iterations: int = 100
    tolerance: float = 1e-8
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank", "initial_slices", "iterations"), positive=("tolerance",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What Online-CP carries on.

    gathered     the first slices, filled from the front, (initial_slices, *shape)
    factors      A⁽ⁿ⁾, one (I_n, R) per mode
    projections  P⁽ⁿ⁾, one (I_n, R) per mode
    grams        Q⁽ⁿ⁾, one (R, R) per mode
    row          c of the last slice, (R,)
    count        slices seen, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    gathered: Array
    factors: tuple[Array, ...]
    projections: tuple[Array, ...]
    grams: tuple[Array, ...]
    row: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """An empty memory: the method starts once its first slices are there."""
    sizes, rank = check_shape(shape), config.rank
    empty = tuple(np.zeros((size, rank)) for size in sizes)
    grams = tuple(np.zeros((rank, rank)) for _ in sizes)
    gathered = np.zeros((config.initial_slices, *sizes))
    return State(config, sizes, gathered, empty, empty, grams, np.zeros(rank), np.zeros(()))


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Gather, start, or learn from one slice; see the module's equations."""
    slice_values = observe_all(values, mask, state.shape, "Online-CP")
    config, seen = state.config, int(state.count)
    if seen < config.initial_slices:
        return _gather(state, slice_values, seen)
    with jax.enable_x64(True):
        memory = (state.factors, state.projections, state.grams, state.row)
        learned, low_rank, previous = jax.tree.map(np.array, _learn(slice_values, memory))
    if not finite(learned, low_rank):
        zero = np.zeros(state.shape)
        return state, BaselineResult(zero, previous, None, np.abs(slice_values), config.rank, "diverged")
    state = State(config, state.shape, state.gathered, *(*learned, state.count + 1))
    return state, BaselineResult(low_rank, previous, None, np.abs(slice_values - low_rank), config.rank, "ok")


def _gather(state: State, values: Array, seen: int) -> tuple[State, BaselineResult]:
    config = state.config
    gathered = state.gathered.copy()
    gathered[seen] = values
    prediction = state.gathered[seen - 1].copy() if seen else None
    if seen + 1 < config.initial_slices:
        state = State(
            config, state.shape, gathered, state.factors, state.projections, state.grams, state.row, state.count + 1
        )
        result = BaselineResult(values, prediction, None, np.zeros(state.shape), None, "initialising")
        return state, result
    stacked = np.moveaxis(gathered, 0, -1)
    *factors, rows = cp_als(stacked, config.rank, config.iterations, config.tolerance, config.seed)
    with jax.enable_x64(True):
        projections, grams, low_rank = jax.tree.map(np.array, _accumulate(stacked, tuple(factors), rows))
    if not finite(factors, projections, grams, low_rank):
        failed = BaselineResult(np.zeros(state.shape), prediction, None, np.abs(values), None, "diverged")
        return init(config, state.shape), failed  # gather afresh: these slices cannot be factorised
    state = State(config, state.shape, gathered, tuple(factors), projections, grams, rows[-1].copy(), state.count + 1)
    return state, BaselineResult(low_rank, prediction, None, np.abs(values - low_rank), config.rank, "ok")


def _products(factors: tuple[jax.Array, ...], mode: int, times: jax.Array) -> jax.Array:
    """times ∘ (∘_{k≠mode} A⁽ᵏ⁾ᵀA⁽ᵏ⁾)."""
    for other, factor in enumerate(factors):
        if other != mode:
            times = times * (factor.T @ factor)
    return times


@jax.jit
def _accumulate(
    stacked: jax.Array, factors: tuple[jax.Array, ...], rows: jax.Array
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...], jax.Array]:
    every = (*factors, rows)
    modes = range(len(factors))
    projections = tuple(cp.contract(stacked, every, mode) for mode in modes)
    grams = tuple(_products(factors, mode, rows.T @ rows) for mode in modes)
    return projections, grams, cp.compose(factors, rows[-1])


@jax.jit
def _learn(values: jax.Array, memory: tuple[Any, ...]) -> tuple[tuple[Any, ...], jax.Array, jax.Array]:
    factors, projections, grams, last_row = memory
    whole = _products(factors, -1, jnp.ones_like(grams[0]))
    target = (cp.contract(values, factors, 0) * factors[0]).sum(0)
    row = target @ jnp.linalg.pinv(whole, hermitian=True)
    modes = range(len(factors))
    new_projections = tuple(projections[mode] + cp.contract(values, factors, mode) * row for mode in modes)
    new_grams = tuple(grams[mode] + _products(factors, mode, jnp.outer(row, row)) for mode in modes)
    new_factors = tuple(
        projection @ jnp.linalg.pinv(gram, hermitian=True)
        for projection, gram in zip(new_projections, new_grams, strict=True)
    )
    low_rank = cp.compose(new_factors, row)
    return (new_factors, new_projections, new_grams, row), low_rank, cp.compose(factors, last_row)


BASELINES = (
    Baseline(
        "online_cp",
        "Online-CP",
        init,
        step,
        Config,
        "S. Zhou et al., KDD 2016",
        missing=False,
        needs_unit_scale=False,
        hindsight=(*RANK_AND_SCALE, {"initial_slices": (20,)}),
    ),
)
