"""Assembly only: the compiled step. The updates themselves are in factors, rank, birth, noise and outliers/.

A step: write the slice into the window; meet it with a robust regression on the current factors; then sweep over all
unknowns until the newest slice stands still, let superfluous components die and missing ones be born, and sweep again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import register_dataclass, register_pytree_node

from undertow.model import level as levels
from undertow.model import past, predict, rank
from undertow.model.birth import born, rank_one
from undertow.model.config import Config
from undertow.model.factors import sweep
from undertow.model.leaving import leave
from undertow.model.noise import noise_floor
from undertow.model.outliers import contaminated, gaussian_gamma
from undertow.model.state import Contaminated, Core, Factors, GaussianGamma, Level, Window, over_slice
from undertow.model.svd_start import svd_start
from undertow.model.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

Carry = TypeVar("Carry")

register_pytree_node(Config, Config.split, Config.join)

OUTLIER_MODELS = {"contaminated": contaminated, "gaussian_gamma": gaussian_gamma}
COOLING = 0.05
"""Noise variance that falls by more than this share per sweep is still being found."""
MOST_ROUNDS = 8
"""Rounds of sweeping, deaths and births per slice."""
MOST_BIRTHS = 4
"""Births per round: more newcomers than that had better meet each other first."""


@register_dataclass
@dataclass(frozen=True)
class Report:
    """What a step tells about one slice, in units of the stream. Arrays are (I_1, …, I_N) unless said otherwise."""

    low_rank: Array
    low_rank_variance: Array
    noise_variance: Array
    outliers: Array
    outlier_probability: Array
    rank: Array
    """Scalar, as are all below."""
    typical_noise: Array
    """Noise variance."""
    iterations: Array
    evidence: Array
    trouble: Array
    """Flags of `Trouble`."""


@register_dataclass
@dataclass(frozen=True)
class Progress:
    """What the sweeps of one step hand on to each other."""

    factors: Factors
    outliers: Contaminated | GaussianGamma
    level: Level
    residual: Array
    """y − m̄ − x̄ of the window (W, I_1, …, I_N)."""
    variance: Array
    """Var x + Var m of the window."""
    newest: Array
    """m̄ + x̄ of the newest slice after the last sweep (I_1, …, I_N)."""
    moving: Array
    """Whether another sweep is needed."""
    iterations: Array
    rounds: Array
    """How often components were born or died."""
    failed: Array
    """Rows that could not be solved."""


@register_dataclass
@dataclass(frozen=True)
class Brood:
    """What one birth hands on to the next."""

    factors: Factors
    outliers: Contaminated
    residual: Array
    """y − m̄ − x̄ of the window (W, I_1, …, I_N)."""
    variance: Array
    """Var x + Var m of the window."""
    evidence: Array
    """The outlier model's part of the bound."""


def init_core(config: Config, shape: tuple[int, ...]) -> Core:
    """An empty window, no component alive."""
    dtype = jnp.dtype(config.dtype)
    size, length = config.max_rank, config.window
    window = Window(
        values=jnp.zeros((length, *shape), dtype),
        mask=jnp.zeros((length, *shape), bool),
        newest=jnp.asarray(length - 1, jnp.int32),
        filled=jnp.asarray(0, jnp.int32),
    )
    factors = Factors(
        means=tuple(jnp.zeros((rows, size), dtype) for rows in shape),
        covariances=tuple(jnp.zeros((rows, size, size), dtype) for rows in shape),
        row_means=jnp.zeros((length, size), dtype),
        row_covariances=jnp.zeros((length, size, size), dtype),
        alive=jnp.zeros(size, bool),
        precision_shape=jnp.ones(size, dtype),
        precision_rate=jnp.ones(size, dtype),
    )
    factors = replace(factors, past=past.init_rows(config, shape, dtype))
    outliers = OUTLIER_MODELS[config.outliers].init(config, shape, dtype)
    return Core(window, factors, outliers, levels.init(length, shape, dtype))


