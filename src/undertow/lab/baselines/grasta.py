"""GRASTA: robust subspace tracking of vectorised slices, one L1 regression and one Grassmannian step a slice.

J. He, L. Balzano, A. Szlam, "Incremental gradient on the Grassmannian for online foreground and background separation
in subsampled video", CVPR 2012; J. He, L. Balzano, J. C. S. Lui, arXiv 1109.3827 (multi-level step size).

With the orthonormal basis U (n × R) and the observed part v of the vectorised slice:

    min_{s,w} ‖s‖₁  subject to  U_Ω w + s = v        a few ADMM iterations, y its dual, penalty growing by `growth`
    Γ = y − U U_Ωᵀ y                                 (y zero where unobserved)
    U ← U + (cos θ − 1) U ŵ ŵᵀ − sin θ Γ̂ ŵᵀ          ŵ = w/‖w‖, Γ̂ = Γ/‖Γ‖: a step along the geodesic

θ is constant or follows the multi-level rule: θ = C 2^(−level) ‖Γ‖‖w‖/(1 + μ), at most π/3, where μ grows when
successive gradients disagree and falls when they agree; past its ends the level changes, and deeper levels get more
ADMM iterations. The low-rank slice is U w with the new U; the start is a random subspace. Cost a slice:
O(n R² + n R · iterations).

As in the published video experiments the first slices can serve as a training set: once gathered, many passes over them
in random order turn the random subspace into a useful one, and a small constant θ follows from there. Without that a
large slice needs hundreds of steps.

Slices of any order are taken as vectors: the structure of the modes is not used, and an entry never observed cannot be
filled in. Deviations: the tolerance of ADMM is relative to ‖v‖, which makes the method equivariant to the unit of the
data; with fewer observations than components the regression is the one of least norm, and the basis stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines.baseline import RANK_AND_SCALE, SCALE_THEN_RANK, Array, Baseline, BaselineResult
from undertow.lab.baselines.validation import check_settings, check_shape, finite, observe

_SLOPE = 0.1  # of the sigmoid that turns the agreement of two gradients into a change of μ
_LARGEST_STEP = np.pi / 3


@dataclass(frozen=True)
class Config:
    """Settings of GRASTA; the defaults are the published ones.

    rank              R, dimension of the subspace
    constant_step     θ, or 0 for the multi-level rule
    growth            factor of the ADMM penalty per iteration
    min_iterations    of ADMM, at level 0
    max_iterations    of ADMM, at the deepest levels
    tolerance         of ADMM, relative to the slice
    min_mu, max_mu    ends of μ at which the level changes
    max_level         deepest level
    training_slices   gathered for the training, or 0 for none
    training_passes   over them, each in a random order, always with the multi-level rule
    seed              of the random start and of these orders
    """

    rank: int = 5
    constant_step: float = 0.0
    growth: float = 1.8
    min_iterations: int = 5
    max_iterations: int = 60
    tolerance: float = 1e-6
    min_mu: float = 1.0
    max_mu: float = 15.0
    max_level: int = 20
    training_slices: int = 0
    training_passes: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(
            self,
            integer=("rank", "min_iterations", "max_iterations", "max_level", "training_passes"),
            not_negative=("constant_step", "training_slices"),
            positive=("growth", "tolerance", "min_mu", "max_mu"),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What GRASTA carries on, n the number of entries of a slice.

    basis     U, orthonormal, (n, R)
    weights   w of the last slice, (R,)
    gradient  Γ of the last slice, (n,)
    mu        μ, ()
    level     ()
    scale     C, zero until the first slice, ()
    count     slices learned from, ()
    gathered  slices for the training, filled from the front, (training_slices, n)
    observed  their masks, (training_slices, n)
    """

    config: Config = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    basis: Array
    weights: Array
    gradient: Array
    mu: Array
    level: Array
    scale: Array
    count: Array
    gathered: Array
    observed: Array


def init(config: Config, shape: tuple[int, ...]) -> State:
    """A random subspace."""
    sizes = check_shape(shape)
    entries = int(np.prod(sizes))
    if config.rank > entries:
        raise ValueError(f"rank must be at most the {entries} entries of a slice, got {config.rank}")
    basis = np.linalg.qr(np.random.default_rng(config.seed).standard_normal((entries, config.rank)))[0]
    zero = np.zeros(())
    blank = np.zeros((config.training_slices, entries))
    start = (np.zeros(config.rank), np.zeros(entries), zero + config.min_mu, zero, zero, zero)
    return State(config, sizes, basis, *start, gathered=blank, observed=blank)


