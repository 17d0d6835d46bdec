"""A slice leaves the window: what it says goes into the sums of the past (past.py)."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from undertow.model.factors import discounted, predict
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import contaminated, mixture
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Core


def leave(settings: Settings, core: Core) -> Core:
    """The core with the oldest slice of a full window in the sums; nothing changes where what leaves is forgotten."""
    factors, outliers = core.factors, core.outliers
    if factors.discounted is None or not isinstance(outliers, Contaminated) or outliers.discounted is None:
        return core
    length = core.window.values.shape[0]
    slot = jnp.mod(core.window.newest + 1, length)
    mask, rho = core.window.mask[slot], outliers.probability[slot]
    values = core.window.values[slot] - mean_of(core.level, slot)
    row = replace(factors, row_means=factors.row_means[slot][None], row_covariances=factors.row_covariances[slot][None])
    square = (values - predict.low_rank(row)[0]) ** 2 + predict.variance(row)[0] + variance_of(core.level, slot)
    typical, precision = contaminated.typical_noise(outliers), mixture.precision(outliers)
    robustness_weight = mixture.robustness_weight(outliers, rho, outliers.slice_scale[slot])
    weights = jnp.where(mask, precision * robustness_weight, 0)
    full = core.window.filled == length
    share = jnp.where(full, jnp.asarray(settings.forgetting, values.dtype) ** length, 0)
    rows = discounted.absorb_rows(factors.discounted, row, weights[None], values[None], settings.forgetting, share)
    noise = discounted.absorb_noise(
        outliers.discounted,
        mask,
        rho,
        robustness_weight * square / typical,
        precision * square,
        settings.forgetting,
        share,
    )
    return replace(core, factors=replace(factors, discounted=rows), outliers=replace(outliers, discounted=noise))