@jax.jit
def advance(core: Core, values: Array, mask: Array, config: Config) -> tuple[Core, Report]:
    """One slice: values (0 where unobserved) and mask in, the new state and the report out."""
    model = OUTLIER_MODELS[config.outliers]
    core = leave(config, core)
    window = write(core.window, values, mask)
    slice_weights = window.slice_weights(config.forgetting)
    row_share = model.row_share(slice_weights)
    level = expected_level(config, core.level, window)
    outliers, factors = model.begin(config, core.outliers, core.factors, window, level)
    if config.start == "svd":
        factors = svd_start(config, factors, window, row_share)

    surprised = model.surprised(outliers, window)

    def one_sweep(progress: Progress) -> Progress:
        weights, targets = model.weights_and_targets(progress.outliers, window, slice_weights)
        level = progress.level
        factors, failed = sweep(progress.factors, weights, targets - level.mean, row_share)
        factors = past.update_trust(rank.update_precision(factors, row_share, config.precision_prior))
        residual, variance = window.values - predict.low_rank(factors), predict.variance(factors)
        level = lax.cond(
            config.level, lambda: smoothed_level(progress.outliers, level, window, residual), lambda: level
        )
        residual, variance = residual - level.mean, variance + level.variance
        outliers = model.update(config, progress.outliers, window, slice_weights, residual, variance)
        newest = window.values[window.newest] - residual[window.newest]
        # Moves below the rounding of the arithmetic say nothing, however small the noise.
        resolution = 30 * float(np.finfo(newest.dtype).eps) * jnp.sqrt((newest**2).mean())
        least = jnp.maximum(config.tolerance * jnp.sqrt(model.typical_noise(outliers)), resolution)
        moving = jnp.sqrt(((newest - progress.newest) ** 2).mean()) > least
        # Large noise hides moves: as long as it falls, nothing has settled.
        cooling = model.typical_noise(outliers) < (1 - COOLING) * model.typical_noise(progress.outliers)
        moving |= cooling & (model.typical_noise(outliers) > 2 * noise_floor(newest.dtype))
        iterations = progress.iterations + 1
        rounds, changed = progress.rounds, jnp.asarray(False)
        if config.start == "warm":
            # Not at the very end: a newcomer must have been swept at least once.
            due = ~moving & (rounds < MOST_ROUNDS) & (iterations < config.max_iterations)
            factors, outliers, changed = lax.cond(
                due,
                lambda factors, outliers: moves(config, window, factors, outliers, level),
                lambda factors, outliers: (factors, outliers, jnp.asarray(False)),
                factors,
                outliers,
            )
            rounds = rounds + changed
        return Progress(
            factors,
            outliers,
            level,
            residual,
            variance,
            newest,
            moving | changed,
            iterations,
            rounds,
            progress.failed + failed,
        )

    zero = jnp.asarray(0, jnp.int32)
    start = Progress(
        factors=factors,
        outliers=outliers,
        level=level,
        residual=window.values,
        variance=jnp.zeros_like(window.values),
        newest=predict.low_rank(only_row(factors, window.newest))[0] + level.mean[window.newest],
        moving=jnp.asarray(True),
        iterations=zero,
        rounds=zero,
        failed=zero,
    )
    end = lax.while_loop(
        lambda progress: progress.moving & (progress.iterations < config.max_iterations), one_sweep, start
    )
    outliers = model.finish(config, end.outliers, window, slice_weights, end.residual, end.variance)
    level = lax.cond(config.level, lambda: judged_level(outliers, end.level, window, end.residual), lambda: end.level)
    core = Core(window, end.factors, outliers, level)
    evidence = rank.evidence(core.factors, row_share, config.precision_prior)
    evidence += model.evidence(config, outliers, window, slice_weights, end.residual, end.variance)
    if core.factors.past is not None:
        evidence += past.evidence(core.factors, core.factors.past)
    told = tell(config, core, window.newest, end.residual[window.newest], end.variance[window.newest])
    flags = jnp.where(end.moving, Trouble.NOT_CONVERGED.value, 0)
    flags |= jnp.where(end.failed > 0, Trouble.SINGULAR.value, 0)
    flags |= jnp.where(surprised & core.factors.alive.any(), Trouble.CHANGED.value, 0)
    return core, replace(told, iterations=end.iterations, evidence=evidence, trouble=told.trouble | flags)


