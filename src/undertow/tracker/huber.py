"""Huber's scale: a mean square to which an error adds no more than c standard deviations.

σ² solves E min(e² / σ², c²) = β(c), where β(c) is that mean for normal errors, so that σ is theirs. It breaks down
where more than β / c² of the errors are gross: a ninth at c = 3, a third at c = 1.5. A small c has its price: where
more than 1 − β / c² of the errors are next to nothing, as in counts that are mostly zero, σ² vanishes. So c is as small
as the outliers that are known of require.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LOOSE, TIGHT = 3.0, 1.5
"""c where next to nothing is an outlier, and where as much is as can be."""
SHARE = 0.35
"""Of the mean square of normal errors, what all outliers together may add."""


def bound(rate: Array | float) -> Array:
    """c for a fraction of outliers."""
    c: Array = jnp.clip(jnp.sqrt(SHARE / jnp.maximum(rate, 1e-6)), TIGHT, LOOSE)
    return c


def bounded(squares: Array, variance: Array, c: Array | float, usual: Array | float = 0.0) -> Array:
    """What squared errors add: c² variances at most, or what is usual if that is more."""
    most = c**2 * variance / within(c)
    added: Array = jnp.minimum(squares / jnp.where(usual > most, 1, within(c)), jnp.maximum(most, usual))
    return added


def within(c: Array | float) -> Array:
    """β(c) = E min(z², c²) of a standard normal z."""
    density = jnp.exp(-(jnp.asarray(c) ** 2) / 2) / np.sqrt(2 * np.pi)
    beyond = jax.scipy.special.erfc(c / np.sqrt(2))
    mean: Array = 1 - beyond - 2 * c * density + c**2 * beyond
    return mean
