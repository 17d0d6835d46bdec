"""Noise precisions: one per entry, pooled by an empirical Gamma prior, or one for all.

Per entry: τ_i ~ Ga(α, b). Given effective counts n_i = Σ_t ω O and sums s_i = Σ_t ω O (weighted squared residuals),

    q(τ_i) = Ga(α + n_i/2, b + s_i/2).

(α, b) are point estimates that maximise the ELBO with τ integrated out,

    F(α, b) = Σ_i [ ln Γ(α + n_i/2) − ln Γ(α) + α ln b − (α + n_i/2) ln(b + s_i/2) ].

Alternating between q(τ) and b instead moves by a fraction n/(2α) per turn and stalls for large α; and α → ∞, one noise
variance for all entries, is the common case. So b is found with τ integrated out, which is the same bound and exact.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.defaults import LEAST_NOISE_POWER, POOL_ITERATIONS, POOL_LARGEST, POOL_SMALLEST, POOL_STEP
from undertow.model.flow import each, shared, times, where
from undertow.model.noise.special import digamma, gamma_ratio


def noise_floor(dtype: jnp.dtype) -> Array:
    """Least noise variance, in units of the stream: below it lies the rounding of the arithmetic."""
    return jnp.asarray(float(np.finfo(dtype).eps), dtype) ** LEAST_NOISE_POWER


@shared
def pooled_rate(shapes: Array, rate: Array, counts: Array, sums: Array, least: Array) -> Array:
    """b that raises F for given α, one for all entries or one for each; never below `least`.

    Candidate: a few iterations of the fixed point b = Σ α s/(2b+s) / Σ n/(2b+s), exact after one where n is the same
    everywhere and α large. Where it would lower F (possible with very uneven n), the safe step
    b = Σ α / Σ (2α+n)/(2b+s) is taken: it maximises a lower bound of F that touches it at the old b.
    """
    shapes = where(counts > 0, shapes, 0)  # what was not observed has no part in it
    both = jnp.stack([shapes * sums, counts, 2 * shapes + counts]).reshape(3, -1)
    flat = sums.reshape(-1)

    def over(rate: Array) -> Array:
        """Sums of all three over 2b + s."""
        return jnp.matmul(both, 1 / (2 * rate + flat), precision=lax.Precision.HIGHEST)

    def turn(quick: Array) -> Array:
        energy, observed, _all = over(quick)
        return where(observed > 0, jnp.maximum(energy / where(observed > 0, observed, 1), least), rate)

    def loss(candidate: Array) -> Array:
        return (counts / 2 * jnp.log(candidate) + (shapes + counts / 2) * jnp.log1p(sums / (2 * candidate))).sum()

    quick = times(POOL_ITERATIONS, turn, rate)
    total = shapes.sum()
    safe = jnp.maximum(total / where(total > 0, over(rate)[2], 1), least)
    losses = jax.vmap(loss)(jnp.stack([quick, rate]))
    return where(losses[0] <= losses[1], quick, safe)


def shared_variance(before: Array, count: Array, total: Array, floor: Array) -> Array:
    """The noise variance of all entries, Σs/Σn; as before where nothing was observed."""
    return where(count > 0, jnp.maximum(total / where(count > 0, count, 1), floor), before)


def pool_elbo(pool_shape: Array, rate: Array, counts: Array, sums: Array) -> Array:
    """F(α, b) without cancellation: −n/2 ln(b/α) − (α + n/2) ln(1 + s/2b) + [ln Γ(α+n/2) − ln Γ(α) − n/2 ln α]."""
    half = counts / 2
    terms = -half * jnp.log(rate / pool_shape) - (pool_shape + half) * jnp.log1p(sums / (2 * rate))
    return (terms + gamma_ratio(pool_shape, half)).sum()


def better_pool(pool_shape: Array, pool_rate: Array, counts: Array, sums: Array) -> tuple[Array, Array]:
    """(α, b): the best of α, 1.5α and α/1.5 by the ELBO with τ integrated out, each with its own b."""
    steps = jnp.asarray([1, POOL_STEP, 1 / POOL_STEP], sums.dtype)
    shapes = jnp.minimum(jnp.maximum(pool_shape * steps, POOL_SMALLEST), POOL_LARGEST)

    def candidate(shape: Array) -> tuple[Array, Array]:
        start = pool_rate * shape / pool_shape
        rate = pooled_rate(shape, start, counts, sums, noise_floor(sums.dtype) * shape)
        return rate, pool_elbo(shape, rate, counts, sums)

    rates, scores = each(candidate, shapes)
    best = scores == scores.max()
    shape, rate = where(best, jnp.stack([shapes, rates]), 0).max(axis=1)  # equal scores: the same candidate
    return shape, rate


def expected_log(shape: Array, rate: Array) -> Array:
    """E ln τ for q(τ) = Ga(shape, rate)."""
    return digamma(shape) - jnp.log(rate)


def gamma_gap(shape: Array, rate: Array, prior_shape: Array | float, prior_rate: Array | float) -> Array:
    """KL(Ga(shape, rate) ‖ Ga(prior_shape, prior_rate)), without subtracting large log-Gammas (shape ≥ prior_shape)."""
    step = shape - prior_shape
    logs = step * (digamma(shape) - jnp.log(prior_shape)) - gamma_ratio(prior_shape, step)
    return logs + prior_shape * jnp.log(rate / prior_rate) + shape * (prior_rate - rate) / rate


def predictive_variance(shape: Array, rate: Array) -> Array:
    """E[1/τ] = rate / (shape − 1): variance of the Student-t law that a new observation follows."""
    return rate / jnp.maximum(shape - 1, 0.5)
