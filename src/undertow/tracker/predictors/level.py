"""Local level: every entry is a random walk observed with noise, filtered at several paces.

y_t = m_t + ε_t, m_t = m_{t−1} + η_t, Var ε = r, Var η = ψ r. For every ratio ψ there is a Kalman filter; they are
weighted by the likelihood of what each has predicted. O(entries).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import huber
from undertow.tracker.predictors.base import Given, Prediction

RATIOS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0], np.float32)
"""ψ of the filters: from an average over about twenty slices to the last value."""
MEMORY = 0.97
"""Forgetting of likelihoods and noise, per observation of the entry."""
TEMPER = 0.2
"""Of the likelihoods: they say less about the pace than they would if the data were random walks."""
PRIOR_COUNT = 3.0
"""Observations that the noise of the other entries is worth to an entry."""
MOST_SQUARED = 1e4
"""Largest squared error over its expectation that counts: beyond it, rounding decides between paces, and the compiler
may round the same number in two ways."""
WIDEST = 1e4
"""Largest variance of a level over that of the noise."""


@register_dataclass
@dataclass(frozen=True)
class LevelState:
    """Filters (K, n), one row for each of `RATIOS`. Variances are over those of the noise.

    Attributes:
        mean: Filtered.
        variance: Filtered.
        squares: Discounted sum of squared innovations over their expected size.
        count: Discounted number of observations (n,).
        score: Discounted log-likelihood.
        seen: Whether the entry was ever observed (n,).
    """

    mean: Array
    variance: Array
    squares: Array
    count: Array
    score: Array
    seen: Array


class Level:
    """A bank of local levels per entry."""

    names = ("level",)

    def init(self, entries: int) -> LevelState:
        """Nothing known."""
        bank = (len(RATIOS), entries)
        return LevelState(
            jnp.zeros(bank),
            jnp.ones(bank),
            jnp.zeros(bank),
            jnp.zeros(entries),
            jnp.zeros(bank),
            jnp.zeros(entries, bool),
        )

    def predict(self, state: LevelState, given: Given) -> Prediction:
        """From the entry's own past alone; an entry never seen is like the others."""
        weights, noise = _weights(state.score), _noise(state)
        mean = _averaged(weights, state.mean)
        latent = _averaged(weights, (state.variance + _column(RATIOS)) * noise + (state.mean - mean) ** 2)
        known = jnp.maximum(state.seen.sum(), 1)
        middle = jnp.where(state.seen, mean, 0).sum() / known
        between = jnp.where(state.seen, (mean - middle) ** 2, 0).sum() / known
        return Prediction(
            jnp.where(state.seen, mean, middle),
            jnp.where(state.seen, latent, between + latent),
            _averaged(weights, noise),
        )

    def learn(self, state: LevelState, given: Given) -> tuple[LevelState, Array]:
        """One step of every filter; an entry that is seen for the first time begins with its value."""
        observed, weight = given.weights > 0, given.weights
        informative = weight if given.noise is None else given.noise
        first = observed & ~state.seen
        noise, predicted = _noise(state), state.variance + _column(RATIOS)
        error = jnp.where(observed | (informative > 0), given.values - state.mean, 0)
        expected = noise * (predicted + 1)
        squared = jnp.minimum(error**2 / expected, MOST_SQUARED)
        keep = 1 - (1 - MEMORY) * informative
        likelihood = -0.5 * informative * (squared + jnp.log(expected))
        known = (informative > 0) & state.seen
        bounded = huber.bounded(error**2, expected, given.bound, given.usual)
        gain = weight * predicted / (weight * predicted + 1)
        after = LevelState(
            mean=jnp.where(first, given.values, state.mean + gain * error),
            variance=jnp.where(first, 1.0, jnp.minimum((1 - gain) * predicted, WIDEST)),
            squares=jnp.where(known, keep * state.squares + informative * bounded / (predicted + 1), state.squares),
            count=jnp.where(known, keep * state.count + informative, state.count),
            score=jnp.where(known, keep * state.score + likelihood, state.score),
            seen=state.seen | observed,
        )
        mean = _averaged(_weights(after.score), after.mean)
        return after, jnp.where(after.seen, mean, self.predict(after, given).mean)


def older(state: LevelState, steps: Array) -> LevelState:
    """After a gap: the variance of every random walk has grown by what its slices are worth."""
    grown = jnp.clip(state.variance + _column(RATIOS) * steps, 0, WIDEST)
    return replace(state, variance=grown)


def restart(state: LevelState, entries: Array, values: Array) -> LevelState:
    """Begin anew with these values: they have changed for good."""
    return LevelState(
        mean=jnp.where(entries, values, state.mean),
        variance=jnp.where(entries, 1.0, state.variance),
        squares=state.squares,
        count=state.count,
        score=state.score,
        seen=state.seen | entries,
    )


def _weights(scores: Array) -> list[Array]:
    """Softmax of the tempered scores (K, n), filter by filter: compiled for CPUs, `jax.nn.softmax` over so short a
    first axis takes ten times as long."""
    tempered = [TEMPER * score for score in scores]
    likelihoods = [jnp.exp(score - reduce(jnp.maximum, tempered)) for score in tempered]
    total = reduce(jnp.add, likelihoods)
    return [one / total for one in likelihoods]


def _averaged(weights: list[Array], rows: Array) -> Array:
    """Mean of the filters (K, n) → (n,)."""
    mean: Array = reduce(jnp.add, (weight * row for weight, row in zip(weights, rows, strict=True)))
    return mean


def _noise(state: LevelState) -> Array:
    """Noise variance as each filter sees it (K, n), drawn towards that of all entries."""
    own = state.squares / jnp.maximum(state.count, 1e-6)
    # The square of the mean root: entries far noisier than the rest do not decide it. Nor do those that never move.
    count = jnp.where(own > 0, state.count, 0)
    shared = ((count * jnp.sqrt(own)).sum(1) / jnp.maximum(count.sum(1), 1e-6)) ** 2
    shared = jnp.where((state.count > 0).any(), shared, 1.0)[:, None]
    return (state.squares + PRIOR_COUNT * shared) / (state.count + PRIOR_COUNT) + 1e-12


def _column(numbers: np.ndarray) -> Array:
    return jnp.asarray(numbers)[:, None]
