"""Entries that the CP models do not learn from, to see how good their answer is."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.tracker.predictors.cp import LARGE_SLICE

HELD_OUT, FEWEST_HELD, RAREST_HELD = 16, 16, 64
"""One in 16 observed entries is held out from the CP models; fewer where there are many, so that 16 are left, but one
in 64."""
SCATTER, SCATTER_SLICES = np.uint32(2654435761), np.uint32(40503 << 12)
"""Odd multipliers: Fibonacci hashing of a position, moved on from slice to slice."""
FEWEST_OBSERVED = 8
"""Observed entries from which on some are held out."""


def held_out(values: Array, expected: Array, mask: Array, slices: Array) -> Array:
    """Some of the observed entries, others in every slice; none where few are observed, nor of the first slice.

    By the order of their values, and of equal ones, as in counts and pictures, by what was expected of them: so that it
    depends neither on their positions nor on the unit. In large slices, where sorting takes a tenth of the step, by
    positions that are scattered evenly.
    """
    observed = mask.sum()
    every = jnp.clip(observed // FEWEST_HELD, HELD_OUT, RAREST_HELD)
    enough = (observed >= FEWEST_OBSERVED) & (slices > 0)
    number = jnp.arange(values.size, dtype=jnp.uint32)
    if values.size > LARGE_SLICE:
        place = (number * SCATTER + slices.astype(jnp.uint32) * SCATTER_SLICES) >> 16
        return mask & (place % every.astype(jnp.uint32) == 0) & enough
    order = jnp.lexsort((expected, jnp.where(mask, values, jnp.inf)))
    position = jnp.zeros(values.size, jnp.int32).at[order].set(number.astype(jnp.int32))
    return mask & (position % every == slices % every) & enough
