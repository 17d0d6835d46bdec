"""Coordinate-ascent updates of contaminated normal noise; `contaminated.py` says what the letters mean.

Each is an exact coordinate step of the ELBO, given E r² = (y − m̄ − x̄)² + Var x + Var m of the window (`square`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from undertow.model.factors import discounted
from undertow.model.flow import shared, where
from undertow.model.noise import pooled
from undertow.model.noise.mixture import (
    energies,
    log_rates,
    outlier_probability,
    precision,
    rate_prior,
    robustness_weight,
    scale_by,
)
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Window, over_time


def update(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Contaminated:
    """All updates of this model in turn."""
    return _updated(settings, state, window, slice_weights, residual**2 + variance)


@shared
def _updated(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, square: Array
) -> Contaminated:
    state, sums = update_probability(state, window, square)
    state = update_rate(settings, state, slice_weights, sums)
    state = update_ratio(settings, state, slice_weights, sums)
    state = update_slice_scale(state, sums)
    return update_noise(settings, state, window, slice_weights, square)


class SliceSums(NamedTuple):
    """Sums over the entries of every slice, each (W,): all that π, κ and φ need of them.

    Attributes:
        observed: ΣO.
        flagged: Σρ.
        outlying: Σρτ̄E r².
        usual: Σ(1−ρ)τ̄E r².
    """

    observed: Array
    flagged: Array
    outlying: Array
    usual: Array


def _sums(state: Contaminated, mask: Array, probability: Array, square: Array) -> SliceSums:
    """Of one slice."""
    energy = energies(state, mask, square)
    return SliceSums(
        mask.sum(dtype=energy.dtype),
        probability.sum(),
        (probability * energy).sum(),
        ((1 - probability) * energy).sum(),
    )


def update_probability(state: Contaminated, window: Window, square: Array) -> tuple[Contaminated, SliceSums]:
    """ρ of every entry of the window, and the sums by it, in one pass.

    ω does not enter, since it weighs likelihood and entropy alike.
    """
    rates = log_rates(state)

    def slice_of(mask: Array, square: Array, scale: Array) -> tuple[Array, SliceSums]:
        probability = outlier_probability(state, mask, square, scale, rates)
        return probability, _sums(state, mask, probability, square)

    probability, sums = jax.vmap(slice_of)(window.mask, square, state.slice_scale)
    return replace(state, probability=probability), sums


def update_rate(settings: Settings, state: Contaminated, slice_weights: Array, sums: SliceSums) -> Contaminated:
    """q(π) = Beta(α0 + Σωρ, β0 + ΣωO(1−ρ))."""
    prior_a, prior_b = discounted.rate_prior(state.discounted, *rate_prior(settings))
    flagged, observed = slice_weights @ sums.flagged, slice_weights @ sums.observed
    return replace(state, rate_a=prior_a + flagged, rate_b=prior_b + jnp.maximum(observed - flagged, 0))


def update_ratio(settings: Settings, state: Contaminated, slice_weights: Array, sums: SliceSums) -> Contaminated:
    """κ = max(κ_min, φ, Σ ω ρ τ̄ E r² / Σ ω ρ): the clip is the constrained maximiser, so the ELBO cannot fall."""
    flagged, energy = slice_weights @ sums.flagged, slice_weights @ sums.outlying
    if state.discounted is not None:
        flagged, energy = flagged + state.discounted.flagged, energy + state.discounted.energy
    ratio = where(flagged > 0, energy / where(flagged > 0, flagged, 1), 0)
    least = jnp.maximum(state.slice_scale.max(), settings.outlier_variance)
    return replace(state, ratio=jnp.maximum(ratio, least))


def update_slice_scale(state: Contaminated, sums: SliceSums) -> Contaminated:
    """φ of every slice in the window."""
    return replace(state, slice_scale=scale_by(state.ratio, sums.usual, sums.observed - sums.flagged))


def noise_statistics(state: Contaminated, window: Window, slice_weights: Array, square: Array) -> tuple[Array, Array]:
    """n_i = Σ_t ω O and s_i = Σ_t ω O ((1−ρ)/φ + ρ/κ) E r², each (I_1, …, I_N); of a sparse window their sums."""
    energy = energies(state, window.mask, square)

    def slice_of(seen: Array, energy: Array, probability: Array, weight: Array, scale: Array) -> tuple[Array, Array]:
        return where(seen, weight, 0), weight * robustness_weight(state, probability, scale) * energy

    counts, sums = over_time(slice_of, window.mask, energy, state.probability, slice_weights, state.slice_scale)
    sums = sums / precision(state)
    return (counts, sums) if window.entry_index is None else (counts.sum(), sums.sum())


def update_noise(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, square: Array
) -> Contaminated:
    """b with τ integrated out, then q(τ_i) = Ga(α + n_i/2, b + s_i/2). One noise for all: α → ∞, b/α = Σs/Σn."""
    counts, sums = noise_statistics(state, window, slice_weights, square)
    if state.discounted is not None:
        return discounted.update_noise(state, state.discounted, counts, sums)
    alpha, floor = state.pool_shape, pooled.noise_floor(square.dtype)
    count, total = jnp.stack([counts, sums]).reshape(2, -1).sum(axis=1)
    rate = where(
        settings.noise_by_entry,
        pooled.pooled_rate(alpha, state.pool_rate, counts, sums, floor * alpha),
        alpha * pooled.shared_variance(state.pool_rate / alpha, count, total, floor),
    )
    half = where(settings.noise_by_entry, 0.5, 0).astype(rate.dtype)
    return replace(state, pool_rate=rate, noise_shape=alpha + half * counts, noise_rate=rate + half * sums)


def update_pooling(state: Contaminated, window: Window, slice_weights: Array, square: Array) -> Contaminated:
    """α: the best of α, 1.5α and α/1.5 by the ELBO with τ integrated out."""
    counts, sums = noise_statistics(state, window, slice_weights, square)
    if state.discounted is not None:
        return discounted.update_pooling(state, state.discounted, counts, sums)
    shape, rate = pooled.better_pool(state.pool_shape, state.pool_rate, counts, sums)
    return replace(state, pool_shape=shape, pool_rate=rate, noise_shape=shape + counts / 2, noise_rate=rate + sums / 2)
