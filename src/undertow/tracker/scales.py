"""The scale of a stream: linear, square root or logarithm, as functions of numbers on the device.

x / unit = z (linear), z |z| (square root), sinh(z) / 2 (logarithm; linear near 0). Which one is a number, not a
program, so that a stream can change it.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import norm

LINEAR, ROOT, LOG = 0, 1, 2
LARGEST = 40.0
"""Largest |z| on the logarithmic scale: beyond it sinh leaves single precision."""
WIDEST = 2.0
"""Largest variance of z that an expected value believes: on the logarithmic scale it is e times the median there."""


def scaled(x: Array, scale: Array) -> Array:
    """z of data in units of the stream."""
    return jnp.select([scale == LINEAR, scale == ROOT], [x, jnp.sign(x) * jnp.sqrt(jnp.abs(x))], jnp.arcsinh(2 * x))


def plain(z: Array, scale: Array) -> Array:
    """x at z."""
    logarithm = jnp.sinh(jnp.clip(z, -LARGEST, LARGEST)) / 2
    return jnp.select([scale == LINEAR, scale == ROOT], [z, z * jnp.abs(z)], logarithm)


def expected(z: Array, variance: Array, scale: Array) -> Array:
    """E x where z is normal: on a curved scale not the same as x at the mean of z."""
    variance = jnp.where(scale == LOG, jnp.minimum(variance, WIDEST), variance)
    deviation = jnp.sqrt(variance)
    t = z / jnp.maximum(deviation, 1e-12)
    root = (z**2 + variance) * (2 * norm.cdf(t) - 1) + 2 * z * deviation * norm.pdf(t)
    return jnp.select([scale == LINEAR, scale == ROOT], [z, root], plain(z, scale) * jnp.exp(variance / 2))
