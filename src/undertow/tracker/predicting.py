"""What all predictors say of a slice, and their combination: mean, variance, and what is an outlier by it."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import calibration, law, scales
from undertow.tracker.core import Core
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Given, Prediction
from undertow.tracker.predictors.cp import Regression, left_out_of_all

FARTHEST = 4.0
"""Standard deviations from its level beyond which nobody expects an entry on a curved scale, where a linear
extrapolation can explode."""


@register_dataclass
@dataclass(frozen=True)
class Said:
    """What all predictors say of every entry (K, n): means, variances and noises as corrected by what they were worth.

    Attributes:
        means: Of the entries.
        variances: Of the entries without noise.
        noises: Variances of the noise.
        claimed: Both variances as the predictors have them.
        absent: Who has nothing to say (K,).
    """

    means: Array
    variances: Array
    noises: Array
    claimed: Array
    absent: Array


def said_by_all(
    core: Core,
    values: Array,
    level: Prediction,
    season: Prediction,
    from_cp: tuple[Regression, ...],
    scale: Array,
    weights: Array,
    for_cp: Array,
) -> Said:
    """What everybody says where observations have these weights, and others for the CP models."""
    given = Given(values, weights, level.mean)
    others = (one.predict(state, given) for one, state in zip(registry.OTHERS, core.others, strict=True))
    said = (level, *others, season, *left_out_of_all(from_cp, values, for_cp))
    means, variances, noises = (
        jnp.vstack([getattr(one, part) for one in said]) for part in ("mean", "variance", "noise")
    )
    # Who has lost track says what the level says.
    sound = jnp.isfinite(means) & jnp.isfinite(variances) & jnp.isfinite(noises)
    means, variances, noises = (
        jnp.where(sound, made, one)
        for made, one in ((means, level.mean), (variances, level.variance), (noises, level.noise))
    )
    factors = calibration.factors(core.calibration)
    return Said(bounded(means, level, scale), variances * factors, noises * factors, variances + noises, ~sound.any(1))


def bounded(means: Array, level: Prediction, scale: Array) -> Array:
    """On a curved scale, within what the entry's own past makes possible."""
    far = jnp.where(scale == scales.LINEAR, jnp.inf, FARTHEST) * jnp.sqrt(level.variance + level.noise)
    return jnp.clip(means, level.mean - far, level.mean + far)


def outliers(
    core: Core, values: Array, mask: Array, scale: Array, weights: Array, said: Said, usual: Array
) -> tuple[Array, Array, Array]:
    """Probability of outliers, mean and variance of the combination; as far as is `usual` (n,), squared, nothing is."""
    mean = combined(weights, said.means, scale)
    variance = weights @ (said.variances + said.noises + (said.means - mean) ** 2)
    probability = law.outlier_probability(core.law, (values - mean) / jnp.sqrt(jnp.maximum(variance, usual)))
    return jnp.where(mask, probability, 0), mean, variance


def answered(weights: Array, said: Said, gains: Array, scale: Array) -> tuple[Array, Array]:
    """Variance of an observation around the answer, and its part that is noise; predictors err less once they know the
    slice."""
    mean, better = combined(weights, said.means, scale), (gains**2)[:, None]
    noise = weights @ (said.noises * better)
    return weights @ (said.variances * better + (said.means - mean) ** 2) + noise, noise


def combined(weights: Array, means: Array, scale: Array) -> Array:
    """Averaged in the unit of the data, as errors are weighed; on the scale of the stream."""
    return scales.scaled(weights @ scales.plain(means, scale), scale)
