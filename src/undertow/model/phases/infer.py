"""What can be said about a slice: at the end of a step, later on, of another slice, of single entries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model import level as levels
from undertow.model.factors import layout, rank
from undertow.model.factors.rows import single_row
from undertow.model.flags import Flags
from undertow.model.noise import contaminated, gaussian_gamma
from undertow.model.noise.pooled import noise_floor
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Core, EntryIndex, Factors, Window

OUTLIER_MODELS = {"contaminated": contaminated, "gaussian_gamma": gaussian_gamma}
LARGEST = 1e9
"""Values beyond this many units cannot be squared and weighed safely in float32; they are outliers anyway."""


@register_dataclass
@dataclass(frozen=True)
class Report:
    """What a step tells about one slice, in units of the stream. Arrays are (I_1, …, I_N) unless said otherwise, (E,)
    where only observed entries are kept."""

    low_rank: Array
    low_rank_variance: Array
    noise_variance: Array
    outliers: Array
    outlier_probability: Array
    rank: Array
    """Scalar, as are all below."""
    usual_noise: Array
    """Noise variance."""
    iterations: Array
    elbo: Array
    flags: Array
    """Flags of `Trouble`."""


def usable(values: Array, mask: Array) -> tuple[Array, Array]:
    """Values, 0 where there is nothing to compute with, and the mask of the others."""
    seen = mask & (jnp.abs(values) <= LARGEST)
    return jnp.where(seen, values, 0), seen


@jax.jit
def smooth(core: Core, lag: Array, settings: Settings) -> Report:
    """What is known now about the slice `lag` steps before the newest."""
    slot = jnp.mod(core.window.newest - lag, settings.window)
    row, entry_index = only_row(core.factors, slot), layout.alone(core.window, slot).entry_index
    residual = core.window.values[slot] - levels.mean_of(core.level, slot) - layout.low_rank(row, entry_index)[0]
    variance = layout.variance(row, entry_index)[0] + levels.variance_of(core.level, slot)
    return tell(settings, core, slot, residual, variance, usual_noise(settings, core))


@jax.jit
def project(
    core: Core, values: Array, mask: Array, settings: Settings, entry_index: EntryIndex | None = None
) -> Report:
    """The report of a slice met with factors and level held fixed: nothing is learned from it."""
    model = OUTLIER_MODELS[settings.outliers]
    values, mask = usable(values, mask)
    slot = jnp.asarray(0, jnp.int32)
    values, mask, entry_index = jax.tree.map(lambda array: array[None], (values, mask, entry_index))
    window = Window(values, mask, newest=slot, filled=jnp.asarray(1, jnp.int32), entry_index=entry_index)
    level = None if core.level is None else levels.coming(core.level, core.window)
    outliers, factors = model.meet(model.one_slice(core.outliers), single_row(core.factors), window, level)
    residual = values[0] - levels.mean_of(level, slot) - layout.low_rank(factors, entry_index)[0]
    variance = layout.variance(factors, entry_index)[0] + levels.variance_of(level, slot)
    return tell(settings, Core(window, factors, outliers, level), slot, residual, variance, usual_noise(settings, core))


@jax.jit
def cross_predict(
    core: Core, values: Array, mask: Array, half: Array, settings: Settings, entry_index: EntryIndex | None = None
) -> tuple[Array, Array]:
    """Every observed entry as the other half of its slice tells it, with factors and level as they were before.

    Mean and variance of the observation (I_1, …, I_N); `half` says which entries belong together.
    """

    def from_one_half(shown: Array) -> tuple[Array, Array]:
        report = project(core, jnp.where(shown, values, 0), shown, settings, entry_index)
        return report.low_rank, report.low_rank_variance + report.noise_variance

    means, variances = lax.map(from_one_half, jnp.stack([mask & half, mask & ~half]))
    return jnp.where(half, means[1], means[0]), jnp.where(half, variances[1], variances[0])


@jax.jit
def at(core: Core, settings: Settings, entry_index: EntryIndex) -> Report:
    """The report of any entries of the newest slice of a sparse window, as if they had not been observed."""
    row = only_row(core.factors, core.window.newest)
    wanted = jax.tree.map(lambda array: array[None], entry_index)
    low_rank, variance = layout.low_rank(row, wanted), layout.variance(row, wanted)
    nothing = jnp.zeros_like(low_rank)
    slot = jnp.asarray(0, jnp.int32)
    window = Window(nothing, nothing > 0, slot, jnp.asarray(1, jnp.int32), wanted)
    assert isinstance(core.outliers, Contaminated)
    newest = core.outliers.slice_scale[core.window.newest][None]
    outliers = replace(core.outliers, probability=nothing, slice_scale=newest)
    alone = Core(window, row, outliers, None)
    told = tell(settings, alone, slot, -low_rank[0], variance[0], usual_noise(settings, core))
    return replace(told, flags=told.flags & ~Flags.EMPTY.value)


def only_row(factors: Factors, slot: Array) -> Factors:
    """The factors with the temporal row of one slot as their only one."""
    one = replace(factors, row_means=factors.row_means[slot][None])
    return replace(one, row_covariances=factors.row_covariances[slot][None])


def usual_noise(settings: Settings, core: Core) -> Array:
    """One number for the noise variance of a stream."""
    slice_weights = core.window.slice_weights(settings.forgetting)
    noise: Array = OUTLIER_MODELS[settings.outliers].usual_noise(core.outliers, slice_weights)
    return noise


def tell(settings: Settings, core: Core, slot: Array, residual: Array, variance: Array, usual: Array) -> Report:
    """The report of one slice of the window, given its residual, Var x and the stream's usual noise variance."""
    model = OUTLIER_MODELS[settings.outliers]
    mask = core.window.mask[slot]
    sparse, probability = model.outliers(core.outliers, core.window, slot, residual)
    noise_variance = model.noise_variance(core.outliers, slot)
    typical = model.typical_noise(core.outliers)
    living = rank.living(core.factors, settings.start).sum(dtype=jnp.int32)
    low_rank = core.window.values[slot] - residual
    observed = mask.sum()
    many = (probability > 0.5).sum() * 2 > observed
    far = (noise_variance.mean() > 100 * usual) & (observed > 0)
    flags = jnp.where(observed == 0, Flags.EMPTY.value, 0)
    flags |= jnp.where(living == settings.max_rank, Flags.RANK_FULL.value, 0)
    flags |= jnp.where(living == 0, Flags.RANK_ZERO.value, 0)
    flags |= jnp.where(many | far, Flags.MANY_OUTLIERS.value, 0)
    flags |= jnp.where(typical <= 2 * noise_floor(typical.dtype), Flags.NO_NOISE.value, 0)
    finite = jnp.isfinite(low_rank).all() & jnp.isfinite(variance).all() & jnp.isfinite(noise_variance).all()
    flags |= jnp.where(finite, 0, Flags.NOT_FINITE.value)
    zero = jnp.asarray(0, jnp.int32)
    return Report(
        low_rank, variance, noise_variance, sparse, probability, living, usual, zero, jnp.zeros_like(usual), flags
    )
