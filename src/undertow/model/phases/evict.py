"""A slice leaves the window: what it says goes into the sums of the past (past.py)."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from undertow.config import Config
from undertow.model.factors import discounted as past
from undertow.model.factors import predict
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import contaminated, mixture
from undertow.model.types import Contaminated, Core


def leave(config: Config, core: Core) -> Core:
    """The core with the oldest slice of a full window in the sums; nothing changes where what leaves is forgotten."""
    factors, outliers = core.factors, core.outliers
    if factors.past is None or not isinstance(outliers, Contaminated) or outliers.past is None:
        return core
    length = core.window.values.shape[0]
    slot = jnp.mod(core.window.newest + 1, length)
    mask, rho = core.window.mask[slot], outliers.probability[slot]
    values = core.window.values[slot] - mean_of(core.level, slot)
    row = replace(factors, row_means=factors.row_means[slot][None], row_covariances=factors.row_covariances[slot][None])
    square = (values - predict.low_rank(row)[0]) ** 2 + predict.variance(row)[0] + variance_of(core.level, slot)
    typical, precision = contaminated.typical_noise(outliers), mixture.precision(outliers)
    trust = mixture.trust(outliers, rho, outliers.slice_scale[slot])
    weights = jnp.where(mask, precision * trust, 0)
    full = core.window.filled == length
    share = jnp.where(full, jnp.asarray(config.forgetting, values.dtype) ** length, 0)
    rows = past.absorb_rows(factors.past, row, weights[None], values[None], config.forgetting, share)
    noise = past.absorb_noise(
        outliers.past, mask, rho, trust * square / typical, precision * square, config.forgetting, share
    )
    return replace(core, factors=replace(factors, past=rows), outliers=replace(outliers, past=noise))
