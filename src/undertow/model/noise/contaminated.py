"""The default outlier model: contaminated normal noise.

    e_ti | z=0 ~ N(0, φ_t/τ_i),   e_ti | z=1 ~ N(0, κ/τ_i),   z ~ Bernoulli(π),   π ~ Beta,   τ_i ~ Ga(α, b).

The outlier itself is integrated out, so the factors see the data with weights

    w_ti = ω_t O_ti τ̄_i ((1−ρ)/φ_t + ρ/κ)

and an outlier becomes a nearly missing entry instead of "data minus a guess". ρ is inferred anew for the whole window.
φ_t ≤ κ, with a scaled inverse χ² prior around 1, lets a slice that the factors explain badly count as noisy instead of
as full of outliers.
Here are the functions of `OutlierModel`; the coordinate updates are in updates.py, their formulas in mixture.py.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import ADAPT_EVERY, CHANGED, MISFIT, POOL_LARGEST
from undertow.model.factors import discounted, layout
from undertow.model.factors.rows import with_row
from undertow.model.flow import choose, only_if, shared, where
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import pooled, tempering, updates
from undertow.model.noise.mixture import noise_now, precision, rate_prior, robustness_weight
from undertow.model.noise.robust_start import fit_row
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Level, Window, along_time, put, taken

update = updates.update
too_wide = tempering.too_wide
median_noise = tempering.median_noise
scaled_noise = tempering.scaled_noise


def init(
    settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype, entries: int | None = None, length: int | None = None
) -> Contaminated:
    """Before any data: noise as large as the data (whose unit makes the median |y| one).

    A sparse window has `entries` positions per slice, and one noise variance for all of them.
    """
    length = settings.window if length is None else length
    kept, shape = (shape, shape) if entries is None else ((entries,), ())
    pool_shape = jnp.asarray(POOL_LARGEST, dtype)
    prior_a, prior_b = rate_prior(settings)
    return Contaminated(
        probability=jnp.zeros((length, *kept), dtype),
        rate_a=jnp.asarray(prior_a, dtype),
        rate_b=jnp.asarray(prior_b, dtype),
        ratio=jnp.asarray(settings.outlier_variance, dtype),
        slice_scale=jnp.ones(length, dtype),
        pool_shape=pool_shape,
        pool_rate=2 * pool_shape,
        noise_shape=jnp.full(shape, pool_shape),
        noise_rate=jnp.full(shape, 2 * pool_shape),
        discounted=discounted.init_noise(settings, shape, dtype),
    )


def begin(
    settings: Settings, state: Contaminated, factors: Factors, window: Window, level: Level | None
) -> tuple[Contaminated, Factors]:
    """Infer the newest slice; once per turn of the ring, reset the noise if some row is shut out."""
    state, factors = infer(state, factors, window, level)
    slice_weights = window.slice_weights(settings.forgetting)

    def reconsidered(state: Contaminated) -> Contaminated:
        wide = tempering.reset_noise(settings, state, factors, window, slice_weights, level)
        return choose(tempering.shut_out(state, window, slice_weights), wide, state)

    return only_if(window.newest == 0, reconsidered, state), factors


def infer(state: Contaminated, factors: Factors, window: Window, level: Level | None) -> tuple[Contaminated, Factors]:
    """Temporal row, outliers and scale of the newest slice by a robust regression on fixed factors."""
    slot = window.newest
    newest = layout.alone(window, slot)
    newest = replace(newest, values=newest.values - mean_of(level, slot))
    fit = fit_row(state, factors, newest, variance_of(level, slot))
    factors = with_row(factors, slot, fit.row.row_means[0], fit.row.row_covariances[0])
    state = replace(
        state,
        probability=put(state.probability, slot, fit.probability[0]),
        slice_scale=put(state.slice_scale, slot, fit.scale[0]),
        ratio=fit.ratio,
    )
    return state, factors


def changed(state: Contaminated, window: Window) -> Array:
    """Whether the newest slice, as it was initialised, is far noisier than usual or mostly flagged; not before the
    third."""
    slot = window.newest
    mostly = taken(state.probability, slot).sum() > taken(window.mask, slot).sum() / 2
    return (mostly | (taken(state.slice_scale, slot) > CHANGED)) & (window.filled > 2)


def adapt_likely(settings: Settings, state: Contaminated, window: Window) -> Array:
    """Whether it is time to check the rank, or the newest slice asks for it."""
    slot, noise = window.newest, typical_noise(state)
    usual = usual_noise(state, window.slice_weights(settings.forgetting))
    its_turn = lax.rem(slot, jnp.asarray(ADAPT_EVERY, slot.dtype)) == 0
    return its_turn | (taken(state.slice_scale, slot) * noise > MISFIT * usual)


def one_slice(state: Contaminated) -> Contaminated:
    """The state for a window of a single slice, about which nothing is known yet."""
    return replace(state, probability=state.probability[:1], slice_scale=state.slice_scale[:1])


def unobserved(state: Contaminated, slot: Array, like: Array) -> Contaminated:
    """The state for a window of one slice of `like`'s shape: that in `slot`, as if nothing had been observed."""
    return replace(state, probability=like, slice_scale=taken(state.slice_scale, slot)[None])


