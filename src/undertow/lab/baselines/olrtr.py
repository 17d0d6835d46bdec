"""OLRTR: online robust recovery of incomplete slices, one dictionary per mode, outliers as whole fibres.

Y. Hu, A. Qu, Y. Wang, D. B. Work, "Streaming data preprocessing via online tensor recovery for large environmental
sensor networks", ACM Transactions on Knowledge Discovery from Data 16(6), 2022.

Every mode i of the N has a dictionary L_i (I_i × R). For a slice D, gaps filled in (F = D where observed),

    min over R_i, E, F of Σ_i ½ ‖F − E − fold_i(L_i R_iᵀ)‖² + ½ λ₁ Σ_i ‖R_i‖² + λ₂ Σ_fibres ‖E_fibre‖

by cycles, from E = 0, R_i = 0 and F = D with zeros in the gaps, until none of ΔE, ΔR_i exceeds tolerance · ‖D‖:

    X̂   = mean over the modes of fold_i(L_i R_iᵀ)
    E   ← every fibre of F − X̂ shortened by λ₂ / N, or zero
    R_i ← unfold_i(F − E)ᵀ L_i (L_iᵀ L_i + λ₁ I)⁻¹
    F   ← D where observed, X̂ + E elsewhere

X̂ is the low-rank slice. Then the dictionaries learn, A_i ← A_i + R_iᵀ R_i, B_i ← B_i + unfold_i(F − E) R_i, and one
pass over the columns of L_i with A = A_i + λ₁ I:  l_j ← l_j + (b_j − L_i a_j) / A_jj. The start is L_i ~ U(0, 1).
λ₁ = .01 and λ₂ = 3 / √(2 ln I₁) as in the published simulation, the tolerance and the number of cycles as in the
published experiment on temperatures (its simulation: 1e-4 and 500). Cost O(cycles · N · Π I · R) a slice.

Deviations. The published code learns B_i from D with zeros in the gaps, which the objective does not ask for and which
draws the dictionary to zero; here from the filled F. Its columns all step from the same old L_i, which diverges when
they are alike; here one after the other, as in the dictionary learning it is built on (J. Mairal, F. Bach, J. Ponce,
G. Sapiro, JMLR 11, 2010). Its norm limit on columns, dropped in a later version of the code, is left out. A slice
with one mode has no second one for fibres to lie along: each entry is then its own fibre. Slices without a single
observation are skipped. λ₂ is absolute: not equivariant to the unit of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines.baseline import RANK_AND_SCALE, Array, Baseline, BaselineResult
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe


@dataclass(frozen=True)
class Config:
    """Settings of OLRTR; the defaults are the published ones.

    rank            R, columns of every dictionary
    regularisation  λ₁, ridge of R_i and L_i
    sparsity        λ₂ √(2 ln I₁), weight of the fibres
    outlier_mode    the mode along which a fibre of outliers lies, from 0
    tolerance       of the cycles
    iterations      cycles a slice, at most
    seed            of the random start
    """

    rank: int = 20
    regularisation: float = 0.01
    sparsity: float = 3.0
    outlier_mode: int = 1
    tolerance: float = 1e-3
    iterations: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, integer=("rank", "iterations"), positive=("regularisation", "sparsity", "tolerance"))
        check_settings(self, not_negative=("outlier_mode",))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What OLRTR carries on; one array per mode in every tuple.

    dictionaries  L_i, (I_i, R)
    squares       A_i, (R, R)
    products      B_i, (I_i, R)
    last          the last low-rank slice, shape
    count         slices learned from, ()
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    dictionaries: tuple[Array, ...]
    squares: tuple[Array, ...]
    products: tuple[Array, ...]
    last: Array
    count: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """Random dictionaries, as the published code starts."""
    sizes, rank = check_shape(shape), config.rank
    draw = np.random.default_rng(config.seed)
    return State(
        config,
        sizes,
        tuple(draw.random((size, rank)) for size in sizes),
        tuple(np.zeros((rank, rank)) for _ in sizes),
        tuple(np.zeros((size, rank)) for size in sizes),
        np.zeros(sizes),
        np.zeros(()),
    )


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Recover one slice and learn from it; see the module's equations."""
    slice_values, observed = observe(values, mask, state.shape)
    config, zero = state.config, np.zeros(state.shape)
    prediction = state.last.copy() if state.count > 0 else None
    if not observed.any():
        return state, BaselineResult(state.last.copy(), prediction, zero.copy(), zero, config.rank, "no data")
    axis = config.outlier_mode if config.outlier_mode < len(state.shape) else None
    threshold = config.sparsity / np.sqrt(2 * np.log(max(state.shape[0], 2)))
    with jax.enable_x64(True):
        settings = np.array([config.regularisation, threshold, config.tolerance, config.iterations])
        memory = (state.dictionaries, state.squares, state.products)
        learned = jax.tree.map(np.array, _learn(slice_values, observed, memory, settings, axis))
    (dictionaries, squares, products), low_rank, sparse = learned
    if not finite(learned):
        return state, BaselineResult(zero, prediction, zero.copy(), np.abs(slice_values), config.rank, "diverged")
    score = np.where(observed, np.abs(slice_values - low_rank), 0.0)
    state = State(config, state.shape, dictionaries, squares, products, low_rank.copy(), state.count + 1)
    outliers = np.where(observed, sparse, 0.0)
    return state, BaselineResult(low_rank, prediction, outliers, score, config.rank, "ok")


