"""The variational updates of BRTF as one compiled program; the equations stand in `brtf`.

Shapes stay fixed: a pruned component keeps its column, at zero and without variance, and a slice that is not there yet
(a window still filling) keeps its temporal row at zero and counts nowhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln, polygamma

from undertow.baselines import cp

_PRIOR = 1e-6  # shape and rate of every Gamma prior
_LOG_TINY = float(np.log(1e-200))  # what the published code takes for the logarithm of zero
_LOG_HUGE = float(np.log(1e300))  # and for the logarithm of infinity
_FIXED_HYPER = 5  # iterations before the prior of the outlier precisions is refitted


class Posterior(NamedTuple):
    """Everything that moves.

    factors      ā⁽ⁿ⁾, (I_n, R), time last
    covariances  V, (I_n, R, R)
    living       1 for living components, (R,)
    ranking      γ, (R,)
    noise        β, ()
    outliers, outlier_variance, outlier_precision   ē, Var e, α, the shape of the tensor
    hyper        a₀ and b₀, (2,)
    low_rank     x̄, the shape of the tensor
    bound, last_bound, reference   evidence lower bounds of now, of the last and of the second iteration, ()
    iteration    done, ()
    """

    factors: tuple[Any, ...]
    covariances: tuple[Any, ...]
    living: Any
    ranking: Any
    noise: Any
    outliers: Any
    outlier_variance: Any
    outlier_precision: Any
    hyper: Any
    low_rank: Any
    bound: Any
    last_bound: Any
    reference: Any
    iteration: Any

    @staticmethod
    def start(
        factors: tuple[np.ndarray, ...], outliers: np.ndarray, mask: np.ndarray, outlier_variance: float
    ) -> Posterior:
        """All precisions at 1 around the given factors and outliers."""
        rank = factors[0].shape[1]
        return Posterior(
            factors,
            tuple(np.tile(np.eye(rank), (len(factor), 1, 1)) for factor in factors),
            np.ones(rank),
            np.ones(rank),
            np.ones(()),
            outliers,
            mask * outlier_variance,
            np.full(mask.shape, 1 / outlier_variance),
            np.array([_PRIOR, _PRIOR]),
            np.zeros(mask.shape),
            np.zeros(()),
            np.zeros(()),
            np.zeros(()),
            np.zeros((), dtype=np.int64),
        )


@jax.jit
def iterate(start: Posterior, values: jax.Array, mask: jax.Array, present: jax.Array, settings: jax.Array) -> Posterior:
    """Update until the bound moves by less than the tolerance. settings: iterations, tolerance, missing, published."""
    iterations, tolerance, missing, published = settings

    def go_on(now: Posterior) -> Any:
        change = jnp.abs((now.bound - now.last_bound) / now.reference)
        converged = (now.iteration > 5) & (change < tolerance)
        return (now.iteration < iterations) & ~converged & (now.living.sum() > 0) & jnp.isfinite(now.noise)

    def once(now: Posterior) -> Posterior:
        return _update(now, values, mask, present, missing, published)

    return jax.lax.while_loop(go_on, once, start)


def _update(
    now: Posterior, values: jax.Array, mask: jax.Array, present: jax.Array, missing: jax.Array, published: jax.Array
) -> Posterior:
    observed = mask.sum()
    factors, covariances, log_dets, grams = _factor_updates(now, values, mask, present)
    sizes = jnp.array([float(factor.shape[0]) for factor in factors[:-1]] + [0.0]).at[-1].set(present.sum())
    low_rank = cp.compose(factors, jnp.ones_like(now.ranking))

    power = jnp.stack([(factor**2).sum(0) for factor in factors]).sum(0)
    spread = jnp.stack([jnp.einsum("irr->r", covariance) for covariance in covariances]).sum(0)
    ranking_shape, ranking_rate = _PRIOR + 0.5 * sizes.sum(), _PRIOR + 0.5 * (power + spread)
    ranking = ranking_shape / ranking_rate

    second = (grams * _second_moments(factors[-1], covariances[-1])).sum()  # Σ_Ω ⟨x²⟩
    fit = (mask * ((values - low_rank - now.outliers) ** 2 + now.outlier_variance - low_rank**2)).sum() + second
    noise_shape, noise_rate = _PRIOR + 0.5 * observed, _PRIOR + 0.5 * fit
    noise = noise_shape / noise_rate

    outlier_variance = mask / (now.outlier_precision + noise)
    outliers = noise * outlier_variance * (values - low_rank)
    size = outliers**2 + outlier_variance
    # One shape for all: that of a missing entry would be a₀, but nothing of a missing entry is ever used.
    outlier_shape, outlier_rate = now.hyper[0] + 0.5, now.hyper[1] + 0.5 * size
    precision = outlier_shape / outlier_rate
    log_precision = digamma(outlier_shape) - jnp.log(outlier_rate)

    living = now.living
    log_ranking = digamma(ranking_shape) - jnp.log(ranking_rate)
    bound = (
        # likelihood
        0.5 * observed * (digamma(noise_shape) - jnp.log(noise_rate) - jnp.log(2 * jnp.pi))
        - 0.5 * noise * fit
        # factors and their entropy; the 2π cancel
        + (living * (0.5 * sizes.sum() * log_ranking - 0.5 * ranking * (power + spread))).sum()
        + 0.5 * living.sum() * sizes.sum()
        + 0.5 * log_dets
        # γ, β and their entropies
        + (living * _gamma_terms(_PRIOR, _PRIOR, ranking_shape, ranking_rate)).sum()
        + _gamma_terms(_PRIOR, _PRIOR, noise_shape, noise_rate)
        # outliers, their precisions, and the entropies of both
        + 0.5
        * (mask * (log_precision + 1 + jnp.log(jnp.where(mask > 0, outlier_variance, 1.0)) - size * precision)).sum()
        + (mask * _gamma_terms(now.hyper[0], now.hyper[1], outlier_shape, outlier_rate)).sum()
    )
    iteration = now.iteration + 1
    inflated = bound + published * (
        0.5 * missing * _LOG_TINY
        + jnp.minimum(_LOG_HUGE - gammaln(noise_shape), 0.0)
        + living.sum() * jnp.minimum(_LOG_HUGE - gammaln(ranking_shape), 0.0)
    )

    mean = (mask * precision).sum() / observed
    refitted = gamma_shape(jnp.log(mean) - (mask * log_precision).sum() / observed)
    hyper = jnp.where(iteration > _FIXED_HYPER, jnp.stack([refitted, refitted / mean]), now.hyper)

    norm = jnp.sqrt(power.sum())
    rounding = sizes.sum() * (jnp.nextafter(norm, jnp.inf) - norm)
    survivors = jnp.where(iteration >= 2, living * (power > rounding), living)
    both = survivors[:, None] * survivors[None, :]
    return Posterior(
        tuple(factor * survivors for factor in factors),
        tuple(covariance * both for covariance in covariances),
        survivors,
        ranking,
        noise,
        outliers,
        outlier_variance,
        precision,
        hyper,
        low_rank * (survivors.sum() > 0),
        bound,
        now.bound,
        jnp.where(iteration <= 2, inflated, now.reference),
        iteration,
    )


def _factor_updates(
    now: Posterior, values: jax.Array, mask: jax.Array, present: jax.Array
) -> tuple[list[jax.Array], list[jax.Array], jax.Array, jax.Array]:
    """Means and covariances of all rows, Σ log det V over the living part, and Σ_Ω ⟨b bᵀ⟩ of the last mode."""
    factors, covariances = list(now.factors), list(now.covariances)
    moments = [_second_moments(factor, covariance) for factor, covariance in zip(factors, covariances, strict=True)]
    rank, residual = now.living.shape[0], mask * (values - now.outliers)
    both = now.living[:, None] * now.living[None, :]
    diagonal = jnp.diag(jnp.where(now.living > 0, now.ranking, 1.0))
    log_dets, grams = jnp.zeros(()), moments[-1]
    for mode in range(values.ndim):
        rows = present if mode == values.ndim - 1 else jnp.ones(values.shape[mode])
        grams = cp.contract(mask, moments, mode)
        precision = now.noise * grams.reshape(-1, rank, rank) * both + diagonal
        covariances[mode] = jnp.linalg.inv(precision) * both * rows[:, None, None]
        target = cp.contract(residual, factors, mode)
        factors[mode] = now.noise * jnp.einsum("irs,is->ir", covariances[mode], target)
        moments[mode] = _second_moments(factors[mode], covariances[mode])
        log_dets = log_dets - (rows * jnp.linalg.slogdet(precision)[1]).sum()
    return factors, covariances, log_dets, grams


def _second_moments(factor: jax.Array, covariance: jax.Array) -> jax.Array:
    """Rows vec(āāᵀ + V)."""
    return cp.squares(factor) + covariance.reshape(covariance.shape[0], -1)


def _gamma_terms(prior_shape: Any, prior_rate: Any, shape: Any, rate: Any) -> Any:
    """⟨log Ga(x; prior)⟩ plus the entropy of Ga(x; shape, rate)."""
    log_mean = digamma(shape) - jnp.log(rate)
    prior = prior_shape * jnp.log(prior_rate) - gammaln(prior_shape) + (prior_shape - 1) * log_mean
    return prior - prior_rate * shape / rate + gammaln(shape) - (shape - 1) * digamma(shape) - jnp.log(rate) + shape


def gamma_shape(gap: jax.Array) -> jax.Array:
    """The shape a with log a − ψ(a) = gap: maximum likelihood of a Gamma law, gap = log⟨x⟩ − ⟨log x⟩.

    Newton steps on 1/a (T. Minka, "Estimating a Gamma distribution", 2002).
    """
    gap = jnp.clip(gap, 1e-8, 1e8)
    start = (3 - gap + jnp.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)

    def newton(_: int, shape: jax.Array) -> jax.Array:
        inverse = 1 / shape + (jnp.log(shape) - digamma(shape) - gap) / (shape**2 * (1 / shape - polygamma(1, shape)))
        return jnp.where(inverse > 0, 1 / inverse, shape / 2)

    shape: jax.Array = jax.lax.fori_loop(0, 8, newton, jnp.maximum(start, 1e-10))
    return shape
