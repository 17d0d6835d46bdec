"""The scale of a stream: linear, square root or logarithm, as functions of numbers on the device.

x / unit = z (linear), z |z| (square root), sinh(z) / 2 (logarithm; linear near 0). Which one is a number, not a
program, so that a stream can change it.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

LINEAR, ROOT, LOG = 0, 1, 2
LARGEST = 40.0
"""Largest |z| on the logarithmic scale: beyond it sinh leaves single precision."""


def scaled(x: Array, scale: Array) -> Array:
    """z of data in units of the stream."""
    return jnp.select([scale == LINEAR, scale == ROOT], [x, jnp.sign(x) * jnp.sqrt(jnp.abs(x))], jnp.arcsinh(2 * x))


def expected(z: Array, variance: Array, scale: Array) -> Array:
    """E x where z is normal: on a curved scale not the same as x at the mean of z."""
    root = jnp.sign(z) * (z**2 + jnp.where(jnp.abs(z) > 0, variance, 0))
    logarithm = jnp.sinh(jnp.clip(z, -LARGEST, LARGEST)) / 2 * jnp.exp(jnp.minimum(variance / 2, 1.0))
    return jnp.select([scale == LINEAR, scale == ROOT], [z, root], logarithm)


def slope(z: Array, scale: Array) -> Array:
    """dx / dz."""
    steep = jnp.cosh(jnp.clip(z, -LARGEST, LARGEST)) / 2
    return jnp.select([scale == LINEAR, scale == ROOT], [jnp.ones_like(z), 2 * jnp.abs(z)], steep)


def plain(z: Array, scale: Array) -> Array:
    """x at z."""
    return expected(z, jnp.zeros_like(z), scale)