def _unfold(tensor: jax.Array, mode: int) -> jax.Array:
    return jnp.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def _compose(dictionaries: tuple[jax.Array, ...], rows: tuple[jax.Array, ...], shape: tuple[int, ...]) -> jax.Array:
    """X̂: the mean over the modes."""
    total = jnp.zeros(shape, rows[0].dtype)
    for mode, (dictionary, row) in enumerate(zip(dictionaries, rows, strict=True)):
        others = tuple(size for k, size in enumerate(shape) if k != mode)
        total = total + jnp.moveaxis((dictionary @ row.T).reshape(shape[mode], *others), 0, mode)
    return total / len(shape)


def _shortened(tensor: jax.Array, axis: int | None, amount: jax.Array) -> jax.Array:
    """Every fibre along the axis (or every entry) made shorter by an amount, or zero."""
    length = jnp.abs(tensor) if axis is None else jnp.sqrt(jnp.sum(tensor**2, axis=axis, keepdims=True))
    return tensor * jnp.maximum(0.0, 1 - amount / jnp.where(length > 0, length, 1.0))


@jax.jit(static_argnums=4)
def _learn(values: jax.Array, observed: jax.Array, memory: Any, settings: jax.Array, axis: int | None) -> Any:
    dictionaries, squares, products = memory
    ridge, threshold, tolerance, cycles = settings
    shape, modes = values.shape, range(values.ndim)
    rank = dictionaries[0].shape[1]
    eye = ridge * jnp.eye(rank, dtype=values.dtype)
    # (L_iᵀ L_i + λ₁ I)⁻¹ L_iᵀ does not change while a slice is recovered.
    solvers = tuple(jnp.linalg.solve(one.T @ one + eye, one.T) for one in dictionaries)
    size = jnp.linalg.norm(values.ravel())

    def cycle(carry: Any) -> Any:
        filled, sparse, rows, low_rank, _, count = carry
        new_sparse = _shortened(filled - low_rank, axis, threshold / len(modes))
        new_rows = tuple((solvers[mode] @ _unfold(filled - new_sparse, mode)).T for mode in modes)
        low_rank = _compose(dictionaries, new_rows, shape)
        changes = [jnp.linalg.norm((new_sparse - sparse).ravel())]
        changes += [jnp.linalg.norm(new - old) for new, old in zip(new_rows, rows, strict=True)]
        filled = jnp.where(observed, values, low_rank + new_sparse)
        return filled, new_sparse, new_rows, low_rank, jnp.max(jnp.stack(changes)), count + 1

    zero = jnp.zeros(shape, values.dtype)
    blank = tuple(jnp.zeros((values.size // shape[mode], rank), values.dtype) for mode in modes)
    start = (values, zero, blank, zero, jnp.asarray(jnp.inf, values.dtype), 0)
    filled, sparse, rows, low_rank, _, _ = jax.lax.while_loop(
        lambda carry: (carry[4] > tolerance * size) & (carry[5] < cycles), cycle, start
    )
    squares = tuple(old + row.T @ row for old, row in zip(squares, rows, strict=True))
    products = tuple(old + _unfold(filled - sparse, mode) @ rows[mode] for mode, old in enumerate(products))
    moved = tuple(_pass(*one, eye) for one in zip(dictionaries, squares, products, strict=True))
    return (moved, squares, products), low_rank, sparse


def _pass(dictionary: jax.Array, square: jax.Array, product: jax.Array, eye: jax.Array) -> jax.Array:
    """One pass of coordinate descent over the columns of a dictionary."""
    curvature = square + eye

    def column(j: jax.Array, current: jax.Array) -> jax.Array:
        change = (product[:, j] - current @ curvature[:, j]) / curvature[j, j]
        return current.at[:, j].add(change)

    moved: jax.Array = jax.lax.fori_loop(0, dictionary.shape[1], column, dictionary)
    return moved


_CITATION = "Y. Hu, A. Qu, Y. Wang, D. B. Work, ACM Trans. Knowl. Discov. Data 16(6), 2022"
BASELINES = (
    Baseline(
        "olrtr",
        "OLRTR",
        init,
        step,
        Config,
        _CITATION,
        robust=True,
        hindsight=(*RANK_AND_SCALE, {"sparsity": (1.0, 10.0, 100.0)}, {"tolerance": (1e-4,), "iterations": (500,)}),
    ),
)
