"""Learn a slice as far as it is trusted, and answer.

Between `judging.judge` and this the CP models learn, which are programs of their own (`undertow.model.step`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.programs.program import program
from undertow.tracker import events, expectation, huber, law, neighbours, scales, zeros
from undertow.tracker.core import Core
from undertow.tracker.judging import Verdict
from undertow.tracker.predicting import bounded, combined
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Given
from undertow.tracker.predictors.level import LevelState, older, restart

MOST_GAINED = 2.0
"""Largest |log| of the ratio of errors with and without a fit to the slice that is believed of one slice."""
REFIT_MEMORY = 20
"""Slices over which is averaged what a fit to the slice gains."""
FEW = 3.0
"""Observed entries that are worth as much as the past."""


@register_dataclass
@dataclass(frozen=True)
class Answer:
    """What is given out, (n,) in units of the stream; innovations in standard deviations, NaN where there are none.

    Intervals are around `scaled`, the answer on the scale of the stream: `deviation` there, `least`, which nothing is
    below, and the fractions of clean innovations `below` the edges of `law`.
    """

    mean: Array
    std: Array
    mean_std: Array
    noise: Array
    outliers: Array
    probability: Array
    weights: Array
    innovation: Array
    scaled: Array
    deviation: Array
    least: Array
    below: Array


@program()
def learn(
    core: Core, verdict: Verdict, values: Array, mask: Array, scale: Array, season: Array, from_cp: tuple[Array, ...]
) -> tuple[Core, Answer, Array]:
    """Learn the slice as far as it is trusted, and answer; `season` and `from_cp` are means given the slice.

    Returns:
        The state; the answer; what every predictor says of each entry without having seen it (K, n): of an observed one
        before the slice was learned, of any other as it answers.
    """
    was = registry.LEVEL.predict(core.level, Given(values, verdict.learn, core.last))
    begins = jnp.where(verdict.back, core.events.former, values)
    level_state = restart(core.level, verdict.changed & mask, begins)
    before = registry.LEVEL.predict(level_state, Given(values, verdict.learn, core.last))
    bound, usual = huber.bound(law.rate(core.law)), zeros.usual_square(core.zeros)
    given = Given(values, verdict.learn, before.mean, verdict.noise, bound, usual)
    level, level_mean = registry.LEVEL.learn(level_state, given)
    others = [one.learn(state, given) for one, state in zip(registry.OTHERS, core.others, strict=True)]
    means = jnp.vstack([level_mean, *(mean for _, mean in others), season, *(mean.ravel() for mean in from_cp)])
    means = bounded(jnp.where(jnp.isfinite(means), means, level_mean), before, scale)
    refits = _refit_errors(core, verdict, values, scale, means[len(registry.NAMES) :])
    # Factors that are fitted to the slice, too, answer only where that is no worse than what was judged.
    judged = (refits > 0)[:, None] & (~mask | verdict.held)
    means = jnp.concatenate(
        [
            means[: len(registry.NAMES)],
            jnp.where(judged, verdict.means[len(registry.NAMES) :], means[len(registry.NAMES) :]),
        ]
    )
    share = 1 - jnp.exp(-verdict.learn.sum() / FEW)
    z = share * combined(verdict.weighing.answering, means, scale) + (1 - share) * verdict.weighing.past
    anything = mask.any()
    clean = mask & ~verdict.slice_off
    counts = zeros.news(core.zeros, values)
    after = Core(
        level=level,
        others=tuple(state for state, _ in others),
        gram=verdict.weighing.gram,
        past_gram=verdict.weighing.past_gram,
        paces=verdict.weighing.paces,
        sets=verdict.weighing.sets,
        error=verdict.weighing.error,
        size=verdict.weighing.size,
        calibration=verdict.calibration,
        law=law.learned(core.law, verdict.innovation, counts * (clean & (core.seen > 1))),
        expectation=verdict.expectation,
        refits=refits,
        events=events.learned(
            core.events,
            verdict.probability,
            verdict.innovation,
            values,
            mask,
            events.Found(verdict.changed, verdict.back, verdict.slice_off, verdict.stuck),
            verdict.surprise,
            law.rate(core.law),
            (was.mean, was.variance + was.noise),
        ),
        zeros=zeros.learned(core.zeros, values, clean & ~verdict.stuck),
        last=jnp.where(verdict.slice_off | ~anything, core.last, z),
        seen=core.seen + (anything & ~verdict.slice_off),
        neighbours=core.neighbours,
    )
    chosen = jax.tree.map(lambda new, old: jnp.where(anything, new, old), after, core)
    spread = core.law.spread**2
    noise = jnp.maximum(verdict.own_noise * spread, _left(core, values, z, clean))
    latent = jnp.maximum(verdict.variance - verdict.own_noise, 0) * spread
    if core.neighbours is not None:
        flags = neighbours.Flagged(mask, verdict.probability > 0.5, verdict.held)
        usable = (core.seen > 1) & ~verdict.slice_off
        around, more, factor = neighbours.filled(core.neighbours, z, jnp.sqrt(latent + noise), values, flags, usable)
        z, latent, noise = z + more, latent * factor**2, noise * factor**2
        chosen = replace(chosen, neighbours=around)
    variance = latent + noise
    deviation = jnp.sqrt(variance)
    mean = expectation.mean(verdict.expectation, z, variance, scale)
    flagged = verdict.probability
    added = jnp.where(mask, flagged * (scales.plain(values, scale) - mean), 0)
    known = mask & (core.seen > 1)
    innovation = jnp.where(known, verdict.innovation / core.law.spread, jnp.nan)
    answer = Answer(
        mean=mean,
        std=width(z, deviation, scale),
        mean_std=width(z, jnp.sqrt(latent), scale),
        noise=width(z, jnp.sqrt(noise), scale),
        outliers=added,
        probability=flagged,
        weights=verdict.weighing.answering,
        innovation=innovation,
        scaled=z,
        deviation=deviation,
        least=expectation.least(verdict.expectation, scale),
        below=law.below(core.law),
    )
    # Through slices of nothing, too, levels become less certain.
    return replace(chosen, events=after.events, level=level), answer, jnp.where(mask, verdict.means, means)


def _left(core: Core, values: Array, z: Array, clean: Array) -> Array:
    """Variance of what the answer leaves of the observations, as long as no prediction has been judged; else 0.

    By the mean size, of which a few that are far off make less than of squares.
    """
    size = jnp.where(clean, jnp.abs(values - z), 0).sum() / jnp.maximum(clean.sum(), 1)
    return jnp.where((core.calibration.count > 0).any(), 0, jnp.pi / 2 * size**2)


@program()
def aged(level: LevelState, steps: Array) -> LevelState:
    """Levels after a gap of this many slices more than usual."""
    return older(level, steps)


def _refit_errors(core: Core, verdict: Verdict, values: Array, scale: Array, refits: Array) -> Array:
    """Mean log ratio of errors on held-out entries, of CP answers with and without the slice's own fit (C,)."""
    x, trusted = scales.plain(values, scale), verdict.held & (verdict.probability < 0.5)
    fitted, before = (
        jnp.where(trusted, (scales.plain(said, scale) - x) ** 2, 0).sum(1)
        for said in (refits, verdict.means[len(registry.NAMES) :])
    )
    least = 1e-6 * jnp.where(trusted, x**2, 0).sum() + 1e-30
    ratio = jnp.clip(0.5 * jnp.log((fitted + least) / (before + least)), -MOST_GAINED, MOST_GAINED)
    share = 1 / jnp.clip(core.seen, 1, REFIT_MEMORY)
    return jnp.where(verdict.slice_off | ~trusted.any(), core.refits, core.refits + share * (ratio - core.refits))


def width(z: Array, deviation: Array, scale: Array) -> Array:
    """Half the 95 % interval over 1.96."""
    upper, lower = (scales.plain(z + side * 1.96 * deviation, scale) for side in (1, -1))
    return (upper - lower) / (2 * 1.96)