def step(state: State, values: Any, mask: Any = None) -> tuple[State, BaselineResult]:
    """Learn from one slice; see the module's equations. The last of the training slices ends the training first."""
    slice_values, observed = observe(values, mask, state.shape)
    config, count = state.config, int(state.count)
    vector, flags = slice_values.ravel(), observed.ravel().astype(np.float64)
    gathered, kept = state.gathered, state.observed
    memory: tuple[Any, ...] = (state.basis, state.weights, state.gradient, state.mu, state.level, state.scale)
    before = (state.basis, state.weights)
    if count < config.training_slices and observed.any():
        gathered, kept = gathered.copy(), kept.copy()
        gathered[count], kept[count] = vector, flags
    with jax.enable_x64(True):
        if count + 1 == config.training_slices and observed.any():
            draw = np.random.default_rng([config.seed, count])
            orders = [draw.permutation(count + 1) for _ in range(config.training_passes)]
            memory = _train(gathered, kept, memory, _settings(config, 0.0), np.concatenate(orders))
        # Until the training is over there is no subspace to track with a small constant step.
        constant = config.constant_step if count + 1 >= config.training_slices else 0.0
        learned = _learn(vector, flags, memory, _settings(config, constant))
        new_memory, *vectors = jax.tree.map(np.array, learned)
    low_rank, sparse, residual = (part.reshape(state.shape) for part in vectors)
    previous = (before[0] @ before[1]).reshape(state.shape)
    prediction = previous if count > 0 else None
    if not observed.any():
        zero = np.zeros(state.shape)
        return state, BaselineResult(previous.copy(), prediction, zero, zero.copy(), config.rank, "no data")
    if not finite(new_memory, low_rank):
        zero = np.zeros(state.shape)
        return state, BaselineResult(zero, prediction, zero.copy(), np.abs(slice_values), config.rank, "diverged")
    new = State(config, state.shape, *(*new_memory, state.count + 1, gathered, kept))
    return new, BaselineResult(low_rank, prediction, sparse, np.abs(residual), config.rank, "ok")


def _settings(config: Config, constant_step: float) -> Array:
    return np.array(
        [
            constant_step,
            config.growth,
            config.min_iterations,
            config.max_iterations,
            config.tolerance,
            config.min_mu,
            config.max_mu,
            config.max_level,
        ]
    )


@jax.jit
def _train(
    values: jax.Array, masks: jax.Array, memory: tuple[Any, ...], settings: jax.Array, order: jax.Array
) -> tuple[Any, ...]:
    """One step for each index in the order."""

    def once(now: Any, index: jax.Array) -> tuple[Any, None]:
        return _learn(values[index], masks[index], now, settings)[0], None

    trained: tuple[Any, ...] = jax.lax.scan(once, memory, order)[0]
    return trained