def moves(
    config: Config, window: Window, factors: Factors, outliers: Contaminated, level: Level
) -> tuple[Factors, Contaminated, Array]:
    """Deaths, then births, each as long as the evidence gains. Returns whether anything changed."""
    prior = config.precision_prior
    slice_weights = window.slice_weights(config.forgetting)
    row_share = contaminated.row_share(slice_weights)
    weights, targets = contaminated.weights_and_targets(outliers, window, slice_weights)
    targets = targets - level.mean
    count = slice_weights @ over_slice(window.mask.astype(weights.dtype))

    def bound(outliers: Contaminated, residual: Array, variance: Array) -> Array:
        return contaminated.evidence(config, outliers, window, slice_weights, residual, variance)

    def one_death(carry: tuple[Factors, Array, Array]) -> tuple[tuple[Factors, Array, Array], Array]:
        factors, residual, variance, dies = rank.death(*carry, weights, targets, row_share, prior)
        return (factors, residual, variance), dies

    def one_birth(carry: Brood) -> tuple[Brood, Array]:
        weights = contaminated.birth_weights(carry.outliers, window, slice_weights)
        energy = (weights * (carry.residual**2 + carry.variance)).sum()
        newcomer = rank_one(weights, carry.residual, energy, count, row_share, prior)
        share = newcomer.low_rank()
        residual, variance = carry.residual - share, carry.variance + jnp.maximum(newcomer.square() - share**2, 0)
        outliers = contaminated.update(config, carry.outliers, window, slice_weights, residual, variance)
        evidence = bound(outliers, residual, variance) + newcomer.evidence
        margin = 10 * float(np.finfo(evidence.dtype).eps) * jnp.abs(evidence)  # what single precision cannot tell
        gains = (evidence > carry.evidence + margin) & ~carry.factors.alive.all()
        grown = Brood(born(carry.factors, newcomer), outliers, residual, variance, evidence - newcomer.evidence)
        return rank.choose(gains, grown, carry), gains

    residual = targets - predict.low_rank(factors)
    carry = (factors, residual, predict.variance(factors))
    (factors, residual, variance), deaths = repeat(one_death, carry, config.max_rank)
    variance = variance + level.variance
    # Updated first, so that what the outlier model gains by itself is not put down to the newcomer.
    outliers = contaminated.update(config, outliers, window, slice_weights, residual, variance)
    brood = Brood(factors, outliers, residual, variance, bound(outliers, residual, variance))
    brood, births = repeat(one_birth, brood, MOST_BIRTHS)
    return brood.factors, brood.outliers, deaths + births > 0


@jax.jit
def smooth(core: Core, lag: Array, config: Config) -> Report:
    """What is known now about the slice `lag` steps before the newest."""
    slot = jnp.mod(core.window.newest - lag, config.window)
    row = only_row(core.factors, slot)
    residual = core.window.values[slot] - core.level.mean[slot] - predict.low_rank(row)[0]
    return tell(config, core, slot, residual, predict.variance(row)[0] + core.level.variance[slot])


@jax.jit
def project(core: Core, values: Array, mask: Array, config: Config) -> Report:
    """The report of a slice met with factors and level held fixed: nothing is learned from it."""
    model = OUTLIER_MODELS[config.outliers]
    window = write(core.window, values, mask)
    level = expected_level(config, core.level, window)
    outliers, factors = model.meet(core.outliers, core.factors, window, level)
    slot, row = window.newest, only_row(factors, window.newest)
    core = Core(window, factors, outliers, level)
    residual = values - level.mean[slot] - predict.low_rank(row)[0]
    return tell(config, core, slot, residual, predict.variance(row)[0] + level.variance[slot])


@jax.jit
def foretell(core: Core, values: Array, mask: Array, half: Array, config: Config) -> tuple[Array, Array]:
    """Every observed entry as the other half of its slice tells it, with factors and level as they were before.

    Mean and variance of the observation (I_1, …, I_N); `half` says which entries belong together.
    """

    def from_one_half(shown: Array) -> tuple[Array, Array]:
        report = project(core, jnp.where(shown, values, 0), shown, config)
        return report.low_rank, report.low_rank_variance + report.noise_variance

    means, variances = lax.map(from_one_half, jnp.stack([mask & half, mask & ~half]))
    return jnp.where(half, means[1], means[0]), jnp.where(half, variances[1], variances[0])


