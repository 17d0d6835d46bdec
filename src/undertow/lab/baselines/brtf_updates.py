"""The variational updates of BRTF as one compiled program; the equations stand in `brtf`.

Shapes stay fixed: a pruned component keeps its column, at zero and without variance, and a slice that is not there yet
(a window still filling) keeps its temporal row at zero and counts nowhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import digamma, gammaln

from undertow.lab.baselines import cp

_PRIOR = 1e-6  # shape and rate of every Gamma prior
_LOG_TINY = float(np.log(1e-200))  # what the published code takes for the logarithm of zero
_LOG_HUGE = float(np.log(1e300))  # and for the logarithm of infinity
_FIXED_HYPER = 5  # iterations before the prior of the outlier precisions is refitted


class Posterior(NamedTuple):
    """Everything that moves.

    factors      ā⁽ⁿ⁾, (I_n, R), time last
    covariances  V, (I_n, R, R)
    active       1 for active components, (R,)
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
    active: Any
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
        return (now.iteration < iterations) & ~converged & (now.active.sum() > 0) & jnp.isfinite(now.noise)

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
    variance = jnp.stack([jnp.einsum("irr->r", covariance) for covariance in covariances]).sum(0)
    ranking_shape, ranking_rate = _PRIOR + 0.5 * sizes.sum(), _PRIOR + 0.5 * (power + variance)
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

    # The special functions once for all shapes: they are long to compile.
    shapes = jnp.stack([ranking_shape, noise_shape, outlier_shape, jnp.asarray(_PRIOR), now.hyper[0]])
    psi, log_gamma = digamma(shapes), gammaln(shapes)
    log_ranking, log_noise = psi[0] - jnp.log(ranking_rate), psi[1] - jnp.log(noise_rate)
    log_precision = psi[2] - jnp.log(outlier_rate)
    active = now.active
    bound = (
        # likelihood
        0.5 * observed * (log_noise - jnp.log(2 * jnp.pi))
        - 0.5 * noise * fit
        # factors and their entropy; the 2π cancel
        + (active * (0.5 * sizes.sum() * log_ranking - 0.5 * ranking * (power + variance))).sum()
        + 0.5 * active.sum() * sizes.sum()
        + 0.5 * log_dets
        # γ, β and their entropies
        + (active * (_expected_log_prior(_PRIOR, _PRIOR, log_gamma[3], ranking, log_ranking))).sum()
        + (active * _entropy(ranking_shape, ranking_rate, psi[0], log_gamma[0])).sum()
        + _expected_log_prior(_PRIOR, _PRIOR, log_gamma[3], noise, log_noise)
        + _entropy(noise_shape, noise_rate, psi[1], log_gamma[1])
        # outliers, their precisions, and the entropies of both
        + 0.5
        * (mask * (log_precision + 1 + jnp.log(jnp.where(mask > 0, outlier_variance, 1.0)) - size * precision)).sum()
        + (mask * _expected_log_prior(now.hyper[0], now.hyper[1], log_gamma[4], precision, log_precision)).sum()
        + (mask * _entropy(outlier_shape, outlier_rate, psi[2], log_gamma[2])).sum()
    )
    iteration = now.iteration + 1
    inflated = bound + published * (
        0.5 * missing * _LOG_TINY
        + jnp.minimum(_LOG_HUGE - log_gamma[1], 0.0)
        + active.sum() * jnp.minimum(_LOG_HUGE - log_gamma[0], 0.0)
    )

    mean = (mask * precision).sum() / observed
    refitted = gamma_shape(jnp.log(mean) - (mask * log_precision).sum() / observed)
    hyper = jnp.where(iteration > _FIXED_HYPER, jnp.stack([refitted, refitted / mean]), now.hyper)

    norm = jnp.sqrt(power.sum())
    rounding = sizes.sum() * (jnp.nextafter(norm, jnp.inf) - norm)
    remaining = jnp.where(iteration >= 2, active * (power > rounding), active)
    both = remaining[:, None] * remaining[None, :]
    return Posterior(
        tuple(factor * remaining for factor in factors),
        tuple(covariance * both for covariance in covariances),
        remaining,
        ranking,
        noise,
        outliers,
        outlier_variance,
        precision,
        hyper,
        low_rank * (remaining.sum() > 0),
        bound,
        now.bound,
        jnp.where(iteration <= 2, inflated, now.reference),
        iteration,
    )


def _factor_updates(
    now: Posterior, values: jax.Array, mask: jax.Array, present: jax.Array
) -> tuple[list[jax.Array], list[jax.Array], jax.Array, jax.Array]:
    """Means and covariances of all rows, Σ log det V over the active part, and Σ_Ω ⟨b bᵀ⟩ of the last mode."""
    factors, covariances = list(now.factors), list(now.covariances)
    moments = [_second_moments(factor, covariance) for factor, covariance in zip(factors, covariances, strict=True)]
    rank, residual = now.active.shape[0], mask * (values - now.outliers)
    both = now.active[:, None] * now.active[None, :]
    diagonal = jnp.diag(jnp.where(now.active > 0, now.ranking, 1.0))
    log_dets, grams = jnp.zeros(()), moments[-1]
    for mode in range(values.ndim):
        rows = present if mode == values.ndim - 1 else jnp.ones(values.shape[mode])
        grams = cp.contract(mask, moments, mode)
        precision = now.noise * grams.reshape(-1, rank, rank) * both + diagonal
        root = jnp.linalg.cholesky(precision)
        inverse_root = solve_triangular(root, jnp.broadcast_to(jnp.eye(rank), root.shape), lower=True)
        covariances[mode] = jnp.einsum("iqr,iqs->irs", inverse_root, inverse_root) * both * rows[:, None, None]
        target = cp.contract(residual, factors, mode)
        factors[mode] = now.noise * jnp.einsum("irs,is->ir", covariances[mode], target)
        moments[mode] = _second_moments(factors[mode], covariances[mode])
        log_dets = log_dets - 2 * (rows[:, None] * jnp.log(jnp.diagonal(root, axis1=1, axis2=2))).sum()
    return factors, covariances, log_dets, grams


def _second_moments(factor: jax.Array, covariance: jax.Array) -> jax.Array:
    """Rows vec(āāᵀ + V)."""
    return cp.squares(factor) + covariance.reshape(covariance.shape[0], -1)


def _expected_log_prior(shape: Any, rate: Any, log_gamma: Any, mean: Any, log_mean: Any) -> Any:
    """⟨log Ga(x; shape, rate)⟩ given ⟨x⟩ and ⟨log x⟩; log_gamma is log Γ(shape)."""
    return shape * jnp.log(rate) - log_gamma + (shape - 1) * log_mean - rate * mean


def _entropy(shape: Any, rate: Any, psi: Any, log_gamma: Any) -> Any:
    """Entropy of Ga(shape, rate); psi and log_gamma are those of the shape."""
    return log_gamma - (shape - 1) * psi - jnp.log(rate) + shape


def gamma_shape(gap: jax.Array) -> jax.Array:
    """The shape a with log a − ψ(a) = gap: maximum likelihood of a Gamma law, gap = log⟨x⟩ − ⟨log x⟩.

    The left side falls from ∞ to 0 and lies between 1/(2a) and 1/a: bisection of log a between those ends.
    """

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        left = middle - digamma(jnp.exp(middle)) > gap
        return jnp.where(left, middle, low), jnp.where(left, high, middle)

    ends = (-jnp.log(2 * gap), -jnp.log(gap))
    low, high = jax.lax.fori_loop(0, 50, halve, ends)
    return jnp.exp(0.5 * (low + high))
