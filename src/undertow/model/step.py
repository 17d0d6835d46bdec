"""Assembly only: the compiled step. The updates themselves are in factors, rank, birth, noise and outliers/.

A step: write the slice into the window; meet it with a robust regression on the current factors; then sweep over all
unknowns until the newest slice stands still, let superfluous components die and missing ones be born, and sweep again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model import predict, rank
from undertow.model.birth import birth
from undertow.model.config import Config
from undertow.model.factors import sweep
from undertow.model.noise import noise_floor
from undertow.model.outliers import contaminated, gaussian_gamma
from undertow.model.state import Core, Factors, Window
from undertow.model.svd_start import svd_start
from undertow.model.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

OUTLIER_MODELS = {"contaminated": contaminated, "gaussian_gamma": gaussian_gamma}
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
    return Core(window, factors, OUTLIER_MODELS[config.outliers].init(config, shape, dtype))


@partial(jax.jit, static_argnames="config")
def advance(core: Core, values: Array, mask: Array, config: Config) -> tuple[Core, Report]:
    """One slice: values (0 where unobserved) and mask in, the new state and the report out."""
    model = OUTLIER_MODELS[config.outliers]
    window = write(core.window, values, mask)
    slice_weights = window.slice_weights(config.forgetting)
    row_share = model.row_share(slice_weights)
    outliers, factors = model.begin(config, core.outliers, core.factors, window)
    if config.start == "svd":
        factors = svd_start(config, factors, window, row_share)

    def residuals(core: Core) -> tuple[Array, Array]:
        return core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)

    def one_sweep(carry: tuple[Core, Array, Array, Array, Array]) -> tuple[Core, Array, Array, Array, Array]:
        core, before, _, iterations, failed = carry
        weights, targets = model.weights_and_targets(core.outliers, window, slice_weights)
        factors, unsolved = sweep(core.factors, weights, targets, row_share)
        core = replace(core, factors=rank.update_precision(factors, row_share))
        residual, variance = residuals(core)
        outliers = model.update(config, core.outliers, window, slice_weights, residual, variance)
        now = window.values[window.newest] - residual[window.newest]
        # Moves below the rounding of the arithmetic say nothing, however small the noise.
        resolution = 30 * jnp.finfo(now.dtype).eps * jnp.sqrt((now**2).mean())
        step = jnp.sqrt(((now - before) ** 2).mean())
        moving = step > jnp.maximum(config.tolerance * jnp.sqrt(model.typical_noise(outliers)), resolution)
        return replace(core, outliers=outliers), now, moving, iterations + 1, failed + unsolved

    def settle(core: Core, iterations: Array, failed: Array) -> tuple[Core, Array, Array, Array]:
        before = predict.low_rank(only_row(core.factors, window.newest))[0]
        start = (core, before, jnp.asarray(True), iterations, failed)
        core, _, moving, iterations, failed = lax.while_loop(
            lambda carry: carry[2] & (carry[3] < config.max_iterations), one_sweep, start
        )
        return core, moving, iterations, failed

    def one_round(carry: tuple[Core, Array, Array, Array, Array, Array]) -> tuple[Core, Array, Array, Array, Array, Array]:
        core, _, _, rounds, iterations, failed = carry
        core, moving, iterations, failed = settle(core, iterations, failed)
        if config.start == "svd":
            return core, jnp.asarray(False), moving, rounds + 1, iterations, failed
        weights, targets = model.weights_and_targets(core.outliers, window, slice_weights)
        factors, deaths = repeat(lambda it: rank.death(it, weights, targets, row_share), core.factors, config.max_rank)
        factors, births = repeat(
            lambda it: birth(it, weights, targets - predict.low_rank(it), row_share), factors, MOST_BIRTHS
        )
        return replace(core, factors=factors), deaths + births > 0, moving, rounds + 1, iterations, failed

    zero = jnp.asarray(0, jnp.int32)
    met = Core(window, factors, outliers)
    core, _, moving, _, iterations, failed = lax.while_loop(
        lambda carry: carry[1] & (carry[3] < MOST_ROUNDS) & (carry[4] < config.max_iterations),
        one_round,
        (met, jnp.asarray(True), jnp.asarray(True), zero, zero, zero),
    )
    residual, variance = residuals(core)
    outliers = model.update(config, core.outliers, window, slice_weights, residual, variance)
    outliers = model.finish(config, outliers, window, slice_weights, residual, variance)
    core = replace(core, outliers=outliers)
    evidence = rank.evidence(core.factors, row_share)
    evidence += model.evidence(config, outliers, window, slice_weights, residual, variance)
    told = tell(config, core, window.newest, residual[window.newest], variance[window.newest])
    flags = jnp.where(moving & (iterations >= config.max_iterations), Trouble.NOT_CONVERGED.value, 0)
    flags |= jnp.where(failed > 0, Trouble.SINGULAR.value, 0)
    return core, replace(told, iterations=iterations, evidence=evidence, trouble=told.trouble | flags)


@partial(jax.jit, static_argnames="config")
def smooth(core: Core, lag: Array, config: Config) -> Report:
    """What is known now about the slice `lag` steps before the newest."""
    slot = jnp.mod(core.window.newest - lag, config.window)
    row = only_row(core.factors, slot)
    return tell(config, core, slot, core.window.values[slot] - predict.low_rank(row)[0], predict.variance(row)[0])


@partial(jax.jit, static_argnames="config")
def project(core: Core, values: Array, mask: Array, config: Config) -> Report:
    """The report of a slice met with the factors held fixed: nothing is learned from it."""
    model = OUTLIER_MODELS[config.outliers]
    window = write(core.window, values, mask)
    outliers, factors = model.meet(core.outliers, core.factors, window)
    row = only_row(factors, window.newest)
    core = Core(window, factors, outliers)
    return tell(config, core, window.newest, values - predict.low_rank(row)[0], predict.variance(row)[0])


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


def repeat(move: Callable[[Factors], tuple[Factors, Array]], factors: Factors, most: int) -> tuple[Factors, Array]:
    """Repeat a move until it is refused, `most` times at most. Returns how often it was made."""

    def again(carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
        factors, made = move(carry[0])
        return factors, made, carry[2] + made

    start = (factors, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    factors, _, count = lax.while_loop(lambda carry: carry[1] & (carry[2] < most), again, start)
    return factors, count


def tell(config: Config, core: Core, slot: Array, residual: Array, variance: Array) -> Report:
    """The report of one slice of the window, given its residual and Var x."""
    model = OUTLIER_MODELS[config.outliers]
    mask = core.window.mask[slot]
    sparse, probability = model.outliers(core.outliers, core.window, slot, residual)
    noise_variance = model.noise_variance(core.outliers, slot)
    typical = model.typical_noise(core.outliers)
    living = rank.rank(core.factors)
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
