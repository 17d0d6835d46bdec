"""Special functions of positive numbers, written so that they compile quickly and lose no digits in float32.

JAX's own come as hundreds of operations for every use, since they serve negative numbers too; and differences of two
of its log-Gammas have no digits left in float32. Divisions and logarithms are few: on a CPU each becomes a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.flow import shared

SHIFT = 4
"""Series in 1/x begin at x + 4, where eight terms are exact to ten digits, and four to eight."""
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
TERMS = {"float32": 4, "float64": 8}
FEW = 32
"""Vectors of fewer numbers are filled up to this length: then all calls with few share a piece of program."""


def digamma(x: Array) -> Array:
    """ψ(x) = ln z − 1/2z − Σ B_2k / (2k z^2k) − Σ_{k<4} 1/(x + k), with z = x + 4."""
    return _flat(_digamma, x)


def gamma_ratio(base: Array | float, step: Array) -> Array:
    """ln Γ(base + step) − ln Γ(base) − step·ln base, accurate for large base in float32.

    Stirling's series after a shift by 4, so that no two large logarithms are subtracted.
    """
    return _flat(_gamma_ratio, jnp.asarray(base, step.dtype), step)


def _flat(function: Callable[..., Array], *arguments: Array) -> Array:
    """The function of the arguments, handed over as a vector where they are few."""
    shape = jnp.broadcast_shapes(*(argument.shape for argument in arguments))
    size = math.prod(shape)
    dtype = arguments[0].dtype
    arrays = [jnp.broadcast_to(jnp.asarray(argument, dtype), shape) for argument in arguments]
    if size >= FEW:
        return function(*arrays)
    padded = [lax.pad(array.reshape(-1), jnp.ones((), dtype), [(0, FEW - size, 0)]) for array in arrays]
    return function(*padded)[:size].reshape(shape)


@shared
def _digamma(x: Array) -> Array:
    inverse = 1 / (x + SHIFT)
    # Σ 1/(x + k) as one fraction, of factors at most 1: nothing can overflow.
    above, below = x * inverse + (x + 1) * inverse, x * inverse * ((x + 1) * inverse)
    for offset in range(2, SHIFT):
        factor = (x + offset) * inverse
        above, below = above * factor + below, below * factor
    return jnp.log(x + SHIFT) - (0.5 + _series(DIGAMMA, inverse) + above / below) * inverse


@shared
def _gamma_ratio(base: Array, step: Array) -> Array:
    end = base + step
    both = jnp.stack([end, base])
    over = 1 / (both + SHIFT)
    product = both * over
    for offset in range(1, SHIFT):  # each factor is at most 1
        product = product * ((both + offset) * over)
    # All that belongs to one of the two alone, with a minus for the end.
    own = jnp.log(product) - _series(LOG_GAMMA, over)
    main = (end - 0.5) * jnp.log1p(step * over[1]) - step + step * jnp.log1p(SHIFT / base)
    return main + own[1] - own[0]


def log_beta_change(prior: Array, posterior: Array) -> Array:
    """ln B(a, b) − ln B(a0, b0) of posterior (a, b) and prior (a0, b0), with a ≥ a0 and b ≥ b0."""
    base = jnp.append(prior, prior.sum())
    step = jnp.append(posterior - prior, (posterior - prior).sum())
    logs = gamma_ratio(base, step) + step * jnp.log(base)
    return logs[0] + logs[1] - logs[2]


def _series(coefficients: tuple[float, ...], inverse: Array) -> Array:
    """Σ_k c_k / x^(2k+1), of 1/x; as many terms as the type has digits for."""
    square = inverse * inverse
    *others, last = coefficients[: TERMS[inverse.dtype.name]]
    total = last * square + others.pop()
    for coefficient in reversed(others):
        total = total * square + coefficient
    return total * inverse
