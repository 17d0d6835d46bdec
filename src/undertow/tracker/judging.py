"""A slice before it is learned: predicted, and judged entry by entry. Nothing is learned here."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.programs.program import program
from undertow.programs.runtime import MIDDLING
from undertow.tracker import calibration, events, expectation, huber, law, zeros
from undertow.tracker.combination import averaged
from undertow.tracker.core import Core
from undertow.tracker.holding_out import held_out
from undertow.tracker.predicting import Said, answered, outliers, said_by_all
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Given, Prediction
from undertow.tracker.predictors.cp import Regression
from undertow.tracker.weighing import Weighing, weighed

SUSPICIOUS = 5.0
"""Standard deviations from its level from which on an observation counts less for the others of its slice."""
FAR = 10.0
"""Standard deviations from which on an outlier says nothing about the usual errors."""
IMPLAUSIBLE = 0.25
"""Rate of outliers from which on the noise is taken to be underestimated, and what is flagged counts for it as well."""
TIMES_USUAL = 3.0
"""Times the rate of outliers of all entries, beyond which an entry that is flagged so often is like that and not wrong:
in counts that are mostly zero the busy entries look wrong at first."""


@register_dataclass
@dataclass(frozen=True)
class Verdict:
    """A slice before it is learned. Arrays are (n,) on the scale of the stream.

    Attributes:
        mean: Combined prediction, of an observed entry without itself.
        variance: Of an observation around the answer, not yet calibrated.
        own_noise: Its part that is noise.
        probability: That an observed entry is an outlier.
        learn: Weight of every entry for the learners; 0 where nothing was observed or where it is withheld.
        noise: The same for what is learned of the noise.
        held: Entries that the CP models do not learn from, to see how good their answer is.
        for_cp: Entries that they do learn from.
        means: What every predictor says (K, n); the CP models, which come last, with their factors as they were.
        weighing: Weights, and the errors that they come from.
        innovation: Standardised.
        surprise: Log root mean square of what the past did not predict.
        calibration: With this slice.
        expectation: With this slice.
        slice_off: Whether the slice as a whole is wrong.
        changed: Entries that have changed for good.
        back: Of these, those that are back at the level before.
        stuck: Entries that were off and have repeated the same number since.
    """

    mean: Array
    variance: Array
    own_noise: Array
    probability: Array
    learn: Array
    noise: Array
    held: Array
    for_cp: Array
    means: Array
    weighing: Weighing
    innovation: Array
    surprise: Array
    calibration: calibration.Calibration
    expectation: expectation.Expectation
    slice_off: Array
    changed: Array
    back: Array
    stuck: Array


@program(small=MIDDLING)
def judge(
    core: Core, values: Array, mask: Array, scale: Array, season: Prediction, from_cp: tuple[Regression, ...]
) -> Verdict:
    """Predict every entry and decide which observations are wrong; nothing is learned.

    Args:
        core: Before the slice.
        values: On the scale of the stream, 0 where nothing is observed (n,).
        mask: True where observed (n,).
        scale: Its number.
        season: What earlier cycles say (n,); NaN where there are none.
        from_cp: The slice as the CP models have it.
    """
    weight = mask.astype(values.dtype)
    level = registry.LEVEL.predict(core.level, Given(values, weight, core.last))
    usual = zeros.usual_square(core.zeros)
    expected_square = jnp.maximum(level.variance + level.noise, usual)
    away = (values - level.mean) ** 2 / expected_square
    trusted = weight * jnp.minimum(1, SUSPICIOUS**2 / jnp.maximum(away, 1e-6))
    trusted = jnp.where(core.seen > 2, trusted, weight)
    previous = averaged(core.sets, core.paces, weight.sum())

    def cleaner(_: int, before: tuple[Array, Array, Array, Said]) -> tuple[Array, Array, Array, Said]:
        said = said_by_all(core, values, level, season, from_cp, scale, before[0], before[1])
        probability = outliers(core, values, mask, scale, previous, said, usual)[0]
        clean = weight * (1 - jnp.where(core.seen < 2, 0, probability))
        return clean, clean, probability, said

    # Twice, the second time without what is an outlier by all of them: one that is not seen by a predictor misleads it
    # everywhere.
    nothing = jnp.zeros((core.sets.shape[1], values.size), values.dtype)
    unsaid = Said(nothing, nothing, nothing, nothing, nothing[:, 0] > 0)
    _, _, probability, said = jax.lax.fori_loop(0, 2, cleaner, (trusted, weight, weight, unsaid))
    rate = law.rate(core.law)
    often = core.events.flagged_share > jnp.maximum(IMPLAUSIBLE, TIMES_USUAL * rate)
    often &= core.events.after == 0  # else it was asked for when a change is believed
    doubtful = (rate > IMPLAUSIBLE) | often
    counts = jnp.where(often, 1, 1 - probability)
    weighing = weighed(core, values, mask, scale, level.mean, said, counts, previous, zeros.news(core.zeros, values))
    probability, mean, variance = outliers(core, values, mask, scale, weighing.weights, said, usual)
    innovation = (values - mean) / jnp.sqrt(jnp.maximum(variance, usual))
    # Relative to the size of earlier slices: this one is large where its noise is, which must not count less for that.
    relative = jnp.where(core.size > 0, jax.lax.rsqrt(jnp.maximum(core.size, 1e-30)), 0)
    clean = jnp.where(weighing.judged, weight * (1 - probability) * relative, 0)
    expected = expectation.learned(core.expectation, values, mean, variance * core.law.spread**2, scale, clean)
    variance, own_noise = answered(weighing.answering, said, weighing.gains, scale)
    early = core.seen < 2
    probability = jnp.where(early, 0, probability)
    unexpected = (values - weighing.past) ** 2 / expected_square
    surprise = events.distance(core.events, unexpected, mask & (probability <= 0.5))
    found = events.decide(core.events, probability, innovation, values, mask, surprise, law.rate(core.law))
    probability = jnp.where((found.slice_off & mask) | found.stuck, 1, jnp.where(found.back, 0, probability))
    withheld = jnp.where(found.accept | often, 0, probability)
    worth = jnp.where(found.accept | early, 1, law.worth(core.law, innovation))
    learn = weight * jnp.where(withheld > 0.02, 1 - withheld, 1) * worth * ~found.slice_off
    # What is not far off counts even if it is flagged, or flags would make errors look smaller and give more flags.
    counted = jnp.where(jnp.abs(innovation) < FAR, weight * ~found.slice_off, learn)
    news = events.news(core.events, values)
    counted, noise = (
        jnp.where(doubtful, weight * ~(found.slice_off | found.stuck), one) * news for one in (counted, learn)
    )
    claims, bound = (values - said.means, said.claimed), huber.bound(law.rate(core.law))
    calibrated = calibration.learned(core.calibration, *claims, counted * (core.seen > 1), bound, usual)
    held = held_out(values, mean, mask, core.seen)
    return Verdict(
        mean=mean,
        variance=variance,
        own_noise=own_noise,
        probability=probability,
        learn=learn,
        noise=noise,
        held=held,
        for_cp=mask & (learn > 0.5) & ~held,
        means=said.means,
        weighing=weighing,
        innovation=jnp.where(mask, innovation, 0),
        surprise=surprise,
        calibration=calibrated,
        expectation=expected,
        slice_off=found.slice_off,
        changed=found.accept,
        back=found.back,
        stuck=found.stuck,
    )
