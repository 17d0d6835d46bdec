"""The evidence lower bound (ELBO), every term of it.

    ELBO = E ln p(y | x, m, noise) + [noise, outliers: −KL] + Σ_rows p_i (E ln p(a_i | λ) + H[q(a_i)]) − KL(q(λ) ‖ p(λ))
         − KL(q(m) ‖ p(m))

The terms of a slice count with its weight ω_t: a bound on the evidence of likelihoods to the power ω_t. Every
coordinate update raises `total`, but for the level's where μ < 1: its walk forgets, so it counts no slice less for
being old and raises the bound with ω = 1. Adding, pruning and shrinking are kept only if they raise it. With discounted
statistics `total` is an objective and no bound: it has what they say about the rows once for every mode.
Constants that no update changes are left out. Differences of large numbers are avoided throughout: float32 has no
digits to spare.
"""

from __future__ import annotations

import operator
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import xlogy

from undertow.model.defaults import PAPER_PRIOR, SLICE_PRIOR
from undertow.model.factors import discounted, layout
from undertow.model.factors.rows import all_covariances, all_means, row_weights, temporal_weights
from undertow.model.flow import end_to_end, where
from undertow.model.level import divergence
from undertow.model.linalg.symmetric import diagonal, log_determinant
from undertow.model.noise import mixture, pooled
from undertow.model.noise.gaussian_gamma import squares as paper_squares
from undertow.model.noise.special import log_beta_change
from undertow.model.settings import Settings
from undertow.model.types import (
    Contaminated,
    Factors,
    GaussianGamma,
    KnownRows,
    Level,
    OutlierState,
    Window,
    along_time,
    over_slice,
)


def total(
    settings: Settings,
    window: Window,
    factors: Factors,
    outliers: OutlierState,
    residual: Array,
    variance: Array,
    level: Level | None,
) -> Array:
    """The whole bound. `residual` is y − m̄ − x̄, `variance` Var x + Var m, both of the window."""
    slice_weights = window.slice_weights(settings.forgetting)
    known = layout.known_rows(settings, window, factors)
    whole = low_rank(factors, temporal_weights(settings, slice_weights), settings.precision_prior, known)
    whole += outlier_model(settings, outliers, window, slice_weights, residual, variance)
    if level is not None:
        whole -= divergence(level, window)
    return whole if factors.discounted is None else whole + discounted.elbo(factors, factors.discounted)


def low_rank(factors: Factors, time_weights: Array, prior: float, known: KnownRows | None = None) -> Array:
    """What the low-rank part adds besides the likelihood; active components only.

    −KL(q(λ) ‖ p(λ)), and for every row of every axis p_i (E ln p(a_i | λ) + entropy of q(a_i)). `prior` is c0 = d0. Of
    the modes, rows that are `known`. All rows are eliminated together.
    """
    active = factors.active
    gaps = pooled.gamma_gap(factors.precision_shape, factors.precision_rate, prior, prior)

    def of_rows(weight: Array, mean: Array, covariance: Array) -> Array:
        keep = active[:, None] & active[None, :] & (weight > 0)[:, None, None]
        entropies = log_determinant(where(keep, covariance, jnp.asarray(np.eye(active.shape[0], dtype=mean.dtype))))
        squares = mean**2 + diagonal(covariance)
        log_precision = pooled.expected_log(factors.precision_shape, factors.precision_rate)
        per_component = where(active, log_precision + 1 - factors.precision * squares, 0)
        return (weight * (per_component.sum(axis=-1) + entropies)).sum()

    parts = row_weights(factors, time_weights, known), all_means(factors), all_covariances(factors)
    rows = reduce(operator.add, map(of_rows, *map(end_to_end, parts))) / 2
    whole: Array = rows - where(active, gaps, 0).sum()
    return whole if factors.discounted is None else whole + discounted.evicted_rows(factors, factors.discounted)


def outlier_model(
    settings: Settings, state: OutlierState, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Array:
    """Likelihood, and every term that the outlier model owns."""
    terms = contaminated if settings.outliers == "contaminated" else gaussian_gamma
    return terms(settings, state, window, slice_weights, residual, variance)


def contaminated(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Array:
    """Likelihood, outlier indicators, π, φ and noise of contaminated normal noise."""
    square = residual**2 + variance
    rho, shape, rate = state.probability, state.noise_shape, state.noise_rate
    posterior = jnp.stack([state.rate_a, state.rate_b])
    log_rates = mixture.log_rates(state)
    log_rate, log_other = log_rates
    scale = along_time(state.slice_scale, square)
    likelihood = (
        pooled.expected_log(shape, rate)
        - jnp.log(2 * jnp.pi)
        - (1 - rho) * jnp.log(scale)
        - rho * jnp.log(state.ratio)
        - mixture.precision(state) * mixture.robustness_weight(state, rho, scale) * square
    ) / 2
    indicator = rho * log_rate + (1 - rho) * log_other - xlogy(rho, rho) - xlogy(1 - rho, 1 - rho)
    terms = slice_weights @ over_slice(where(window.mask, likelihood + indicator, 0))
    terms -= slice_weights @ (jnp.log(state.slice_scale) + 1 / state.slice_scale) * SLICE_PRIOR / 2
    if state.discounted is not None:
        terms -= discounted.ratio_loss(state, state.discounted)
    prior = jnp.stack(jnp.broadcast_arrays(*discounted.rate_prior(state.discounted, *mixture.rate_prior(settings))))
    terms += log_beta_change(prior, posterior) + ((prior - posterior) * log_rates).sum()
    return terms - pooled.gamma_gap(shape, rate, *discounted.noise_prior(state)).sum()


def gaussian_gamma(
    settings: Settings, state: GaussianGamma, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Array:
    """Likelihood, S, γ and τ of the paper's model."""
    del settings
    sums = over_slice(paper_squares(state, window, residual, variance))
    counts = over_slice(window.mask.astype(sums.dtype))
    tau = state.noise_shape / state.noise_rate
    log_tau = pooled.expected_log(state.noise_shape, state.noise_rate)
    log_weight = jnp.log(where(slice_weights > 0, slice_weights, 1))
    seen = (slice_weights > 0).astype(sums.dtype)
    likelihood = (seen * counts * (log_tau + log_weight - jnp.log(2 * jnp.pi)) - slice_weights * tau * sums).sum() / 2
    gamma = state.gamma_shape / state.gamma_rate
    square = state.sparse[window.newest] ** 2 + state.sparse_variance
    log_gamma = pooled.expected_log(state.gamma_shape, state.gamma_rate)
    sparse = (log_gamma - gamma * square + jnp.log(state.sparse_variance) + 1) / 2
    sparse -= pooled.gamma_gap(state.gamma_shape, state.gamma_rate, PAPER_PRIOR, PAPER_PRIOR)
    newest = where(window.mask[window.newest], sparse, 0).sum()
    return likelihood + newest - pooled.gamma_gap(state.noise_shape, state.noise_rate, PAPER_PRIOR, PAPER_PRIOR)