@jax.jit
def _learn(values: jax.Array, mask: jax.Array, memory: tuple[Any, ...], settings: jax.Array) -> tuple[Any, ...]:
    basis, last_weights, last_gradient, mu, level, scale = memory
    constant, growth, fewest, most, tolerance, min_mu, max_mu, max_level = settings
    factor = (
        2.0 ** jnp.array([0.0, 1.0, 2.0, 3.0])[jnp.clip(jnp.searchsorted(jnp.array([4, 7, 10]), level, "right"), 0, 3)]
    )
    iterations = jnp.where(level >= 14, most, jnp.minimum(fewest * factor, most))
    seen = basis * mask[:, None]
    sparse, weights, dual = _sparse_regression(seen, values, growth, iterations, tolerance)

    gradient = dual - basis @ (seen.T @ dual)
    gradient_norm, weight_norm = jnp.linalg.norm(gradient), jnp.linalg.norm(weights)
    size = gradient_norm * weight_norm
    usable = (size > 0) & (mask.sum() >= basis.shape[1])
    scale = jnp.where((scale == 0) & usable, 0.5 * jnp.pi * (1 + min_mu) / _safe(size), scale)

    # ⟨Γ' w'ᵀ, Γ wᵀ⟩ normalised: do the two gradients point the same way?
    both = jnp.linalg.norm(last_gradient) * jnp.linalg.norm(last_weights) * size
    agreement = jnp.where(both > 0, (last_weights @ weights) * (last_gradient @ gradient) / _safe(both), 0.0)
    moved = jnp.maximum(mu + jnp.tanh(-agreement / (2 * _SLOPE)), min_mu)
    angle = jnp.minimum(scale * 2.0 ** (-level) * size / (1 + moved), _LARGEST_STEP)
    angle = jnp.where(constant > 0, constant, angle)
    new_mu, new_level = _adjusted(moved, level, min_mu, max_mu, max_level)
    adaptive = constant == 0
    new_mu, new_level = jnp.where(adaptive, new_mu, moved), jnp.where(adaptive, new_level, level)

    direction = weights / _safe(weight_norm)
    turn = (jnp.cos(angle) - 1) * (basis @ direction) - jnp.sin(angle) * gradient / _safe(gradient_norm)
    turned = jnp.where(usable, basis + turn[:, None] * direction[None, :], basis)
    new_memory = (
        turned,
        weights,
        jnp.where(usable, gradient, last_gradient),
        jnp.where(usable, new_mu, mu),
        jnp.where(usable, new_level, level),
        scale,
    )
    return new_memory, turned @ weights, sparse, mask * (values - basis @ weights)


def _adjusted(
    mu: jax.Array, level: jax.Array, min_mu: jax.Array, max_mu: jax.Array, max_level: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The multi-level rule: at the ends of μ change the level and put μ back inside."""
    low, high = mu <= min_mu, mu > max_mu
    deeper = high & (level < max_level)
    new_level = jnp.where(low & (level > 1), level - 1, jnp.where(deeper, level + 1, level))
    inside = jnp.where(deeper, (max_mu - 1) / 2, jnp.minimum(mu, max_mu))
    return jnp.where(low, min_mu + 2, inside), new_level


def _sparse_regression(
    basis: jax.Array, values: jax.Array, growth: jax.Array, iterations: jax.Array, tolerance: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """min ‖s‖₁ subject to U w + s = v by ADMM; rows of U and v are zero where unobserved, and so are s and the dual."""
    norm = jnp.linalg.norm(values)
    solver = jnp.linalg.pinv(basis.T @ basis, hermitian=True) @ basis.T

    def go_on(now: Any) -> Any:
        return (now[-1] < iterations) & (now[-2] >= tolerance * norm)

    def once(now: Any) -> Any:
        sparse, _, dual, penalty, _, count = now
        weights = solver @ (values - sparse - dual / penalty)
        fitted = basis @ weights
        rest = values - fitted - dual / penalty
        sparse = jnp.sign(rest) * jnp.maximum(jnp.abs(rest) - 1 / penalty, 0.0)
        gap = fitted + sparse - values
        return sparse, weights, dual + penalty * gap, penalty * growth, jnp.linalg.norm(gap), count + 1

    empty = jnp.zeros_like(values)
    start = (empty, jnp.zeros(basis.shape[1]), empty, 1.25 / _safe(norm), jnp.inf + norm, jnp.zeros(()))
    sparse, weights, dual, *_ = jax.lax.while_loop(go_on, once, start)
    return sparse, weights, dual


def _safe(number: jax.Array) -> jax.Array:
    return jnp.where(number > 0, number, 1.0)


_CITATION = "J. He, L. Balzano, A. Szlam, CVPR 2012"
_GRID = (*RANK_AND_SCALE, {"constant_step": (0.01, 0.1)}, {"max_iterations": (120,), "min_iterations": (20,)})
BASELINES = (
    Baseline("grasta", "GRASTA", init, step, Config, _CITATION, needs_unit_scale=False, robust=True, hindsight=_GRID),
    Baseline(
        "grasta_trained",
        "GRASTA (trained)",
        init,
        step,
        Config,
        _CITATION + ", video experiments",
        needs_unit_scale=False,
        robust=True,
        defaults={"training_slices": 10, "constant_step": 0.01},
        hindsight=SCALE_THEN_RANK,
    ),
)
