"""What an observation is on average, where the scale of the stream is curved.

Predictions are made on the scale of the stream, and x at the mean of z is a median: what users add up is E x. If z is
normal with variance v, E x = x(z) + c(z, v) (`scales.expected`), on the logarithmic scale x(z) exp(v / 2). How much of
c the data bear out is a factor in [0, 1] that is learned from observations that were predicted without themselves,

    mean = x(z) + f c,   f = Σ (x − x(z)) / Σ c,

so that means add up to what was observed. On the logarithmic scale, where noise is in proportion to size, v follows
from one number of the stream, noise over size: variances of single entries also hold what predictors do not agree on,
and half an exponential of these does not fit what is observed.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import scales

FORGETTING = 0.98
"""Per slice."""
FARTHEST = 4.0
"""Standard deviations beyond which an observation adds no more: normal ones are not that far."""


@register_dataclass
@dataclass(frozen=True)
class Expectation:
    """What is known of the way from z to E x.

    Attributes:
        excess: Discounted Σ (x − x(z)).
        theory: Discounted Σ c.
        negative: Whether negative numbers have been observed; if not, none are expected on a curved scale.
    """

    excess: Array
    theory: Array
    negative: Array


def init() -> Expectation:
    """Nothing known: means are medians."""
    return Expectation(jnp.zeros(()), jnp.zeros(()), jnp.zeros((), bool))


def mean(known: Expectation, z: Array, variance: Array, scale: Array) -> Array:
    """E of an observation, in units of the stream; variances are those of z."""
    middle, added = _parts(known, z, variance, scale)
    return middle + jnp.clip(known.excess / jnp.maximum(known.theory, 1e-30), 0, 1) * added


def least(known: Expectation, scale: Array) -> Array:
    """What no observation is below."""
    return jnp.where((scale == scales.LINEAR) | known.negative, -jnp.inf, 0.0)


def learned(
    known: Expectation, values: Array, z: Array, variance: Array, scale: Array, importance: Array
) -> Expectation:
    """With one more slice.

    Args:
        known: So far.
        values: On the scale of the stream (n,).
        z: As predicted without them.
        variance: Of an observation around that.
        scale: Its number.
        importance: Weight of every error in units of the stream; 0 where nothing is known.
    """
    known = Expectation(
        excess=FORGETTING * known.excess,
        theory=FORGETTING * known.theory,
        negative=known.negative | ((values < 0) & (importance > 0)).any(),
    )
    middle, added = _parts(known, z, variance, scale)
    reach = FARTHEST * jnp.sqrt(variance)
    error = scales.plain(jnp.clip(values, z - reach, z + reach), scale) - middle
    error, added = (jnp.where(importance > 0, importance * one, 0).sum() for one in (error, added))
    return Expectation(known.excess + error, known.theory + added, known.negative)


def _parts(known: Expectation, z: Array, variance: Array, scale: Array) -> tuple[Array, Array]:
    """x(z) and c."""
    middle = jnp.maximum(scales.plain(z, scale), least(known, scale))
    # Noise in proportion to size, σ x, is σ tanh z on the scale, which is linear near 0. σ by least squares of roots:
    # entries far noisier than the rest do not decide it.
    steep = jnp.abs(jnp.tanh(z))
    relative = (steep * jnp.sqrt(variance)).sum() / jnp.maximum((steep**2).sum(), 1e-6)
    variance = jnp.where(scale == scales.LOG, (relative * steep) ** 2, variance)
    return middle, jnp.maximum(scales.expected(z, variance, scale), least(known, scale)) - middle
