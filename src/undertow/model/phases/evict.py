"""Evict a slice from the window: what it says goes into the exponentially discounted statistics."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from undertow.model.factors import discounted, predict
from undertow.model.factors.rows import only_row
from undertow.model.flow import where
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import contaminated, mixture
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Core, taken, turned


def evict(settings: Settings, core: Core) -> Core:
    """The core with the oldest slice of a full window in the statistics; nothing changes with `memory="window"`."""
    factors = core.factors
    if factors.discounted is None:
        return core
    outliers: Contaminated = core.outliers  # the only model with such statistics: `Config` refuses the other
    assert outliers.discounted is not None
    length = core.window.values.shape[0]
    slot = turned(core.window.newest + 1, length)
    mask, rho = taken(core.window.mask, slot), taken(outliers.probability, slot)
    values = taken(core.window.values, slot) - mean_of(core.level, slot)
    row = only_row(factors, slot)
    square = (values - predict.low_rank(row)[0]) ** 2 + predict.variance(row)[0] + variance_of(core.level, slot)
    typical, precision = contaminated.typical_noise(outliers), mixture.precision(outliers)
    robustness = mixture.robustness_weight(outliers, rho, taken(outliers.slice_scale, slot))
    weights = where(mask, precision * robustness, 0)
    full = core.window.filled == length
    weight = where(full, jnp.asarray(settings.forgetting, values.dtype) ** length, 0)
    rows = discounted.absorb_rows(factors.discounted, row, weights[None], values[None], settings.forgetting, weight)
    noise = discounted.absorb_noise(
        outliers.discounted,
        mask,
        rho,
        robustness * square / typical,
        precision * square,
        settings.forgetting,
        weight,
    )
    return replace(core, factors=replace(factors, discounted=rows), outliers=replace(outliers, discounted=noise))
