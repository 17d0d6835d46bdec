"""One slice of one stream through its programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.inputs.dense import Slice
from undertow.programs.program import program
from undertow.programs.runtime import MIDDLING
from undertow.tracker import events, phases, trials
from undertow.tracker import season as seasons
from undertow.tracker.answering import Answer
from undertow.tracker.core import Core
from undertow.tracker.frame import Frame
from undertow.tracker.growing import grown
from undertow.tracker.happened import BEHIND, can_wait, happened, is_kept
from undertow.tracker.judging import Verdict
from undertow.tracker.novelty import newest
from undertow.tracker.output import TrackerOutput, noticed, settings, summed_up
from undertow.tracker.phases import Found
from undertow.tracker.predictors import registry
from undertow.tracker.state import Tracking, caught_up

Learned = tuple[Tracking, TrackerOutput]


@dataclass(frozen=True)
class Ready:
    """A slice that can be learned.

    Attributes:
        state: Before it, in its frame.
        given: The slice.
        repeating_since: The first of the slices that are all equal to it; −1 where they are not.
        steps: The usual steps from the slice before.
    """

    state: Tracking
    given: Slice
    repeating_since: int = -1
    steps: float = 1.0


def learned(ready: Ready, learning: bool = True) -> Learned:
    """After the slice; `learning` says whether CP models learn it, if they can."""
    state, given = ready.state, ready.given
    frame, shape = state.frame or Frame(), state.shape
    values, mask, scale, beyond = _on_device(frame, given)
    observed = bool(given.mask.any() if beyond is None else (given.mask & ~beyond).any())
    said = tuple(model.predict(values, mask, ready.steps) for model in state.cps)
    expected = seasons.predict(state.season, mask.size)
    judged = _judged(state.core, values, mask, scale, expected, said, shape)
    verdict = judged.verdict
    if state.used == 1:  # the CP models are still being compiled
        nothing = np.zeros(mask.size, np.float32)
        fits = tuple(nothing.reshape(shape) for _ in said)
        _answered.prepare(state.core, verdict, values, mask, scale, nothing, fits, _ranks(state), _active(state))
    if learning and observed and frame is state.frame:
        pairs = [model.learn(judged.values, judged.use, judged.unused) for model in grown(state.cps, state.core)]
        after, means = replace(state, cps=tuple(model for model, _ in pairs)), tuple(one.low_rank for _, one in pairs)
    else:  # only here: taken apart operation by operation
        after, means = state, tuple(verdict.means[len(registry.NAMES) :])
    season, seasonal = seasons.fitted(state.season, values, verdict.learn, mask.size)
    core, answer, found, every, pictures = _answered(
        state.core, verdict, values, mask, scale, seasonal, means, _ranks(after), _active(after)
    )
    after = replace(after, core=core)
    if season is not None:
        after = replace(after, season=season)
        after = _with_past(after, answer.scaled, verdict, values, mask, frame.scale, state.core.law.spread)
    return after, reported(ready, answer, found, every, beyond, pictures)


def _with_past(
    after: Tracking, completed: Array, verdict: Verdict, values: Array, mask: Array, scale: int, spread: Array
) -> Tracking:
    """Season and forecasts take the slice in, or it waits for that."""
    assert after.season is not None
    if not is_kept(after.season):
        return replace(after, season=seasons.with_slice(after.season, None))
    waits = can_wait(after.season, len(after.waiting))
    after = after if waits else caught_up(after)
    assert after.season is not None
    model = after.cps[0].state.core
    waiting = len(after.waiting)
    new = happened(after.season, waiting, after.core, completed, model, verdict, values, mask, scale, spread)
    return caught_up(replace(after, waiting=(*after.waiting, new)), BEHIND if waits else 0)


def reported(
    ready: Ready, answer: Answer, found: Found, said: Any, beyond: Any, pictures: tuple[Any, tuple[Any, ...]] | None
) -> TrackerOutput:
    """What the user gets of a slice.

    Args:
        ready: The slice.
        answer: About it.
        found: What else is reported.
        said: What every predictor said (K, n).
        beyond: Which entries are too large to compute with; None where none is.
        pictures: What is kept of the slice for pictures, and which slots of the CP models are in use; None where
            that is to be found out from what the host has.
    """
    state, given = ready.state, ready.given
    frame = state.frame or Frame()
    summary, active = pictures or (None, ())
    output = TrackerOutput(
        answer=answer,
        frame=frame,
        shape=state.shape,
        low_rank_part=found.low_rank,
        components=found.rank,
        found=partial(_named, answer.probability, found, given.mask, beyond, state.seen - 1),
        noticed=noticed(not given.mask.any(), beyond is not None, np.any(given.filled)).value,
        dtype=given.values.dtype,
        config=settings(frame),
        ranks=found.ranks,
        given=given,
        said=said,
        beyond=None if beyond is None else (beyond, given.values),
        asked=state.core.events.after,
        unlike=newest(state.novelty),
        summary=summary,
        active=active,
    )
    return output if ready.repeating_since < 0 else output.repeated(ready.repeating_since)


def _named(probability: Any, found: Found, mask: Any, beyond: Any, now: int) -> events.Named:
    """What is wrong beyond single entries, by probability, whether the slice is off, what has changed and is dead."""
    mask = mask if beyond is None else mask & ~beyond
    wrong = probability, found.slice_off, found.changed, found.dead
    probability, off, changed, dead = jax.device_get(wrong)
    return events.named(probability.reshape(mask.shape) > 0.5, bool(off), changed, dead, mask, found.lasting, now)


def _on_device(frame: Frame, given: Slice) -> tuple[Array, Array, Array, np.ndarray | None]:
    """What is computed with, as `_prepared` gives it; which entries are too large for that, None where none is."""
    values, mask, beyond = given.values, given.mask, None
    far = max(abs(float(values.max()) - frame.origin), abs(float(values.min()) - frame.origin))
    if not far < 0.99 * trials.LARGEST * frame.unit:
        values, mask, beyond = trials.usable(frame, given)
        frame, beyond = Frame(scale=frame.scale), beyond if beyond.any() else None
    with jax.enable_x64(True):  # the difference from the origin is taken in double precision
        return *_prepared(values, mask, np.float64(frame.origin), np.float64(frame.unit), np.int32(frame.scale)), beyond


@program()
def _prepared(values: Array, mask: Array, origin: Array, unit: Array, scale: Array) -> tuple[Array, Array, Array]:
    """A slice as `Frame.relative` has it, on the scale of the stream, 0 where nothing is observed; mask; scale."""
    mask = mask.ravel()
    relative = ((values.ravel().astype(jnp.float64) - origin) / unit).astype(jnp.float32)
    return phases.on_scale(jnp.where(mask, relative, 0), mask, scale), mask, scale


_judged = program(static=["shape"], small=MIDDLING)(phases.judged)


@program(small=MIDDLING)
def _answered(
    core: Core,
    verdict: Verdict,
    values: Array,
    mask: Array,
    scale: Array,
    season: Array,
    means: tuple[Array, ...],
    ranks: tuple[Array, ...],
    active: tuple[Array, ...],
) -> tuple[Core, Answer, Found, Array, tuple[Any, tuple[Array, ...]]]:
    """`phases.answered`; what is kept of the slice for pictures, and which slots of each CP model are in use, in memory
    of its own, since learning donates the model's."""
    core, answer, found, said = phases.answered(
        core, verdict, values, mask, scale, season, means, jnp.stack(ranks).astype(jnp.int32)
    )
    summary = summed_up(answer, found.rank, jnp)
    return core, answer, found, said, (summary, tuple(one | False for one in active))


def _ranks(state: Tracking) -> tuple[Any, ...]:
    """Active components of the CP models."""
    return tuple(model.rank for model in state.cps)


def _active(state: Tracking) -> tuple[Array, ...]:
    """Which slots of each CP model are in use."""
    return tuple(model.state.core.factors.active for model in state.cps)