def expected_level(config: Config, level: Level, window: Window) -> Level:
    """The level with the newest slice expected where the last one was."""
    moved: Level = lax.cond(config.level, lambda: levels.arrive(level, window), lambda: level)
    return moved


def smoothed_level(outliers: Contaminated | GaussianGamma, level: Level, window: Window, targets: Array) -> Level:
    """The level of the window given y − x̄. No slice counts less for being old: the walk itself forgets."""
    if isinstance(outliers, GaussianGamma):
        return level
    alike = jnp.ones(targets.shape[0], targets.dtype)
    weights, _ = contaminated.weights_and_targets(outliers, window, alike)
    return levels.update(level, window, weights, targets)


def judged_level(outliers: Contaminated | GaussianGamma, level: Level, window: Window, residual: Array) -> Level:
    """The level with its walks chosen anew, by the newest slice; `residual` is y − m̄ − x̄."""
    if isinstance(outliers, GaussianGamma):
        return level
    slot = window.newest
    trust = contaminated.trust(outliers, outliers.probability[slot], outliers.slice_scale[slot])
    noise = contaminated.noise_now(outliers)
    return levels.finish(level, window.mask[slot], trust, residual[slot] + level.mean[slot], noise)


def write(window: Window, values: Array, mask: Array) -> Window:
    """The window with a slice written over the oldest."""
    length = window.values.shape[0]
    slot = jnp.mod(window.newest + 1, length)
    return Window(
        values=window.values.at[slot].set(values),
        mask=window.mask.at[slot].set(mask),
        newest=slot,
        filled=jnp.minimum(window.filled + 1, length),
    )


def only_row(factors: Factors, slot: Array) -> Factors:
    """The factors with the temporal row of one slot as their only one."""
    one = replace(factors, row_means=factors.row_means[slot][None])
    return replace(one, row_covariances=factors.row_covariances[slot][None])


def repeat(move: Callable[[Carry], tuple[Carry, Array]], start: Carry, most: int) -> tuple[Carry, Array]:
    """Repeat a move until it is refused, `most` times at most. Returns how often it was made."""

    def again(carry: tuple[Carry, Array, Array]) -> tuple[Carry, Array, Array]:
        result, made = move(carry[0])
        return result, made, carry[2] + made

    first = (start, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    result, _, count = lax.while_loop(lambda carry: carry[1] & (carry[2] < most), again, first)
    return result, count


def tell(config: Config, core: Core, slot: Array, residual: Array, variance: Array) -> Report:
    """The report of one slice of the window, given its residual and Var x."""
    model = OUTLIER_MODELS[config.outliers]
    mask = core.window.mask[slot]
    sparse, probability = model.outliers(core.outliers, core.window, slot, residual)
    noise_variance = model.noise_variance(core.outliers, slot)
    typical = model.typical_noise(core.outliers)
    living = rank.living(core.factors, config.start).sum(dtype=jnp.int32)
    low_rank = core.window.values[slot] - residual
    observed = mask.sum()
    many = (probability > 0.5).sum() * 2 > observed
    far = (noise_variance.mean() > 100 * typical) & (observed > 0)
    flags = jnp.where(observed == 0, Trouble.EMPTY.value, 0)
    flags |= jnp.where(living == config.max_rank, Trouble.RANK_FULL.value, 0)
    flags |= jnp.where(living == 0, Trouble.RANK_ZERO.value, 0)
    flags |= jnp.where(many | far, Trouble.MANY_OUTLIERS.value, 0)
    flags |= jnp.where(typical <= 2 * noise_floor(typical.dtype), Trouble.NO_NOISE.value, 0)
    finite = jnp.isfinite(low_rank).all() & jnp.isfinite(variance).all() & jnp.isfinite(noise_variance).all()
    flags |= jnp.where(finite, 0, Trouble.NOT_FINITE.value)
    zero = jnp.asarray(0, jnp.int32)
    return Report(
        low_rank, variance, noise_variance, sparse, probability, living, typical, zero, jnp.zeros_like(typical), flags
    )
