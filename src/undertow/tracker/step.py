"""One slice through the tracker: predict, decide what is wrong, learn, answer. Two compiled programs.

Between them the CP models learn, which are programs of their own (`undertow.model.step`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.programs.program import program
from undertow.programs.runtime import MIDDLING
from undertow.tracker import calibration, events, huber, law, scales
from undertow.tracker.combination import CHOICE_MEMORY, FORGETTING, averaged, discounted, simplex_weights
from undertow.tracker.predictors.base import Given, Prediction, Predictor
from undertow.tracker.predictors.covariance import covariances
from undertow.tracker.predictors.cp import LARGE_SLICE, Regression, left_out_of_all
from undertow.tracker.predictors.level import Level, LevelState, older, restart

LEVEL = Level()
OTHERS: tuple[Predictor, ...] = (covariances(),)
"""What predicts beside the level and the CP models; a new predictor is one more line here."""
NAMES = (*LEVEL.names, *(name for one in OTHERS for name in one.names), "season")
"""In the order of their weights; those of the CP models follow."""
SUSPICIOUS = 5.0
"""Standard deviations from its level from which on an observation counts less for the others of its slice."""
FAR = 10.0
"""Standard deviations from which on an outlier says nothing about the usual errors."""
FARTHEST = 4.0
"""Standard deviations from its level beyond which nobody expects an entry on a curved scale, where a linear
extrapolation can explode."""
IMPLAUSIBLE = 0.25
"""Rate of outliers from which on the noise is taken to be underestimated, and what is flagged counts for it as well."""
MISSED_BY_ALL = 6.0
"""Times the usual error of most predictors, beyond which an entry counts less for the weights."""
HELD_OUT, FEWEST_HELD, RAREST_HELD = 16, 16, 64
"""One in 16 observed entries is held out from the CP models; fewer where there are many, so that 16 are left, but one
in 64."""
SCATTER, SCATTER_SLICES = np.uint32(2654435761), np.uint32(40503 << 12)
"""Odd multipliers: Fibonacci hashing of a position, moved on from slice to slice."""
FEWEST_OBSERVED = 8
"""Observed entries from which on some are held out."""
MOST_GAINED = 2.0
"""Largest |log| of the ratio of errors with and without a fit to the slice that is believed of one slice."""
ERROR_MEMORY, REFIT_MEMORY = 8, 20
"""Slices over which the error of the answer is averaged, and what a fit to the slice gains."""
FEW = 3.0
"""Observed entries that are worth as much as the past."""
PAST_PACE = 2
"""Of `FORGETTING`, the pace at which what the past alone says is weighed."""
PAST = 3
"""Predictors of a slice in which nothing is observed: the level, the last answer, and the season."""


@register_dataclass
@dataclass(frozen=True)
class Core:
    """All arrays of a tracker but those of its CP models.

    Attributes:
        level: State of the local levels.
        others: States of `OTHERS`.
        gram: Errors of the predictors (F, K, K), discounted quickly and slowly.
        past_gram: Errors of what the past alone says (F, 3, 3).
        paces: Squared errors of the answer with weights of each kind (F,).
        sets: These weights, after the last slice (F, K).
        error: Mean log of the mean absolute error of the answer, in units of the stream.
        refits: Mean log ratio of the errors of CP models with and without a fit to the slice itself (C,).
        size: Discounted squared size of a slice.
        calibration: Of what the predictors say of their own errors.
        law: Of the innovations.
        events: What lasts.
        last: The last answer (n,).
        seen: Slices that were not empty.
    """

    level: LevelState
    others: tuple[Any, ...]
    gram: Array
    past_gram: Array
    paces: Array
    sets: Array
    error: Array
    refits: Array
    size: Array
    calibration: calibration.Calibration
    law: law.Law
    events: events.Events
    last: Array
    seen: Array


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
        innovation: Standardised.
        surprise: Log root mean square of what the past did not predict.
        weights: Of the predictors (K,), as they answer once they know the slice.
        past_weights: (3,).
        gram: With this slice.
        past_gram: With this slice.
        paces: With this slice.
        sets: With this slice.
        error: With this slice.
        past: What the past alone predicts.
        size: With this slice.
        calibration: With this slice.
        slice_off: Whether the slice as a whole is wrong.
        changed: Entries that have changed for good.
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
    innovation: Array
    surprise: Array
    weights: Array
    past_weights: Array
    gram: Array
    past_gram: Array
    paces: Array
    sets: Array
    error: Array
    past: Array
    size: Array
    calibration: calibration.Calibration
    slice_off: Array
    changed: Array
    stuck: Array


def loss(core: Core, unit: float) -> float:
    """Mean log of the absolute error of the answer lately, on observed entries without themselves."""
    return float(core.error) + math.log(unit)


def init(entries: int, cps: int) -> Core:
    """Nothing seen."""
    size = len(NAMES) + cps
    return Core(
        level=LEVEL.init(entries),
        others=tuple(one.init(entries) for one in OTHERS),
        gram=jnp.stack([jnp.eye(size) * 1e-6] * len(FORGETTING)),
        past_gram=jnp.stack([jnp.eye(PAST) * 1e-6] * len(FORGETTING)),
        paces=jnp.zeros(len(FORGETTING)),
        sets=jnp.ones((len(FORGETTING), size)) / size,
        error=jnp.zeros(()),
        refits=jnp.zeros(cps),
        size=jnp.zeros(()),
        calibration=calibration.init(size, entries),
        law=law.init(),
        events=events.init(entries),
        last=jnp.zeros(entries),
        seen=jnp.zeros((), jnp.int32),
    )


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
    level = LEVEL.predict(core.level, Given(values, weight, core.last))
    away = (values - level.mean) ** 2 / (level.variance + level.noise)
    trusted = weight * jnp.minimum(1, SUSPICIOUS**2 / jnp.maximum(away, 1e-6))
    trusted = jnp.where(core.seen > 2, trusted, weight)
    previous = averaged(core.sets, core.paces, weight.sum())

    def told(_: int, before: tuple[Array, Array, Array, _Told]) -> tuple[Array, Array, Array, _Told]:
        said = _told(core, values, level, season, from_cp, scale, before[0], before[1])
        probability = _outliers(core, values, mask, scale, previous, said)[0]
        clean = weight * (1 - jnp.where(core.seen < 2, 0, probability))
        return clean, clean, probability, said

    # Twice, the second time without what is an outlier by all of them: one that is not seen by a predictor misleads it
    # everywhere.
    nothing = jnp.zeros((core.sets.shape[1], values.size), values.dtype)
    unsaid = _Told(nothing, nothing, nothing, nothing, nothing[:, 0] > 0)
    _, _, probability, said = jax.lax.fori_loop(0, 2, told, (trusted, weight, weight, unsaid))
    means, absent = said.means, said.absent
    x = scales.plain(jnp.where(mask, values, 0), scale)
    size = (x**2).sum() / jnp.maximum(weight.sum(), 1)
    usual = jnp.where(core.size > 0, 0.9 * core.size + 0.1 * size, size)
    norm = jnp.maximum(jnp.maximum(size, 1e-3 * core.size) * jnp.maximum(weight.sum(), 1), 1e-30)
    # Errors count as they do in the units of the data, relative to the size of the slice.
    # What everybody misses by far says nothing about who is better.
    missed = jnp.where(mask, middle(jnp.abs(x - scales.plain(means, scale)), absent), 0)
    typical = (jnp.sqrt(missed).sum() / jnp.maximum(weight.sum(), 1)) ** 2
    informative = jnp.minimum(1, (MISSED_BY_ALL * typical / jnp.maximum(missed, 1e-30)) ** 2)
    importance = weight * (1 - probability) * informative / norm
    errors = jnp.where(mask, x - scales.plain(means, scale), 0)
    gram = discounted(core.gram, errors, importance)
    past = jnp.stack([level.mean, core.last, means[len(NAMES) - 1]])
    past_gram = discounted(core.past_gram, jnp.where(mask, x - scales.plain(past, scale), 0), importance)
    paces = CHOICE_MEMORY * core.paces + ((core.sets @ errors) ** 2 * importance).sum(1)
    # Not squared, and all of them: which are outliers depends on the scale that is to be judged by this.
    distance = jnp.abs(previous @ errors).sum() / jnp.maximum(weight.sum(), 1)
    share = 1 / jnp.clip(core.seen, 1, ERROR_MEMORY)
    error = core.error + share * (jnp.log(distance + 1e-12) - core.error)
    judged = mask.any() & (core.seen > 0)
    gram, past_gram = jnp.where(judged, gram, core.gram), jnp.where(judged, past_gram, core.past_gram)
    paces = jnp.where(judged, paces, core.paces)
    gains = _gains(core.refits)
    # The past's own weights are one more problem of the same kind, in which the others are absent.
    nobody = jnp.ones_like(absent).at[:PAST].set(jnp.zeros(PAST, bool).at[-1].set(absent[len(NAMES) - 1]))
    alone = jnp.zeros_like(gram[0]).at[:PAST, :PAST].set(past_gram[PAST_PACE])
    every = jnp.concatenate([gram, alone[None]]), jnp.stack([absent] * len(gram) + [nobody])
    both = jax.vmap(simplex_weights, (0, 0, None))(*every, jnp.stack([jnp.ones_like(gains), gains]))
    sets, as_they_answer, past_weights = both[:-1, 0], both[:-1, 1], both[-1, 0, :PAST]
    weights, answering = (averaged(one, paces, weight.sum()) for one in (sets, as_they_answer))
    probability, mean, variance = _outliers(core, values, mask, scale, weights, said)
    innovation = (values - mean) / jnp.sqrt(variance)
    variance, own_noise = _answered(answering, said, gains, scale)
    early = core.seen < 2
    probability = jnp.where(early, 0, probability)
    unexpected = (values - past_weights @ past) ** 2 / (level.variance + level.noise)
    surprise = events.distance(core.events, unexpected, mask & (probability <= 0.5))
    found = events.decide(core.events, probability, innovation, values, mask, surprise, law.rate(core.law))
    probability = jnp.where((found.slice_off & mask) | found.stuck, 1, probability)
    withheld = jnp.where(found.accept, 0, probability)
    worth = jnp.where(found.accept | early, 1, law.worth(core.law, innovation))
    learn = weight * jnp.where(withheld > 0.02, 1 - withheld, 1) * worth * ~found.slice_off
    # What is not far off counts even if it is flagged, or flags would make errors look smaller and give more flags.
    counted = jnp.where(jnp.abs(innovation) < FAR, weight * ~found.slice_off, learn)
    news, doubtful = events.news(core.events, values), law.rate(core.law) > IMPLAUSIBLE
    counted, noise = (
        jnp.where(doubtful, weight * ~(found.slice_off | found.stuck), one) * news for one in (counted, learn)
    )
    claims, bound = (values - means, said.claimed), huber.bound(law.rate(core.law))
    calibrated = calibration.learned(core.calibration, *claims, counted * (core.seen > 1), bound)
    held = _held_out(values, mean, mask, core.seen)
    return Verdict(
        mean=mean,
        variance=variance,
        own_noise=own_noise,
        probability=probability,
        learn=learn,
        noise=noise,
        held=held,
        for_cp=mask & (learn > 0.5) & ~held,
        means=means,
        innovation=jnp.where(mask, innovation, 0),
        surprise=surprise,
        weights=answering,
        past_weights=past_weights,
        gram=gram,
        past_gram=past_gram,
        paces=paces,
        sets=sets,
        error=jnp.where(judged, error, core.error),
        past=past_weights @ past,
        size=jnp.where(mask.any(), usual, core.size),
        calibration=calibrated,
        slice_off=found.slice_off,
        changed=found.accept,
        stuck=found.stuck,
    )


@register_dataclass
@dataclass(frozen=True)
class _Told:
    """What all predictors say of every entry (K, n): means, variances and noises as corrected by what they were worth.

    Attributes:
        means: Of the entries.
        variances: Of the entries without noise.
        noises: Variances of the noise.
        claimed: Both variances as the predictors have them.
        absent: Who has nothing to say (K,).
    """

    means: Array
    variances: Array
    noises: Array
    claimed: Array
    absent: Array


def _told(
    core: Core,
    values: Array,
    level: Prediction,
    season: Prediction,
    from_cp: tuple[Regression, ...],
    scale: Array,
    weights: Array,
    for_cp: Array,
) -> _Told:
    """What everybody says where observations have these weights, and others for the CP models."""
    given = Given(values, weights, level.mean)
    others = (one.predict(state, given) for one, state in zip(OTHERS, core.others, strict=True))
    said = (level, *others, season, *left_out_of_all(from_cp, values, for_cp))
    means, variances, noises = (
        jnp.vstack([getattr(one, part) for one in said]) for part in ("mean", "variance", "noise")
    )
    # Who has lost track says what the level says.
    sound = jnp.isfinite(means) & jnp.isfinite(variances) & jnp.isfinite(noises)
    means, variances, noises = (
        jnp.where(sound, made, one)
        for made, one in ((means, level.mean), (variances, level.variance), (noises, level.noise))
    )
    factors = calibration.factors(core.calibration)
    return _Told(
        _bounded(means, level, scale), variances * factors, noises * factors, variances + noises, ~sound.any(1)
    )


def _bounded(means: Array, level: Prediction, scale: Array) -> Array:
    """On a curved scale, within what the entry's own past makes possible."""
    far = jnp.where(scale == scales.LINEAR, jnp.inf, FARTHEST) * jnp.sqrt(level.variance + level.noise)
    return jnp.clip(means, level.mean - far, level.mean + far)


