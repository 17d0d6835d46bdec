"""What a step reports about one slice."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model import level as levels
from undertow.model.defaults import FAR_NOISIER
from undertow.model.factors import rank
from undertow.model.flags import Flags
from undertow.model.noise.models import outlier_model
from undertow.model.noise.pooled import noise_floor
from undertow.model.settings import Settings
from undertow.model.types import Core, taken


@register_dataclass
@dataclass(frozen=True)
class Report:
    """What a step reports about one slice, in units of the stream.

    Arrays are (I_1, …, I_N), or (E,) where only observed entries are kept; from `rank` on they are scalars.

    Attributes:
        low_rank: x̄ + m̄.
        low_rank_variance: Var x + Var m.
        level: m̄; one 0 where the model has no levels.
        noise_variance: Variance of a new observation around them.
        outliers: Expected outlier.
        outlier_probability: ρ.
        rank: Number of components that count.
        usual_noise: Noise variance of the stream.
        iterations: Sweeps of the step.
        elbo: The bound after it, before α is chosen anew.
        flags: `Flags` as an integer.
    """

    low_rank: Array
    low_rank_variance: Array
    level: Array
    noise_variance: Array
    outliers: Array
    outlier_probability: Array
    rank: Array
    usual_noise: Array
    iterations: Array
    elbo: Array
    flags: Array


def usual_noise(settings: Settings, core: Core) -> Array:
    """One number for the noise variance of a stream."""
    return outlier_model(settings).usual_noise(core.outliers, core.window.slice_weights(settings.forgetting))


def raised(conditions: dict[Flags, Array]) -> Array:
    """The flags whose conditions hold, as one number."""
    numbers = np.array([flag.value for flag in conditions], np.int32)
    return (jnp.stack(list(conditions.values())) * numbers).sum(dtype=jnp.int32)


def report_slice(settings: Settings, core: Core, slot: Array, residual: Array, variance: Array, usual: Array) -> Report:
    """The report of one slice of the window, given its residual, Var x and the stream's usual noise variance."""
    model = outlier_model(settings)
    mask = taken(core.window.mask, slot)
    sparse, probability = model.outliers(core.outliers, core.window, slot, residual)
    noise_variance = model.noise_variance(core.outliers, slot)
    typical = model.typical_noise(core.outliers)
    count = rank.effective(core.factors, settings.start).sum(dtype=jnp.int32)
    low_rank = taken(core.window.values, slot) - residual
    observed = mask.sum()
    many = (probability > 0.5).sum() * 2 > observed
    far = (noise_variance.mean() > FAR_NOISIER * usual) & (observed > 0)
    flags = raised(
        {
            Flags.EMPTY: observed == 0,
            Flags.RANK_FULL: count == settings.max_rank,
            Flags.RANK_ZERO: count == 0,
            Flags.MANY_OUTLIERS: many | far,
            Flags.NO_NOISE: typical <= 2 * noise_floor(typical.dtype),
            Flags.NOT_FINITE: ~jnp.isfinite(low_rank + variance + noise_variance).all(),
        }
    )
    zero = jnp.asarray(0, jnp.int32)
    level = jnp.asarray(levels.mean_of(core.level, slot), low_rank.dtype)
    return Report(
        low_rank, variance, level, noise_variance, sparse, probability, count, usual, zero, jnp.zeros_like(usual), flags
    )
