"""Tempering: the noise is reset where coordinate ascent is trapped.

A row that is mostly flagged teaches its factor nothing, so it stays flagged however well it would fit. The noise starts
again as large as all residuals, and the sweeps shrink it.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model.factors import layout
from undertow.model.level import mean_of
from undertow.model.noise.mixture import precision
from undertow.model.noise.updates import update_probability
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Level, Window, over_slice


def shut_out(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """Whether some row of some mode is mostly flagged."""
    mask = window.mask.astype(state.probability.dtype)
    any_row = jnp.asarray(False)
    for mode in range(layout.modes(window)):
        flagged = layout.row_sums(slice_weights, state.probability, mode, window.entry_index)
        any_row |= (flagged > layout.row_sums(slice_weights, mask, mode, window.entry_index) / 2).any()
    return any_row


def reset_noise(
    settings: Settings, state: Contaminated, factors: Factors, window: Window, slice_weights: Array, level: Level | None
) -> Contaminated:
    """Noise as large as all residuals, flagged ones included, and outliers judged by that."""
    square = (window.values - mean_of(level) - layout.low_rank(factors, window.entry_index)) ** 2
    per_slice = over_slice(jnp.where(window.mask, precision(state) * square, 0))
    count = over_slice(window.mask.astype(square.dtype))
    factor = jnp.maximum(slice_weights @ per_slice / jnp.maximum(slice_weights @ count, 1), 1)
    state = replace(
        state,
        ratio=jnp.full_like(state.ratio, settings.outlier_variance),
        slice_scale=jnp.ones_like(state.slice_scale),
        pool_rate=state.pool_rate * factor,
        noise_rate=state.noise_rate * factor,
    )
    return update_probability(state, window, square)
