"""The default outlier model: contaminated normal noise.

    e_ti | z=0 ~ N(0, φ_t/τ_i),   e_ti | z=1 ~ N(0, κ/τ_i),   z ~ Bernoulli(π),   π ~ Beta,   τ_i ~ Ga(α, b).

The outlier itself is integrated out, so the factors see the data with weights

    w_ti = ω_t O_ti τ̄_i ((1−ρ)/φ_t + ρ/κ)

and an outlier becomes a nearly missing entry instead of "data minus a guess". ρ is inferred anew for the whole window.
φ_t ≤ κ, with a scaled inverse χ² prior around 1, lets a slice that the factors explain badly count as noisy instead of
as full of outliers.
Residuals in (r = y − x̄ and Var x), weights and targets out. Each `update_…` is an exact coordinate step of the bound.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import digamma, gammaln, xlogy

from undertow.model.factors import discounted, layout
from undertow.model.factors.rank import choose, either
from undertow.model.factors.rows import with_row
from undertow.model.level import mean_of, variance_of
from undertow.model.noise import pooled as noise
from undertow.model.noise.mixture import (
    CHI_SQUARE_MEDIAN,
    SLICE_PRIOR,
    energies,
    median,
    outlier_probability,
    precision,
    robustness_weight,
    sample,
    slice_scales,
)
from undertow.model.noise.robust_start import fit_row
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Level, Window, along_time, over_slice, over_time

SURPRISE = 9.0
"""φ of a slice, as it is met, beyond which something has changed: three times the usual noise."""
NEVER = 1e-30
"""α0 of a share of outliers that is 0."""
TOO_WIDE = 0.5
"""Noise variance by the median, over that in use, below which a quench is tried."""
QUENCH_TURNS = 4


def init(settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype, entries: int | None = None) -> Contaminated:
    """Before any data: noise as large as the data (whose unit makes the median |y| one).

    A sparse window has so many `entries` a slice, and one noise for all of them.
    """
    kept, shape = (shape, shape) if entries is None else ((entries,), ())
    pool_shape = jnp.asarray(noise.POOL_LARGEST, dtype)
    prior_a, prior_b = rate_prior(settings)
    return Contaminated(
        probability=jnp.zeros((settings.window, *kept), dtype),
        rate_a=jnp.asarray(prior_a, dtype),
        rate_b=jnp.asarray(prior_b, dtype),
        ratio=jnp.asarray(settings.outlier_variance, dtype),
        slice_scale=jnp.ones(settings.window, dtype),
        pool_shape=pool_shape,
        pool_rate=2 * pool_shape,
        noise_shape=jnp.full(shape, pool_shape),
        noise_rate=jnp.full(shape, 2 * pool_shape),
        discounted=discounted.init_noise(settings, shape, dtype),
    )


def rate_prior(settings: Settings) -> tuple[Array, float]:
    """Parameters of the prior Beta(α0, β0) of π. Where the model is not to be robust, nothing is an outlier."""
    flagged = jnp.where(settings.robust, settings.outlier_rate * settings.outlier_rate_strength, NEVER)
    return flagged, (1 - settings.outlier_rate) * settings.outlier_rate_strength


def begin(
    settings: Settings, state: Contaminated, factors: Factors, window: Window, level: Level | None
) -> tuple[Contaminated, Factors]:
    """The start of a step: meet the newest slice; once per turn of the ring, reconsider what has been shut out."""
    state, factors = meet(state, factors, window, level)
    slice_weights = window.slice_weights(settings.forgetting)

    def reconsidered() -> Contaminated:
        hot = reheated(settings, state, factors, window, slice_weights, level)
        return choose(shut_out(state, window, slice_weights), hot, state)

    return lax.cond(window.newest == 0, reconsidered, lambda: state), factors


def surprised(state: Contaminated, window: Window) -> Array:
    """Whether the newest slice, as it was met, is far noisier than usual or mostly flagged; not before the third."""
    slot = window.newest
    mostly = state.probability[slot].sum() > window.mask[slot].sum() / 2
    return (mostly | (state.slice_scale[slot] > SURPRISE)) & (window.filled > 2)


def shut_out(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """Whether some row of some mode is mostly flagged. Such a row teaches its factor nothing, so it stays flagged
    however well it would fit: a trap that a stream can fall into while little of it has been seen."""
    mask = window.mask.astype(state.probability.dtype)
    any_row = jnp.asarray(False)
    for mode in range(layout.modes(window)):
        flagged = layout.row_sums(slice_weights, state.probability, mode, window.entry_index)
        any_row |= (flagged > layout.row_sums(slice_weights, mask, mode, window.entry_index) / 2).any()
    return any_row


def reheated(
    settings: Settings, state: Contaminated, factors: Factors, window: Window, slice_weights: Array, level: Level | None
) -> Contaminated:
    """Noise as large as all residuals, flagged ones included, and outliers judged by that: the sweeps cool it down."""
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


def one_slice(state: Contaminated) -> Contaminated:
    """The state with room for a single slice, about which nothing is known yet."""
    return replace(state, probability=state.probability[:1], slice_scale=state.slice_scale[:1])


def meet(state: Contaminated, factors: Factors, window: Window, level: Level | None) -> tuple[Contaminated, Factors]:
    """The newest slice's temporal row, outliers and scale from a robust regression on the current factors."""
    slot = window.newest
    newest = layout.alone(window, slot)
    newest = replace(newest, values=newest.values - mean_of(level, slot))
    fit = fit_row(state, factors, newest, variance_of(level, slot))
    factors = with_row(factors, slot, fit.row.row_means[0], fit.row.row_covariances[0])
    state = replace(
        state,
        probability=state.probability.at[slot].set(fit.probability[0]),
        slice_scale=state.slice_scale.at[slot].set(fit.scale[0]),
        ratio=fit.ratio,
    )
    return state, factors


