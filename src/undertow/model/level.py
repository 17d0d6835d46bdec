"""The local level: what every entry has of its own, apart from the low rank. A random walk per entry.

    m_ti = m_{t−1,i} + step,   step ~ N(0, q_i),   before the first slice m_i ~ N(0, v)

Given weights w and targets y − x̄ this is a scalar Kalman filter and smoother per entry over the window. What lies
before the window is kept in the filtered state of the last slice that was evicted. So the level holds its value through
gaps and remembers as long as its own walk lets it: the forgetting of the factors does not enter.

The variance of a step differs from entry to entry and decides a lot: one wanders, its neighbour only jitters. So a
bank of filters runs beside, one per ratio ψ of step to noise variance, each scored by how well it has predicted the
entry so far. How common each ratio is, is learned from all entries, with 1/ψ as its prior: by its own predictions
alone an entry needs dozens of slices against that prior, and components take in its place what wanders meanwhile.
Estimating q from the smoothed steps stalls: what is smooth stays smooth.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import (
    BANK_FORGETTING,
    INITIAL_VARIANCE,
    INITIAL_WALK,
    LARGEST_SQUARE,
    NOISE_STRENGTH,
    UNKNOWN,
    WALK_ITERATIONS,
    WALK_PRIOR,
    WALK_RATIOS,
    WALK_TEMPER,
)
from undertow.model.flow import times, where
from undertow.model.platform import on_cpu
from undertow.model.types import FilterBank, Level, Window, over_slice, put, taken, turned


def init(length: int, shape: tuple[int, ...], dtype: jnp.dtype) -> Level:
    """No level yet."""
    zeros, variance = jnp.zeros(shape, dtype), jnp.full(shape, INITIAL_VARIANCE, dtype)
    several = jnp.zeros((len(WALK_RATIOS), *shape), dtype)
    return Level(
        mean=jnp.zeros((length, *shape), dtype),
        variance=jnp.zeros((length, *shape), dtype),
        start_mean=zeros,
        start_variance=variance,
        next_mean=zeros,
        next_variance=variance,
        initial_variance=jnp.asarray(INITIAL_VARIANCE, dtype),
        walk_variance=jnp.full(shape, INITIAL_WALK, dtype),
        bank=FilterBank(several, several + UNKNOWN, several, zeros, several),
    )


def mean_of(level: Level | None, slot: Array | None = None) -> Array | float:
    """m̄ of the window, or of one slice; 0 where there is no level."""
    if level is None:
        return 0.0
    return level.mean if slot is None else taken(level.mean, slot)


def variance_of(level: Level | None, slot: Array | None = None) -> Array | float:
    """Var m of the window, or of one slice; 0 where there is no level."""
    if level is None:
        return 0.0
    return level.variance if slot is None else taken(level.variance, slot)


def coming(level: Level, window: Window) -> Level:
    """The level of the slice after the newest, as the only one: expected where the newest is."""
    first = window.filled == 0
    mean = where(first, level.next_mean, taken(level.mean, window.newest))
    variance = where(first, level.next_variance, taken(level.variance, window.newest)) + level.walk_variance
    return replace(level, mean=mean[None], variance=variance[None])


def arrive(level: Level, window: Window, length: Array | int | None = None) -> Level:
    """A slice was written over the oldest: the start moves on, and the newest is expected where the last one was.

    `length` is W, here and below; by default every slot of the arrays is used.
    """
    slot, length = window.newest, len(level.mean) if length is None else length
    before = replace(window, newest=turned(slot - 1, length), filled=window.filled - 1)
    expected = coming(level, before)
    return replace(
        level,
        mean=put(level.mean, slot, expected.mean[0]),
        variance=put(level.variance, slot, expected.variance[0]),
        start_mean=level.next_mean,
        start_variance=level.next_variance,
    )


def update(level: Level, window: Window, weights: Array, targets: Array, length: Array | int | None = None) -> Level:
    """q(m) for the whole window: filter forward, smooth backward. Weights are precisions (W, I_1, …, I_N)."""
    slots = targets.shape[0]
    order = window.by_age()[::-1]  # oldest first, after the slots that are empty
    written = (jnp.arange(slots) >= slots - window.filled).astype(targets.dtype)
    start = (level.start_mean, level.start_variance)

    def forward(
        before: tuple[Array, Array], now: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        mean, variance = before
        slot, written = now
        predicted = variance + written * level.walk_variance
        gain = predicted * taken(weights, slot)
        posterior = mean + gain / (1 + gain) * (taken(targets, slot) - mean), predicted / (1 + gain)
        return posterior, posterior

    unrolled = 1 if on_cpu() else slots  # of a GPU's loop every turn is started anew
    newest, (means, variances) = lax.scan(forward, start, (order, written), unroll=unrolled)

    def backward(
        later: tuple[Array, Array], now: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        mean, variance, written = now
        predicted = variance + written * level.walk_variance
        back = variance / predicted
        smoothed = mean + back * (later[0] - mean), variance + back**2 * (later[1] - predicted)
        return smoothed, later

    before = jnp.concatenate([level.start_mean[None], means[:-1]])
    variances_before = jnp.concatenate([level.start_variance[None], variances[:-1]])
    first, (smooth_means, smooth_variances) = lax.scan(
        backward, newest, (before, variances_before, written), reverse=True, unroll=unrolled
    )

    # As long as the first slice is in the window: how far from 0 levels are, by the entries that have been seen.
    fresh = window.filled < (slots if length is None else length)
    seen = window.mask.any(axis=0)
    typical = where(seen, first[0] ** 2 + first[1], 0).sum() / jnp.maximum(seen.sum(), 1)
    initial_variance = where(fresh, typical, level.initial_variance)
    start_variance = where(fresh, initial_variance, level.start_variance)
    places, oldest = slots - 1 - window.ages(), slots - window.filled
    return replace(
        level,
        mean=smooth_means[places],
        variance=smooth_variances[places],
        start_variance=start_variance,
        next_mean=where(fresh, level.start_mean, taken(means, oldest)),
        next_variance=where(fresh, start_variance, taken(variances, oldest)),
        initial_variance=initial_variance,
    )


def divergence(level: Level, window: Window) -> Array:
    """KL(q(m) ‖ p(m)) of the window, what the level costs the ELBO, summed over the entries that were seen in it.

    q(m) is a Gaussian chain whose precision matrix has the walk's −1/q beside its diagonal, so that its marginals
    (m̄_t, V_t) say all of it: c_t = Cov(m_{t−1}, m_t) solves c² + q c = V_{t−1} V_t. With P = start variance + q,

        2 KL = (m̄_1 − m̄_0)²/P + V_1/P − 1 − ln(V_1/P)
             + Σ_{t>1} ((m̄_t − m̄_{t−1})² + V_t + V_{t−1} − 2 c_t)/q − 1 − ln(c_t/V_{t−1}).

    The level of an entry that was not seen is its prior and costs nothing. To be taken before `finish` chooses q anew.
    """
    order, slots = window.by_age()[::-1], len(level.mean)  # oldest first, after the slots that are empty
    mean, variance, walk = level.mean[order], level.variance[order], level.walk_variance
    root, half = jnp.sqrt(variance), walk / 2
    middle = root[1:] * root[:-1]
    whole = jnp.sqrt(middle**2 + half**2)  # c = whole − q/2, and nothing is the difference of large numbers
    squares = ((mean[1:] - mean[:-1]) ** 2 + (root[1:] - root[:-1]) ** 2) / walk - half / (middle + whole)
    steps = squares - jnp.log(variance[1:] / (whole + half))
    oldest = slots - window.filled
    mean, expected = taken(mean, oldest), level.start_variance + walk
    ratio = taken(variance, oldest) / expected
    start = (mean - level.start_mean) ** 2 / expected + ratio - 1 - jnp.log(ratio)
    later = (jnp.arange(1, slots) > oldest).reshape(-1, *([1] * walk.ndim))
    both = start + where(later, steps, 0).sum(axis=0)
    total: Array = where(window.mask.any(axis=0), both, 0).sum() / 2
    return total


def finish(level: Level, mask: Array, robustness: Array, target: Array, noise: Array) -> Level:
    """Once per slice, at its end: score the ratios by the newest slice, y − x̄, and choose q anew.

    `robustness` is the fraction of its precision that an entry keeps (an outlier little), `noise` the variance of the
    others.
    """
    bank = level.bank
    ratios = jnp.asarray(WALK_RATIOS, target.dtype).reshape(-1, *([1] * target.ndim))
    known = bank.variance < UNKNOWN / 2
    judged = mask & known
    predicted = bank.variance + ratios
    total = predicted + 1 / jnp.maximum(robustness, 1 / UNKNOWN)
    error = target - bank.mean
    own_noise = (NOISE_STRENGTH * noise + bank.noise_sum) / (NOISE_STRENGTH + bank.noise_count)
    # Bounded: an outlier must not pass for a long step, or the walk grows and takes the next one for granted.
    square = error**2 / (own_noise * total)
    bounded = jnp.minimum(square, LARGEST_SQUARE)
    score = -(jnp.log(own_noise * total) + bounded) / 2
    # Flagged ones count little here: a few in a row would favour a level that follows them.
    weight = where(judged, jnp.sqrt(jnp.minimum(robustness, 1)), 0)
    score = BANK_FORGETTING * bank.score + weight * score
    damping = where(square > bounded, jnp.sqrt(bounded / jnp.maximum(square, LARGEST_SQUARE)), 1)
    gain = where(mask, predicted / total * where(known, damping, 1), 0)
    bank = FilterBank(
        mean=bank.mean + gain * error,
        variance=jnp.minimum(predicted * (1 - gain), UNKNOWN),
        noise_sum=BANK_FORGETTING * bank.noise_sum + weight * bounded * own_noise,
        noise_count=BANK_FORGETTING * bank.noise_count + weight[0],
        score=score,
    )
    chosen = _chosen(score, ratios, bank.noise_count > 0)
    own_noise = (NOISE_STRENGTH * noise + bank.noise_sum) / (NOISE_STRENGTH + bank.noise_count)
    walk_variance = jnp.exp((chosen * jnp.log(ratios * own_noise)).sum(axis=0))
    return replace(level, bank=bank, walk_variance=where(bank.noise_count > 0, walk_variance, level.walk_variance))


def _chosen(score: Array, ratios: Array, seen: Array) -> Array:
    """Weights of the ratios for every entry: ∝ how common each is among all entries × its tempered likelihood."""
    prior = 1 / ratios / (1 / ratios).sum()

    def weights(common: Array) -> Array:
        return jax.nn.softmax(WALK_TEMPER * score + jnp.log(common), axis=0)

    def turn(common: Array) -> Array:
        counts = over_slice(where(seen, weights(common), 0)).reshape(prior.shape)
        return (WALK_PRIOR * prior + counts) / (WALK_PRIOR + seen.sum())

    return weights(times(WALK_ITERATIONS, turn, prior))
