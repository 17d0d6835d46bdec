"""The law of standardised innovations u: Student's t with learned tails and scale, contaminated by outliers.

f(u) = (1 − π) t_ν(u / s) / s + π g(u / s) / s, where g is log-uniform: an outlier is anything beyond 3 s, all orders of
magnitude alike. All that is kept is a discounted histogram of log |u|. From it come the
scale of the error bars (so that 95 % of clean observations lie within ±1.96 std), and ν, s and π by
expectation–maximisation, ν being the best of a few. Heavy tails are not taken for outliers: ν explains them.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

BINS = 120
LOW, HIGH = 1e-3, 1e4
"""Ends of the histogram of |u|; what lies outside counts at its ends."""
EDGES = np.geomspace(LOW, HIGH, BINS + 1)
CENTRES = np.sqrt(EDGES[1:] * EDGES[:-1]).astype(np.float32)
TAILS = np.array([3.0, 4.0, 6.0, 10.0, 30.0], np.float32)
"""ν: degrees of freedom that are tried."""
FORGETTING = 0.97
"""Per slice."""
PRIOR_OBSERVATIONS = 20.0
"""Worth of the prior, a normal law without outliers."""
RATE_A, RATE_B = 0.5, 200.0
"""π ~ Beta."""
NEAREST, FARTHEST = 3.0, 1e6
"""Between these multiples of s lies an outlier."""
ITERATIONS = 4
"""Of expectation–maximisation, per slice."""
COVERED, QUANTILE = 0.95, 1.96
SMALLEST_SCALE = 0.5
"""Of s, and of the factor of error bars: where most entries never change, their innovations are all 0."""


@register_dataclass
@dataclass(frozen=True)
class Law:
    """What has been learned about u.

    Attributes:
        counts: Histogram of |u| (BINS,).
        scale: s for each of `TAILS` (V,).
        rate: π for each of them.
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
        rate=each * RATE_A / RATE_B,
        chosen=jnp.asarray(len(TAILS) - 1, jnp.int32),
        spread=jnp.ones(()),
    )


def outlier_probability(law: Law, u: Array) -> Array:
    """Posterior probability that an innovation is an outlier."""
    rate = law.rate[law.chosen]
    clean, bad = _log_densities(jnp.asarray(TAILS)[law.chosen], law.scale[law.chosen], u)
    return jax.nn.sigmoid((jnp.log(rate) + bad) - (jnp.log1p(-rate) + clean))


def learned(law: Law, u: Array, observed: Array) -> Law:
    """The law after the innovations of a slice."""
    size = jnp.clip(jnp.abs(u), LOW, HIGH * 0.999)
    bins = jnp.floor(jnp.log(size / LOW) * (BINS / np.log(HIGH / LOW))).astype(jnp.int32)
    fresh = jnp.zeros(BINS).at[jnp.clip(bins, 0, BINS - 1)].add(observed.astype(jnp.float32))
    counts = jnp.where(observed.any(), FORGETTING * law.counts + fresh, law.counts)
    law = Law(counts, law.scale, law.rate, law.chosen, law.spread)
    law = jax.lax.fori_loop(0, ITERATIONS, lambda _, one: _improved(one), law)
    clean, bad = _log_densities(jnp.asarray(TAILS)[:, None], law.scale[:, None], jnp.asarray(CENTRES))
    mixed = jnp.logaddexp(jnp.log1p(-law.rate)[:, None] + clean, jnp.log(law.rate)[:, None] + bad)
    chosen = jnp.argmax((counts * mixed).sum(1)).astype(jnp.int32)
    flagged = outlier_probability(Law(counts, law.scale, law.rate, chosen, law.spread), jnp.asarray(CENTRES))
    return Law(counts, law.scale, law.rate, chosen, _spread(counts * (1 - flagged)))


def _improved(law: Law) -> Law:
    """One round of expectation–maximisation on the histogram, for every ν."""
    centres = jnp.asarray(CENTRES)[None]
    clean, bad = _log_densities(jnp.asarray(TAILS)[:, None], law.scale[:, None], centres)
    flagged = jax.nn.sigmoid(jnp.log(law.rate)[:, None] + bad - jnp.log1p(-law.rate)[:, None] - clean)
    good, wrong = law.counts * (1 - flagged), law.counts * flagged
    tails = jnp.asarray(TAILS)[:, None]
    heaviness = (tails + 1) / (tails + (centres / law.scale[:, None]) ** 2)  # E of the precision of a t variate
    variance = (good * heaviness * centres**2).sum(1) / jnp.maximum(good.sum(1), 1e-6)
    rate = (wrong.sum(1) + RATE_A) / (law.counts.sum() + RATE_A + RATE_B)
    variance = jnp.maximum(variance, SMALLEST_SCALE**2)
    return Law(law.counts, jnp.sqrt(variance), jnp.minimum(rate, 0.4), law.chosen, law.spread)


def _log_densities(tails: Array, scale: Array, u: Array) -> tuple[Array, Array]:
    """Of clean and of wrong observations."""
    constant = jax.lax.lgamma((tails + 1) / 2) - jax.lax.lgamma(tails / 2) - 0.5 * jnp.log(tails * np.pi)
    clean = constant - jnp.log(scale) - (tails + 1) / 2 * jnp.log1p((u / scale) ** 2 / tails)
    size = jnp.abs(u) / scale
    within = -jnp.log(2 * np.log(FARTHEST / NEAREST) * jnp.maximum(size, NEAREST)) - jnp.log(scale)
    bad = jnp.where(size > NEAREST, within, -jnp.inf)
    return clean, bad


def _spread(counts: Array) -> Array:
    """The 95 % quantile of clean |u| over 1.96."""
    below = jnp.cumsum(counts) / jnp.maximum(counts.sum(), 1e-6)
    quantile = jnp.interp(COVERED, below, jnp.asarray(EDGES[1:], jnp.float32))
    return jnp.maximum(quantile / QUANTILE, SMALLEST_SCALE)


def _normal_cdf(edge: float) -> float:
    from math import erf, sqrt

    return 0.5 * (1 + erf(edge / sqrt(2)))