def weights_and_targets(state: Contaminated, window: Window, slice_weights: Array) -> tuple[Array, Array]:
    """w and y of the factor updates, each (W, I_1, …, I_N)."""
    scale = along_time(state.slice_scale, window.values)
    weights = (
        along_time(slice_weights, window.values) * precision(state) * robustness_weight(state, state.probability, scale)
    )
    return jnp.where(window.mask, weights, 0), window.values


def birth_weights(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """Weights for the fit of a newcomer: as above, with √φ for φ. A slice that does not fit the factors may be the one
    that shows what is missing, so it must be heard; √φ makes its gradient as large as any other slice's, not larger."""
    scale = along_time(jnp.sqrt(state.slice_scale), window.values)
    weights = (
        along_time(slice_weights, window.values) * precision(state) * robustness_weight(state, state.probability, scale)
    )
    return jnp.where(window.mask, weights, 0)


def row_share(slice_weights: Array) -> Array:
    """How much the prior of a temporal row counts in the objective: as much as its slice."""
    return slice_weights


def update(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Contaminated:
    """All coordinate steps of this model in turn."""
    square = residual**2 + variance
    state = update_probability(state, window, square)
    state = update_rate(settings, state, window, slice_weights)
    state = update_ratio(settings, state, window, slice_weights, square)
    state = update_slice_scale(state, window, square)
    return update_noise(settings, state, window, slice_weights, square)


def finish(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Contaminated:
    """Once per slice, at the end: how strongly noise is pooled."""
    better: Contaminated = lax.cond(
        settings.noise_by_entry,
        lambda: update_pooling(state, window, slice_weights, residual**2 + variance),
        lambda: state,
    )
    return better


def too_wide(settings: Settings, state: Contaminated, window: Window, residual: Array, variance: Array) -> Array:
    """Whether the noise is too wide for more than half of the residuals. Counted: a median would have to be sorted."""
    scaled = sample(_scaled_squares(state, window, residual, variance), window.entry_index)
    small = (scaled < TOO_WIDE * CHI_SQUARE_MEDIAN).sum()
    return settings.robust & (2 * small > (~jnp.isnan(scaled)).sum())


def colder(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Contaminated:
    """Noise as small as its median says, and what sticks out then as outliers, if the evidence gains by it.

    Where a fifth of all entries are outliers, noise wide enough for all of them explains itself: no coordinate step
    leads from there to the truth.
    """
    nothing, square = jnp.zeros((), residual.dtype), residual**2 + variance  # all that is asked of them
    scaled = sample(_scaled_squares(state, window, nothing, square), window.entry_index)
    factor = median(scaled) / CHI_SQUARE_MEDIAN
    cold = replace(
        state,
        ratio=state.ratio / factor,
        pool_rate=state.pool_rate * factor,
        noise_rate=state.noise_rate * factor,
    )
    cold = update_probability(cold, window, square)
    cold = lax.fori_loop(
        0, QUENCH_TURNS, lambda _, cold: update(settings, cold, window, slice_weights, nothing, square), cold
    )

    def bound(candidate: Contaminated) -> Array:
        return elbo(settings, candidate, window, slice_weights, nothing, square)

    better: Contaminated = choose((factor > 0) & (bound(cold) > bound(state)), cold, state)
    return better


def _scaled_squares(state: Contaminated, window: Window, residual: Array, variance: Array) -> Array:
    """τ̄ E r² / φ, around 1 where the noise is as it should be; NaN where nothing was observed."""
    square = residual**2 + variance
    return jnp.where(window.mask, precision(state) * square / along_time(state.slice_scale, square), jnp.nan)


def update_probability(state: Contaminated, window: Window, square: Array) -> Contaminated:
    """ρ of every entry of the window; ω does not enter, since it weighs likelihood and entropy alike."""
    scale = along_time(state.slice_scale, square)
    return replace(state, probability=outlier_probability(state, window.mask, square, scale))


def update_rate(settings: Settings, state: Contaminated, window: Window, slice_weights: Array) -> Contaminated:
    """q(π) = Beta(α0 + Σωρ, β0 + ΣωO(1−ρ))."""
    prior_a, prior_b = discounted.rate_prior(state.discounted, *rate_prior(settings))
    flagged = slice_weights @ over_slice(state.probability)
    observed = slice_weights @ over_slice(window.mask.astype(flagged.dtype))
    return replace(state, rate_a=prior_a + flagged, rate_b=prior_b + jnp.maximum(observed - flagged, 0))


def update_ratio(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, square: Array
) -> Contaminated:
    """κ = max(κ_min, φ, Σ ω ρ τ̄ E r² / Σ ω ρ): the clip is the constrained maximiser, so the bound cannot fall."""
    flagged = slice_weights @ over_slice(state.probability)
    energy = slice_weights @ over_slice(state.probability * energies(state, window.mask, square))
    if state.discounted is not None:
        flagged, energy = flagged + state.discounted.flagged, energy + state.discounted.energy
    ratio = jnp.where(flagged > 0, energy / jnp.where(flagged > 0, flagged, 1), 0)
    least = jnp.maximum(state.slice_scale.max(), settings.outlier_variance)
    return replace(state, ratio=jnp.maximum(ratio, least))


def update_slice_scale(state: Contaminated, window: Window, square: Array) -> Contaminated:
    """φ of every slice in the window."""
    return replace(state, slice_scale=slice_scales(state, window.mask, state.probability, square))


def noise_statistics(state: Contaminated, window: Window, slice_weights: Array, square: Array) -> tuple[Array, Array]:
    """n_i = Σ_t ω O and s_i = Σ_t ω O ((1−ρ)/φ + ρ/κ) E r², each (I_1, …, I_N); of a sparse window their sums."""
    energy = energies(state, window.mask, square)

    def slice_of(seen: Array, energy: Array, probability: Array, weight: Array, scale: Array) -> tuple[Array, Array]:
        return jnp.where(seen, weight, 0), weight * robustness_weight(state, probability, scale) * energy

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
    alpha, floor = state.pool_shape, noise.noise_floor(square.dtype)

    def by_entry() -> tuple[Array, Array, Array]:
        rate = noise.pooled_rate(alpha, state.pool_rate, counts, sums, floor)
        return rate, alpha + counts / 2, rate + sums / 2

    def for_all() -> tuple[Array, Array, Array]:
        rate = alpha * noise.shared_variance(state.pool_rate / alpha, counts.sum(), sums.sum(), floor)
        return rate, jnp.full_like(counts, alpha), jnp.full_like(sums, rate)

    rate, shapes, rates = either(settings.noise_by_entry, by_entry, for_all)
    return replace(state, pool_rate=rate, noise_shape=shapes, noise_rate=rates)


def update_pooling(state: Contaminated, window: Window, slice_weights: Array, square: Array) -> Contaminated:
    """α: the best of α, 1.5α and α/1.5 by the evidence with τ integrated out. It moves slowly: a stream that starts
    unexplained must not have its structure taken for uneven noise."""
    counts, sums = noise_statistics(state, window, slice_weights, square)
    if state.discounted is not None:
        return discounted.update_pooling(state, state.discounted, counts, sums)
    shape, rate = noise.better_pool(state.pool_shape, state.pool_rate, counts, sums)
    return replace(state, pool_shape=shape, pool_rate=rate, noise_shape=shape + counts / 2, noise_rate=rate + sums / 2)


def elbo(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Array:
    """Likelihood, outlier indicators, π and noise: every term of the bound that this model owns."""
    square = residual**2 + variance
    rho, shape, rate = state.probability, state.noise_shape, state.noise_rate
    both = digamma(state.rate_a + state.rate_b)
    log_rate, log_other = digamma(state.rate_a) - both, digamma(state.rate_b) - both
    scale = along_time(state.slice_scale, square)
    likelihood = (
        noise.expected_log(shape, rate)
        - jnp.log(2 * jnp.pi)
        - (1 - rho) * jnp.log(scale)
        - rho * jnp.log(state.ratio)
        - precision(state) * robustness_weight(state, rho, scale) * square
    ) / 2
    indicator = rho * log_rate + (1 - rho) * log_other - xlogy(rho, rho) - xlogy(1 - rho, 1 - rho)
    terms = slice_weights @ over_slice(jnp.where(window.mask, likelihood + indicator, 0))
    terms -= slice_weights @ (jnp.log(state.slice_scale) + 1 / state.slice_scale) * SLICE_PRIOR / 2
    if state.discounted is not None:
        terms -= discounted.ratio_loss(state, state.discounted)
    prior_a, prior_b = discounted.rate_prior(state.discounted, *rate_prior(settings))
    rate_term = log_beta(state.rate_a, state.rate_b) - log_beta(prior_a, prior_b)
    rate_term += (prior_a - state.rate_a) * log_rate + (prior_b - state.rate_b) * log_other
    return terms + rate_term - noise.gamma_gap(shape, rate, *discounted.noise_prior(state)).sum()


def log_beta(a: Array | float, b: Array | float) -> Array:
    """ln B(a, b). JAX's own `betaln` is good to six digits only."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def outliers(state: Contaminated, window: Window, slot: Array, residual: Array) -> tuple[Array, Array]:
    """S̄ = ρ (1 − φ/κ) r and ρ of one slice; `residual` is that slice's."""
    del window
    rho = state.probability[slot]
    return rho * (1 - state.slice_scale[slot] / state.ratio) * residual, rho


def noise_variance(state: Contaminated, slot: Array) -> Array:
    """Variance of a new observation around the low rank in one slice: φ E[1/τ_i] (I_1, …, I_N)."""
    return state.slice_scale[slot] * noise.predictive_variance(state.noise_shape, state.noise_rate)


def typical_noise(state: Contaminated) -> Array:
    """One number for the noise variance of all entries: b/α."""
    return state.pool_rate / state.pool_shape


def usual_noise(state: Contaminated, slice_weights: Array) -> Array:
    """The same for reports: b/α over the mean of 1/φ.

    A common factor of φ, κ and τ is tied down by the prior of φ alone, and the updates take many slices to bring it
    home. This is where they will end: the factor at which that prior is largest.
    """
    trusted, total = slice_weights @ (1 / state.slice_scale), slice_weights.sum()
    return typical_noise(state) * jnp.where(total > 0, total / jnp.where(trusted > 0, trusted, 1), 1)
