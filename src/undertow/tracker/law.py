"""The law of standardised innovations u: Student's t with learned tails and scale, contaminated by outliers.

f(u) = (1 − π) t_ν(u / s) / s + Σ_b π_b g_b(u / s) / s, where g_b is log-uniform in the b-th half of an order of
magnitude beyond 3 s and π = Σ π_b: how many outliers there are and how large they usually are is learned. All that is
kept is a discounted histogram of log |u|. From it come the scale of the error bars (so that 95 % of clean observations
lie within ±1.96 std), and ν, s and π by expectation–maximisation, ν being the best of a few. Heavy tails are not taken
for outliers: ν explains them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass
from numpy.typing import NDArray

BINS = 120
LOW, HIGH = 1e-3, 1e4
"""Ends of the histogram of |u|; what lies outside counts at its ends."""
EDGES = np.geomspace(LOW, HIGH, BINS + 1)
CENTRES = np.sqrt(EDGES[1:] * EDGES[:-1]).astype(np.float32)
TAILS = np.array([2.0, 3.0, 4.0, 6.0, 10.0, 30.0], np.float32)
"""ν: degrees of freedom that are tried."""
FORGETTING = 0.97
"""Per slice."""
PRIOR_OBSERVATIONS = 20.0
"""Worth of the prior, a normal law without outliers."""
RATE_A, RATE_B = 0.5, 200.0
"""π ~ Beta."""
NEAREST, FARTHEST = 3.0, 1e6
"""Between these multiples of s lies an outlier."""
BANDS = 11
"""Half orders of magnitude between these, each with a rate of its own."""
GROSS = 30.0
"""Standard deviations that are far off whatever the law."""
MOST = 0.4
"""Largest π."""
ITERATIONS = 4
"""Of expectation–maximisation, per slice."""
COVERED, QUANTILE = 0.95, 1.96
SMALLEST_SCALE, SMALLEST_SPREAD = 0.8, 0.5
"""Of s, and of the factor of error bars: where most entries never change, their innovations are all 0, and what is not
must not become an outlier for that."""


@register_dataclass
@dataclass(frozen=True)
class Law:
    """What has been learned about u.

    Attributes:
        counts: Histogram of |u| (BINS,).
        scale: s for each of `TAILS` (V,).
        rate: π_b for each of them (V, BANDS).
        chosen: Position in `TAILS`.
        spread: What predictive standard deviations are to be multiplied with.
    """

    counts: Array
    scale: Array
    rate: Array
    chosen: Array
    spread: Array


def init() -> Law:
    """The prior."""
    inside = np.diff([_normal_cdf(edge) for edge in EDGES]) * 2
    each = jnp.ones(len(TAILS))
    return Law(
        counts=jnp.asarray(PRIOR_OBSERVATIONS * inside, jnp.float32),
        scale=each,
        rate=jnp.full((len(TAILS), BANDS), RATE_A / RATE_B / BANDS, jnp.float32),
        chosen=jnp.asarray(len(TAILS) - 1, jnp.int32),
        spread=jnp.ones(()),
    )


def outlier_probability(law: Law, u: Array) -> Array:
    """Posterior probability that an innovation is an outlier."""
    clean, wrong = _log_joint(jnp.asarray(TAILS)[law.chosen], law.scale[law.chosen], law.rate[law.chosen], u)
    return jax.nn.sigmoid(wrong - clean)


def worth(law: Law, u: Array) -> Array:
    """What an innovation is worth to those who learn, in [0, 1]: beyond `NEAREST` s the less, the farther.

    Nearer ones count in full, or the means of skewed laws, as of counts, would be drawn to what is most frequent.
    """
    size = jnp.abs(u) / law.scale[law.chosen]
    return (NEAREST / jnp.maximum(size, NEAREST)) ** 2


def rate(law: Law) -> Array:
    """π: the fraction of outliers."""
    return law.rate[law.chosen].sum()


def below(law: Law) -> Array:
    """Fraction of clean |u| up to the upper edge of each bin (BINS,)."""
    return _below(law.counts * (1 - outlier_probability(law, jnp.asarray(CENTRES))))


def reach(shares: NDArray[Any], level: float) -> NDArray[Any]:
    """Within how many calibrated standard deviations this fraction of clean |u| lies: 1.96 for 95 %; (…, 1).

    Args:
        shares: From `below` (…, BINS).
        level: The fraction.
    """
    quantiles = [np.interp([level, COVERED], one, EDGES[1:]) for one in shares.reshape(-1, BINS)]
    wide: NDArray[Any] = QUANTILE * np.array([asked / usual for asked, usual in quantiles])
    return wide.reshape(*shares.shape[:-1], 1)


def learned(law: Law, u: Array, weights: Array) -> Law:
    """The law after the innovations of a slice, each with its weight; 0 where nothing was observed."""
    fresh = histogram(u, weights)
    counts = jnp.where((weights > 0).any(), FORGETTING * law.counts + fresh, law.counts)
    law = Law(counts, law.scale, law.rate, law.chosen, law.spread)
    law = jax.lax.fori_loop(0, ITERATIONS, lambda _, one: _improved(one), law)
    clean, wrong = _all_log_joint(law)
    chosen = jnp.argmax((counts * jnp.logaddexp(clean, wrong)).sum(1)).astype(jnp.int32)
    flagged = outlier_probability(Law(counts, law.scale, law.rate, chosen, law.spread), jnp.asarray(CENTRES))
    return Law(counts, law.scale, law.rate, chosen, spread(counts * (1 - flagged)))


def histogram(u: Array, weights: Array) -> Array:
    """How many |u| lie in each bin, each with its weight (BINS,)."""
    size = jnp.clip(jnp.abs(u), LOW, HIGH * 0.999)
    bins = jnp.floor(jnp.log(size / LOW) * (BINS / np.log(HIGH / LOW))).astype(jnp.int32)
    return jnp.zeros(BINS).at[jnp.clip(bins, 0, BINS - 1)].add(weights.astype(jnp.float32))


def with_outliers(law: Law, count: Array | float) -> Law:
    """The law with `count` outliers more, of any size."""
    far = jnp.asarray(CENTRES > GROSS, jnp.float32)
    law = Law(law.counts + count * far / far.sum(), law.scale, law.rate, law.chosen, law.spread)
    return learned(law, jnp.zeros(1), jnp.zeros(1, bool))


def _improved(law: Law) -> Law:
    """One round of expectation–maximisation on the histogram, for every ν."""
    centres = jnp.asarray(CENTRES)[None]
    clean, wrong = _all_log_joint(law)
    flagged = jax.nn.sigmoid(wrong - clean)
    good, bad = law.counts * (1 - flagged), law.counts * flagged
    tails = jnp.asarray(TAILS)[:, None]
    heaviness = (tails + 1) / (tails + (centres / law.scale[:, None]) ** 2)  # E of the precision of a t variate
    variance = (good * heaviness * centres**2).sum(1) / jnp.maximum(good.sum(1), 1e-6)
    inside = _band(centres / law.scale[:, None])[:, :, None] == jnp.arange(BANDS)
    found = (bad[:, :, None] * inside).sum(1)
    rates = (found + RATE_A / BANDS) / (law.counts.sum() + RATE_A + RATE_B)
    # Gross errors are not confined to the margin: what lies there alone is the tail of an odd law, of counts for one.
    rates = rates.at[:, 0].min(rates[:, 1:].sum(1))
    rates = rates * jnp.minimum(1, MOST / rates.sum(1, keepdims=True))
    variance = jnp.maximum(variance, SMALLEST_SCALE**2)
    return Law(law.counts, jnp.sqrt(variance), rates, law.chosen, law.spread)


def _all_log_joint(law: Law) -> tuple[Array, Array]:
    """`_log_joint` of every bin of the histogram, for every ν (V, BINS)."""
    every = jax.vmap(_log_joint, (0, 0, 0, None))
    made: tuple[Array, Array] = every(jnp.asarray(TAILS), law.scale, law.rate, jnp.asarray(CENTRES))
    return made


def _log_joint(tails: Array, scale: Array, rates: Array, u: Array) -> tuple[Array, Array]:
    """Log-densities of u together with its being clean, and with its being wrong."""
    constant = jax.lax.lgamma((tails + 1) / 2) - jax.lax.lgamma(tails / 2) - 0.5 * jnp.log(tails * np.pi)
    clean = constant - jnp.log(scale) - (tails + 1) / 2 * jnp.log1p((u / scale) ** 2 / tails)
    size = jnp.abs(u) / scale
    width = np.log(FARTHEST / NEAREST) / BANDS
    within = jnp.log(rates)[_band(size)] - jnp.log(2 * width * jnp.maximum(size, NEAREST)) - jnp.log(scale)
    return jnp.log1p(-rates.sum()) + clean, jnp.where(size > NEAREST, within, -jnp.inf)


def _band(size: Array) -> Array:
    """Which band an innovation of this many s is in; the first or the last where it is in none."""
    place = jnp.log(jnp.maximum(size, NEAREST) / NEAREST) * (BANDS / np.log(FARTHEST / NEAREST))
    return jnp.clip(place, 0, BANDS - 1).astype(jnp.int32)


def spread(counts: Array) -> Array:
    """The 95 % quantile of |u| over 1.96, from a histogram."""
    quantile = jnp.interp(COVERED, _below(counts), jnp.asarray(EDGES[1:], jnp.float32))
    return jnp.maximum(quantile / QUANTILE, SMALLEST_SPREAD)


def _below(counts: Array) -> Array:
    return jnp.cumsum(counts) / jnp.maximum(counts.sum(), 1e-6)


def _normal_cdf(edge: float) -> float:
    from math import erf, sqrt

    return 0.5 * (1 + erf(edge / sqrt(2)))
