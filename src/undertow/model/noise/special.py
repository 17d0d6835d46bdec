"""Special functions of positive numbers, written so that they compile quickly and lose no digits in float32.

JAX's own come as hundreds of operations for every use, since they serve negative numbers too; and differences of two
of its log-Gammas have no digits left in float32. Divisions and logarithms are few: on a CPU each becomes a kernel.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from undertow.model.flow import shared

SHIFT = 4
"""Series in 1/x begin at x + 4, where eight terms are exact to ten digits."""
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


@shared
def digamma(x: Array) -> Array:
    """ψ(x) = ln z − 1/2z − Σ B_2k / (2k z^2k) − Σ_{k<4} 1/(x + k), with z = x + 4."""
    inverse = 1 / (x + SHIFT)
    # Σ 1/(x + k) as one fraction, of factors at most 1: nothing can overflow.
    above, below = jnp.zeros_like(x), jnp.ones_like(x)
    for offset in range(SHIFT):
        factor = (x + offset) * inverse
        above, below = above * factor + below, below * factor
    terms = 0.5 + _series(DIGAMMA, inverse) + above / below
    return jnp.log(x + SHIFT) - terms * inverse


@shared
def gamma_ratio(base: Array | float, step: Array) -> Array:
    """ln Γ(base + step) − ln Γ(base) − step·ln base, accurate for large base in float32.

    Stirling's series after a shift by 4, so that no two large logarithms are subtracted.
    """
    high, low = base + SHIFT + step, jnp.asarray(base + SHIFT, step.dtype)
    over_high, over_low = 1 / high, 1 / low
    above, below, end = jnp.ones_like(step), jnp.ones_like(low), base + step
    for offset in range(SHIFT):  # each factor is at most 1
        above, below = above * ((end + offset) * over_high), below * ((base + offset) * over_low)
    series = _series(LOG_GAMMA, over_high) - _series(LOG_GAMMA, over_low)
    main = (high - 0.5 - SHIFT) * jnp.log1p(step * over_low) - step + step * jnp.log1p(SHIFT / base)
    return main + series - jnp.log(above / below)


def log_beta_change(prior: Array, posterior: Array) -> Array:
    """ln B(a, b) − ln B(a0, b0) of posterior (a, b) and prior (a0, b0), with a ≥ a0 and b ≥ b0."""
    base = jnp.append(prior, prior.sum())
    step = jnp.append(posterior - prior, (posterior - prior).sum())
    logs = gamma_ratio(base, step) + step * jnp.log(base)
    return logs[0] + logs[1] - logs[2]


def _series(coefficients: tuple[float, ...], inverse: Array) -> Array:
    """Σ_k c_k / x^(2k+1), of 1/x."""
    square = inverse * inverse
    total = coefficients[-1] * square
    for coefficient in reversed(coefficients[1:-1]):
        total = (total + coefficient) * square
    return (total + coefficients[0]) * inverse
