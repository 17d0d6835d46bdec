"""Entries that are mostly zero, as in counts: how often they are not, and how large they are then.

The variance of such an entry says little of what may come: zeros make it vanish, and the first that is none would be
far off at any size. What one is when it is not zero, and how often that happens, is learned from all of them together;
so far off is usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

MEMORY = 0.97
"""Forgetting: of how often an entry is zero per observation, of what others are per slice."""
PRIOR_COUNT = 5.0
"""Observations of an entry that those of all others are worth."""
MOSTLY = 0.5
"""Fraction of zeros from which on an entry is one of these."""
RARE = 2e-3
"""Of their observations: what is not zero more rarely is not usual."""
PRIOR_LOOKS = 100.0
"""Of these with nothing but zeros, to begin with."""


@register_dataclass
@dataclass(frozen=True)
class Zeros:
    """Discounted counts.

    Attributes:
        zero: Observations of every entry that were zero (n,).
        count: All observations of it (n,).
        found: Observations of mostly zero entries that were not.
        looked: All observations of these.
        size: Σ log |z| of what was found.
    """

    zero: Array
    count: Array
    found: Array
    looked: Array
    size: Array


def init(entries: int) -> Zeros:
    """Nothing seen."""
    number = jnp.zeros(())
    return Zeros(jnp.zeros(entries), jnp.zeros(entries), number, number, number)


def mostly(known: Zeros) -> Array:
    """Which entries are mostly zero (n,)."""
    pooled = known.zero.sum() / jnp.maximum(known.count.sum(), 1)
    share = (known.zero + PRIOR_COUNT * pooled) / (known.count + PRIOR_COUNT)
    return share > MOSTLY


def usual_square(known: Zeros) -> Array:
    """The square of what mostly zero entries are when they are not (n,); 0 of others, and where that is rare."""
    often = known.found > RARE * (known.looked + PRIOR_LOOKS)
    square = jnp.exp(2 * known.size / jnp.maximum(known.found, 1e-6))
    return jnp.where(mostly(known) & often, square, 0)


def news(known: Zeros, values: Array) -> Array:
    """What observations say about how far off others are (n,).

    Where zero is usual, all zeros together as much as what is none: how rarely that is says nothing of the others.
    """
    share = jnp.minimum(known.found / jnp.maximum(known.looked - known.found, 1), 1)
    return jnp.where(mostly(known) & (values == 0), share, 1.0)


def learned(known: Zeros, values: Array, observed: Array) -> Zeros:
    """With one more slice.

    Args:
        known: So far.
        values: On the scale of the stream (n,).
        observed: What counts (n,).
    """
    zero = observed & (values == 0)
    among = mostly(known) & observed & (known.count.sum() > 0)
    other = among & ~zero
    keep = jnp.where(observed, MEMORY, 1.0)
    kept = jnp.where(among.any(), MEMORY, 1.0)
    size = jnp.where(other, jnp.log(jnp.maximum(jnp.abs(values), 1e-30)), 0).sum()
    return Zeros(
        zero=keep * known.zero + zero,
        count=keep * known.count + observed,
        found=kept * known.found + other.sum(),
        looked=kept * known.looked + among.sum(),
        size=kept * known.size + size,
    )