def _gains(refits: Array) -> Array:
    """Error of every predictor as it answers over its error as it was judged (K,): CP models fit the slice as well."""
    return jnp.concatenate([jnp.ones(len(NAMES)), jnp.exp(jnp.minimum(refits, 0))])


def middle(rows: Array, absent: Array) -> Array:
    """The median of each column (K, n) → (n,) over the rows that are not absent (K,).

    By exchanges of neighbouring rows: sorting takes far longer.
    """
    ordered, size = list(jnp.where(absent[:, None], jnp.inf, rows)), len(rows)
    for turn in range(size):
        for low in range(turn % 2, size - 1, 2):
            one, other = ordered[low], ordered[low + 1]
            ordered[low], ordered[low + 1] = jnp.minimum(one, other), jnp.maximum(one, other)
    sorted_rows, present = jnp.stack(ordered), size - absent.sum()
    median: Array = (sorted_rows[(present - 1) // 2] + sorted_rows[present // 2]) / 2
    return median


def _held_out(values: Array, expected: Array, mask: Array, slices: Array) -> Array:
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


def _outliers(
    core: Core, values: Array, mask: Array, scale: Array, weights: Array, said: _Told
) -> tuple[Array, Array, Array]:
    """Probability of outliers, mean and variance of the combination."""
    mean = _combined(weights, said.means, scale)
    variance = weights @ (said.variances + said.noises + (said.means - mean) ** 2)
    probability = law.outlier_probability(core.law, (values - mean) / jnp.sqrt(variance))
    return jnp.where(mask, probability, 0), mean, variance


def _answered(weights: Array, said: _Told, gains: Array, scale: Array) -> tuple[Array, Array]:
    """Variance of an observation around the answer, and its part that is noise; predictors err less once they know the
    slice."""
    mean, better = _combined(weights, said.means, scale), (gains**2)[:, None]
    noise = weights @ (said.noises * better)
    return weights @ (said.variances * better + (said.means - mean) ** 2) + noise, noise


def _combined(weights: Array, means: Array, scale: Array) -> Array:
    """Averaged in the unit of the data, as errors are weighed; on the scale of the stream."""
    return scales.scaled(weights @ scales.plain(means, scale), scale)


@register_dataclass
@dataclass(frozen=True)
class Answer:
    """What is given out, (n,) in units of the stream; innovations in standard deviations, NaN where there are none."""

    mean: Array
    std: Array
    mean_std: Array
    noise: Array
    outliers: Array
    probability: Array
    weights: Array
    innovation: Array
    scaled: Array


@program()
def learn(
    core: Core, verdict: Verdict, values: Array, mask: Array, scale: Array, season: Array, from_cp: tuple[Array, ...]
) -> tuple[Core, Answer, Array]:
    """Learn the slice as far as it is trusted, and answer; `season` and `from_cp` are means given the slice.

    Returns:
        The state; the answer; what every predictor says of each entry without having seen it (K, n): of an observed one
        before the slice was learned, of any other as it answers.
    """
    level_state = restart(core.level, verdict.changed & mask, values)
    before = LEVEL.predict(level_state, Given(values, verdict.learn, core.last))
    given = Given(values, verdict.learn, before.mean, verdict.noise, huber.bound(law.rate(core.law)))
    level, level_mean = LEVEL.learn(level_state, given)
    others = [one.learn(state, given) for one, state in zip(OTHERS, core.others, strict=True)]
    means = jnp.vstack([level_mean, *(mean for _, mean in others), season, *(mean.ravel() for mean in from_cp)])
    means = _bounded(jnp.where(jnp.isfinite(means), means, level_mean), before, scale)
    refits = _refit_errors(core, verdict, values, scale, means[len(NAMES) :])
    # Factors that are fitted to the slice, too, answer only where that is no worse than what was judged.
    judged = (refits > 0)[:, None] & (~mask | verdict.held)
    means = jnp.concatenate([means[: len(NAMES)], jnp.where(judged, verdict.means[len(NAMES) :], means[len(NAMES) :])])
    trust = 1 - jnp.exp(-verdict.learn.sum() / FEW)
    z = trust * _combined(verdict.weights, means, scale) + (1 - trust) * verdict.past
    anything = mask.any()
    clean = mask & ~verdict.slice_off
    after = Core(
        level=level,
        others=tuple(state for state, _ in others),
        gram=verdict.gram,
        past_gram=verdict.past_gram,
        paces=verdict.paces,
        sets=verdict.sets,
        error=verdict.error,
        size=verdict.size,
        calibration=verdict.calibration,
        law=law.learned(core.law, verdict.innovation, clean & (core.seen > 1)),
        refits=refits,
        events=events.learned(
            core.events,
            verdict.probability,
            verdict.innovation,
            values,
            mask,
            events.Found(verdict.changed, verdict.slice_off, verdict.stuck),
            verdict.surprise,
            law.rate(core.law),
        ),
        last=jnp.where(verdict.slice_off | ~anything, core.last, z),
        seen=core.seen + (anything & ~verdict.slice_off),
    )
    chosen = jax.tree.map(lambda new, old: jnp.where(anything, new, old), after, core)
    spread = core.law.spread
    variance = verdict.variance * spread**2
    mean = scales.plain(z, scale)
    std = width(z, jnp.sqrt(variance), scale)
    noise = width(z, jnp.sqrt(verdict.own_noise) * spread, scale)
    own = width(z, jnp.sqrt(jnp.maximum(verdict.variance - verdict.own_noise, 0)) * spread, scale)
    flagged = verdict.probability
    added = jnp.where(mask, flagged * (scales.plain(values, scale) - mean), 0)
    known = mask & (core.seen > 1)
    innovation = jnp.where(known, verdict.innovation / spread, jnp.nan)
    answer = Answer(mean, std, own, noise, added, flagged, verdict.weights, innovation, z)
    # Through slices of nothing, too, levels become less certain.
    return replace(chosen, events=after.events, level=level), answer, jnp.where(mask, verdict.means, means)


@program()
def aged(level: LevelState, steps: Array) -> LevelState:
    """Levels after a gap of this many slices more than usual."""
    return older(level, steps)


def _refit_errors(core: Core, verdict: Verdict, values: Array, scale: Array, refits: Array) -> Array:
    """Mean log ratio of errors on held-out entries, of CP answers with and without the slice's own fit (C,)."""
    x, trusted = scales.plain(values, scale), verdict.held & (verdict.probability < 0.5)
    fitted, before = (
        jnp.where(trusted, (scales.plain(said, scale) - x) ** 2, 0).sum(1)
        for said in (refits, verdict.means[len(NAMES) :])
    )
    least = 1e-6 * jnp.where(trusted, x**2, 0).sum() + 1e-30
    ratio = jnp.clip(0.5 * jnp.log((fitted + least) / (before + least)), -MOST_GAINED, MOST_GAINED)
    share = 1 / jnp.clip(core.seen, 1, REFIT_MEMORY)
    return jnp.where(verdict.slice_off | ~trusted.any(), core.refits, core.refits + share * (ratio - core.refits))


def width(z: Array, deviation: Array, scale: Array) -> Array:
    """Half the 95 % interval over 1.96."""
    upper, lower = (scales.plain(z + side * 1.96 * deviation, scale) for side in (1, -1))
    return (upper - lower) / (2 * 1.96)