def cleared(state: Contaminated) -> Contaminated:
    """The state with nothing known about single entries."""
    return replace(state, probability=jnp.zeros_like(state.probability))


def weights_and_targets(state: Contaminated, window: Window, slice_weights: Array) -> tuple[Array, Array]:
    """w and y of the factor updates, each (W, I_1, …, I_N)."""
    return _weights(state, window, slice_weights, state.slice_scale), window.values


def candidate_weights(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """Weights for the fit of a candidate component: as above, with √φ for φ.

    A slice that does not fit the factors may be the one that shows what is missing; √φ makes its gradient as large as
    any other slice's, not larger.
    """
    return _weights(state, window, slice_weights, jnp.sqrt(state.slice_scale))


def level_weights(state: Contaminated, slot: Array) -> tuple[Array, Array]:
    """Of one slice: the fraction of its precision that each entry keeps, and the noise variance of all entries."""
    return robustness_weight(state, taken(state.probability, slot), taken(state.slice_scale, slot)), noise_now(state)


def finish(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Contaminated:
    """Once per slice, at the end: how strongly noise is pooled."""
    return only_if(
        jnp.asarray(settings.noise_by_entry),
        lambda state: updates.update_pooling(state, window, slice_weights, residual**2 + variance),
        state,
    )


def outliers(state: Contaminated, window: Window, slot: Array, residual: Array) -> tuple[Array, Array]:
    """S̄ = ρ (1 − φ/κ) r and ρ of one slice; `residual` is that slice's."""
    del window
    rho = taken(state.probability, slot)
    return rho * (1 - taken(state.slice_scale, slot) / state.ratio) * residual, rho


def noise_variance(state: Contaminated, slot: Array) -> Array:
    """Variance of a new observation around the low rank in one slice: φ E[1/τ_i] (I_1, …, I_N)."""
    return taken(state.slice_scale, slot) * pooled.predictive_variance(state.noise_shape, state.noise_rate)


def typical_noise(state: Contaminated) -> Array:
    """One number for the noise variance of all entries: b/α."""
    return state.pool_rate / state.pool_shape


def usual_noise(state: Contaminated, slice_weights: Array) -> Array:
    """The same for reports: b/α over the mean of 1/φ.

    A common factor of φ, κ and τ is identified by the prior of φ alone, and the updates take many slices to bring it
    there. This is where they will end: the factor at which that prior is largest.
    """
    kept, total = slice_weights @ (1 / state.slice_scale), slice_weights.sum()
    return typical_noise(state) * where(total > 0, total / where(kept > 0, kept, 1), 1)


def _weights(state: Contaminated, window: Window, slice_weights: Array, scale: Array) -> Array:
    return _entry_weights(precision(state), state.ratio, state.probability, window.mask, slice_weights, scale)


@shared
def _entry_weights(
    noise: Array, ratio: Array, probability: Array, mask: Array, slice_weights: Array, scale: Array
) -> Array:
    usual, outlying = along_time(slice_weights / scale, mask), along_time(slice_weights / ratio, mask)
    return where(mask, noise * ((1 - probability) * usual + probability * outlying), 0)
