"""The formulas of contaminated normal noise, entry by entry; `contaminated.py` says what the letters mean."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.nn import sigmoid

from undertow.model.defaults import CHI_SQUARE_MEDIAN, MEDIAN_SAMPLE, NO_OUTLIERS, SLICE_PRIOR, SMALLEST_SCALE
from undertow.model.factors import layout
from undertow.model.flow import shared, where
from undertow.model.noise.special import digamma
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, EntryIndex, over_slice


def rate_prior(settings: Settings) -> tuple[Array, float]:
    """Parameters of the prior Beta(α0, β0) of π. Where the model is not robust, nothing is an outlier."""
    flagged = where(settings.robust, settings.outlier_rate * settings.outlier_rate_strength, NO_OUTLIERS)
    return flagged, (1 - settings.outlier_rate) * settings.outlier_rate_strength


def log_rates(state: Contaminated) -> Array:
    """E ln π and E ln(1−π) (2,)."""
    return _log_rates(state.rate_a, state.rate_b)


@shared
def _log_rates(rate_a: Array, rate_b: Array) -> Array:
    digammas = digamma(jnp.stack([rate_a, rate_b, rate_a + rate_b]))
    return digammas[:2] - digammas[2]


def precision(state: Contaminated) -> Array:
    """τ̄_i (I_1, …, I_N)."""
    return state.noise_shape / state.noise_rate


def noise_now(state: Contaminated) -> Array:
    """1/τ̄_i: the noise variance of every entry (I_1, …, I_N)."""
    return state.noise_rate / state.noise_shape


def robustness_weight(state: Contaminated, probability: Array, scale: Array) -> Array:
    """(1−ρ)/φ + ρ/κ: the fraction of an entry's precision that is left."""
    return (1 - probability) / scale + probability / state.ratio


def energies(state: Contaminated, mask: Array, square: Array) -> Array:
    """τ̄ E r², 0 where nothing was observed. All sums are taken of this: one array of the window's size is enough."""
    return where(mask, precision(state) * square, 0)


def outlier_probability(
    state: Contaminated, mask: Array, square: Array, scale: Array, rates: Array | None = None
) -> Array:
    """ρ from  logit ρ = E ln π − E ln(1−π) − ½ ln(κ/φ) + ½ τ̄ (1/φ − 1/κ) E r².

    `rates` are the `log_rates`, where they are known already.
    """
    rates = log_rates(state) if rates is None else rates
    return _probability(energies(state, mask, square), mask, scale, state.ratio, rates)


@shared
def _probability(energy: Array, mask: Array, scale: Array, ratio: Array, rates: Array) -> Array:
    logit = rates[0] - rates[1] - jnp.log(ratio / scale) / 2 + energy * (1 / scale - 1 / ratio) / 2
    return where(mask, sigmoid(logit), 0)


def slice_scales(state: Contaminated, mask: Array, probability: Array, square: Array) -> Array:
    """φ_t = (ν + Σ O (1−ρ) τ̄ E r²) / (ν + Σ O (1−ρ)), at most κ."""
    return _slice_scales(energies(state, mask, square), mask, probability, state.ratio)


@shared
def _slice_scales(energy: Array, mask: Array, probability: Array, ratio: Array) -> Array:
    usual = over_slice((1 - probability) * energy)
    return scale_by(ratio, usual, over_slice(mask.astype(energy.dtype)) - over_slice(probability))


def scale_by(ratio: Array, energy: Array, count: Array) -> Array:
    """The same, given both sums of every slice."""
    return jnp.minimum((SLICE_PRIOR + energy) / (SLICE_PRIOR + count), ratio)


def slice_worth(state: Contaminated, mask: Array, square: Array, rates: Array | None = None) -> Array:
    """What a single slice adds to the bound at its φ, ρ being the best for it."""
    scale, energy = state.slice_scale, energies(state, mask, square)
    log_rate, log_other = log_rates(state) if rates is None else rates
    usual = log_other - jnp.log(scale) / 2 - energy / scale / 2
    outlying = log_rate - jnp.log(state.ratio) / 2 - energy / state.ratio / 2
    entries = where(mask, jnp.logaddexp(usual, outlying), 0).sum()
    return entries - (jnp.log(scale) + 1 / scale).sum() * SLICE_PRIOR / 2


def median_scale(state: Contaminated, mask: Array, square: Array, entry_index: EntryIndex | None = None) -> Array:
    """φ (1,) of a slice of which nothing is known yet, by its median: outliers, if they are few, do not count."""
    return _median_scale(precision(state) * square, mask, entry_index)


@shared
def _median_scale(energy: Array, mask: Array, entry_index: EntryIndex | None) -> Array:
    middle = median(sample(where(mask, energy, jnp.nan), entry_index)) / CHI_SQUARE_MEDIAN
    return jnp.maximum(where(mask.any(), middle, 1), SMALLEST_SCALE)[None]


def median(values: Array) -> Array:
    """The median of those values, none of them negative, that are not NaN; NaN where all are.

    Sorted as integers, by their bits: that has the same order, and takes a fifth of the time on a CPU.
    """
    bits = jnp.dtype(f"int{8 * values.dtype.itemsize}")
    missing = jnp.isnan(values)
    ordered = lax.sort(where(missing, np.iinfo(bits).max, lax.bitcast_convert_type(values, bits)), is_stable=False)
    count = values.size - missing.sum()
    middle = ordered[jnp.maximum(jnp.stack([count - 1, count]) >> 1, 0)]
    return where(count > 0, lax.bitcast_convert_type(middle, values.dtype).mean(), jnp.nan)


def sample(values: Array, entry_index: EntryIndex | None = None) -> Array:
    """Some of the values, evenly spread: enough for a median, few enough to be sorted in no time."""
    return layout.sample(values, entry_index, MEDIAN_SAMPLE)
