"""What predictors say of their own errors, corrected by the errors that they make: a factor per predictor and entry.

Variances that a predictor claims can be wrong by orders of magnitude, for some entries or for all. The factor is the
discounted mean of squared errors over claimed variances, drawn towards that of all entries of the predictor.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import huber

MEMORY = 0.97
"""Forgetting, per observation of the entry."""
PRIOR_COUNT = 5.0
"""Observations that the other entries are worth to an entry."""
SMALLEST = 1e-6
"""Least factor."""


@register_dataclass
@dataclass(frozen=True)
class Calibration:
    """Discounted sums.

    Attributes:
        squares: Of squared errors over claimed variances (K, n).
        count: Of observations (n,).
    """

    squares: Array
    count: Array


def init(predictors: int, entries: int) -> Calibration:
    """Nothing known."""
    return Calibration(jnp.zeros((predictors, entries)), jnp.zeros(entries))


def factors(known: Calibration) -> Array:
    """What claimed variances are to be multiplied with (K, n)."""
    roots = jnp.sqrt(known.squares / jnp.maximum(known.count, 1e-6))
    # The square of the mean root: entries far off the rest do not decide it.
    count = jnp.where(roots > 0, known.count, 0)  # without those that never move
    mean = (count * roots).sum(1) / jnp.maximum(count.sum(1), 1e-6)
    shared = jnp.where((known.count > 0).any(), mean, 1.0)[:, None] ** 2
    return jnp.maximum((known.squares + PRIOR_COUNT * shared) / (known.count + PRIOR_COUNT), SMALLEST)


def learned(
    known: Calibration,
    errors: Array,
    variances: Array,
    weights: Array,
    bound: Array | float = huber.LOOSE,
    usual: Array | float = 0.0,
) -> Calibration:
    """With one more slice.

    Args:
        known: So far.
        errors: Of the predictors (K, n).
        variances: As they claim them (K, n).
        weights: Of observations (n,), 0 where there is none.
        bound: Standard deviations beyond which an error adds no more: it may be an outlier not noticed.
        usual: Squared errors that are usual whatever the variance (n,).
    """
    observed = weights > 0
    seen = huber.bounded(errors**2 / variances, factors(known), bound, usual / variances)
    keep = 1 - (1 - MEMORY) * weights
    return Calibration(
        squares=jnp.where(observed, keep * known.squares + weights * seen, known.squares),
        count=jnp.where(observed, keep * known.count + weights, known.count),
    )
