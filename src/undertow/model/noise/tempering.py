"""Tempering: the noise is reset or shrunk where coordinate ascent is trapped.

*Reset*: a row that is mostly flagged teaches its factor nothing, so it stays flagged however well it would fit. The
noise starts again as large as all residuals, and the sweeps shrink it.
*Shrink*: where a fifth of all entries are outliers, noise wide enough for all of them explains itself. Noise as small
as its median says is tried, and kept if the ELBO gains (phases/judge.py).
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model.defaults import CHI_SQUARE_MEDIAN, TOO_WIDE
from undertow.model.factors import layout
from undertow.model.flow import shared, where
from undertow.model.level import mean_of
from undertow.model.noise.mixture import median, precision, sample
from undertow.model.noise.updates import update_probability
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Level, Window, along_time, over_slice


def shut_out(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """Whether some row of some mode is mostly flagged."""
    # More than half of what was observed there: a positive sum.
    excess = where(window.mask, state.probability - 0.5, 0)
    largest = [
        layout.row_sums(slice_weights, excess, mode, window.entry_index).max() for mode in range(layout.modes(window))
    ]
    return jnp.stack(largest).max() > 0


def reset_noise(
    settings: Settings, state: Contaminated, factors: Factors, window: Window, slice_weights: Array, level: Level | None
) -> Contaminated:
    """Noise as large as all residuals, flagged ones included, and outliers judged by that."""
    square = (window.values - mean_of(level) - layout.low_rank(factors, window.entry_index)) ** 2
    per_slice = over_slice(where(window.mask, precision(state) * square, 0))
    count = over_slice(window.mask.astype(square.dtype))
    factor = jnp.maximum(slice_weights @ per_slice / jnp.maximum(slice_weights @ count, 1), 1)
    state = replace(
        state,
        ratio=jnp.full_like(state.ratio, settings.outlier_variance),
        slice_scale=jnp.ones_like(state.slice_scale),
        pool_rate=state.pool_rate * factor,
        noise_rate=state.noise_rate * factor,
    )
    return update_probability(state, window, square)[0]


def too_wide(settings: Settings, state: Contaminated, window: Window, residual: Array, variance: Array) -> Array:
    """Whether the noise is too wide for more than half of the residuals. Counted: a median would have to be sorted."""
    scaled = _sampled(state, window, residual, variance)
    small = (scaled < TOO_WIDE * CHI_SQUARE_MEDIAN).sum()
    return settings.robust & (2 * small > (~jnp.isnan(scaled)).sum())


def median_noise(state: Contaminated, window: Window, residual: Array, variance: Array) -> Array:
    """Noise variance by the median of the residuals, over that in use."""
    return median(_sampled(state, window, residual, variance)) / CHI_SQUARE_MEDIAN


def scaled_noise(state: Contaminated, factor: Array) -> Contaminated:
    """The noise variance of all entries times a factor, outliers as large as before. ρ is left to the updates."""
    return replace(
        state,
        ratio=state.ratio / factor,
        pool_rate=state.pool_rate * factor,
        noise_rate=state.noise_rate * factor,
    )


def _sampled(state: Contaminated, window: Window, residual: Array, variance: Array) -> Array:
    """τ̄ E r² / φ of some entries, around 1 where the noise is as it should be; NaN where nothing was observed."""
    return _scaled(precision(state), state.slice_scale, window, residual, variance)


@shared
def _scaled(noise: Array, slice_scale: Array, window: Window, residual: Array, variance: Array) -> Array:
    square = residual**2 + variance
    return sample(where(window.mask, noise * square / along_time(slice_scale, square), jnp.nan), window.entry_index)
