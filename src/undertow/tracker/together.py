"""Trackers that are apart, stepped together: batch by batch, and each goes on with a state of its own.

A batch holds states for one slice only: they are copied into common arrays, the programs of `batch` run over these, and
what comes out is copied back, which is a tenth of the time. So there is nothing to join or to leave; whoever has a
slice takes part. A stream gets what it would have got alone, to rounding. On two CPU cores a 12×12 slice takes 16 ms of
processor time alone, and some 7 ms in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.engine import batching
from undertow.engine.capacity import separable
from undertow.inputs.dense import Slice
from undertow.tracker import ahead_together, batch, events, frame, season_together, tracking, trials
from undertow.tracker.batch import Arrays
from undertow.tracker.frame import Frame, usual_slices
from undertow.tracker.growing import grown
from undertow.tracker.output import TrackerOutput
from undertow.tracker.predictors.cp import CP
from undertow.tracker.tracking import Tracking

BATCH = 64
"""States in a batch: one size, so that little is compiled; what is not filled is computed in vain."""
ALONE = 2
"""Frames that a single tracker tries."""
FEWEST = 12
"""Slices from which on that is quicker than one after the other."""
LARGEST_SLICE = 1024
"""Entries of a slice up to which streams are stepped together: larger ones fill the caches alone."""

Learned = tuple[Tracking, TrackerOutput]


@dataclass(frozen=True)
class _Ready:
    """A slice whose frame is known, since when the stream repeats itself, and the usual steps from the slice before."""

    state: Tracking
    given: Slice
    repeating_since: int | None
    steps: float = 1.0


def update(states: Sequence[Tracking], slices: Sequence[Slice], times: Sequence[Any]) -> list[Learned]:
    """The next slice of every stream; arrays of CP models are used up.

    Args:
        states: Of streams of one shape, each at most once.
        slices: One for each.
        times: Of the slices, each later than that of the slice before; None where there is none.
    """
    found: dict[int, Learned] = {}
    ready: dict[int, _Ready] = {}
    with tracking.one_at_a_time:
        for number, (before, given, time) in enumerate(zip(states, slices, times, strict=True)):
            state, verdict, steps = tracking.noted(tracking.caught_up(before), given, time)
            if verdict.frozen:
                found[number] = tracking.advance(state, given, verdict, steps)
            else:
                state = state if steps == 1 else tracking.after_gap(state, steps)
                ready[number] = _Ready(state, given, int(verdict.since) if verdict.repeated else None, steps)
        numbers = list(ready)
        found |= zip(numbers, _batches(_framed(list(ready.values()))), strict=True)
    return [found[number] for number in range(len(states))]


def _batches(ready: Sequence[_Ready]) -> list[Learned]:
    """Those whose arrays have the same shapes together."""
    found: dict[int, Learned] = {}
    alike: dict[Any, list[int]] = {}
    fitted = [replace(one, state=_fitting(one.state)) for one in ready]
    for number, one in enumerate(fitted):
        key = tuple((model.state.config, model.state.slots) for model in one.state.cps)
        alike.setdefault(key, []).append(number)
    for numbers in alike.values():
        for first in range(0, len(numbers), BATCH):
            some = numbers[first : first + BATCH]
            found |= zip(some, _learned([fitted[number] for number in some]), strict=True)
    return [found[number] for number in range(len(ready))]


def _framed(ready: Sequence[_Ready]) -> list[_Ready]:
    """`tracking.framed` for all; frames that are to be tried are tried together."""
    made, asked, again = list(ready), dict[int, tuple[Frame, ...]](), set[int]()
    for number, one in enumerate(ready):
        if one.given.mask.any():
            state = tracking.recalled(one.state, one.given)
            made[number] = replace(one, state=state)
            frames = tracking.next_frames(state.frame, state.recent, state.used)
            if state.frame and tracking.learned_nonsense(state.frame, state.recent, state.used):
                again.add(number)
                asked[number] = frames or (state.frame,)
            elif frames not in ((), (state.frame,)):
                asked[number] = frames
    chosen = {number: made[number].state for number in asked}
    best = _best(asked, {number: usual_slices(state.recent[:-1]) for number, state in chosen.items()})
    changed = [number for number, state in chosen.items() if number in again or best[number] != state.frame]
    replayed = _replayed([replace(chosen[number], frame=best[number]) for number in changed])
    for number, state in zip(changed, replayed, strict=True):
        made[number] = replace(made[number], state=tracking.the_better(chosen[number], state))
    return made


def _best(asked: dict[int, tuple[Frame, ...]], past: dict[int, list[Slice]]) -> dict[int, Frame]:
    """As `tracking.tried` chooses."""
    several = {number: frames for number, frames in asked.items() if len(frames) > 1 and past[number]}
    tried = [(one, past[number]) for number, frames in several.items() for one in frames]
    losses = iter(trials.losses(tried, BATCH if len(tried) >= FEWEST else ALONE) if tried else ())
    best = {number: frames[0] for number, frames in asked.items()}
    return best | {number: trials.best_of(frames, [next(losses) for _ in frames]) for number, frames in several.items()}


def _replayed(states: Sequence[Tracking]) -> list[Tracking]:
    """`tracking.replayed` for all, slice by slice."""
    if len(states) < FEWEST:
        return [tracking.replayed(state) for state in states]
    blank = tracking.start(states[0].shape)
    made = [tracking.anew(blank, state) for state in states]
    past = [usual_slices(state.recent[:-1]) for state in states]
    for position in range(max(map(len, past))):
        some = [number for number, slices in enumerate(past) if len(slices) > position]
        learned = _batches([_Ready(made[number], past[number][position], None) for number in some])
        for number, (state, _) in zip(some, learned, strict=True):
            made[number] = state
    return [tracking.expecting(state) for state in made]


def _fitting(state: Tracking) -> Tracking:
    return replace(state, cps=tuple(model.fitting() for model in grown(state.cps, state.core)))


def _learned(ready: Sequence[_Ready]) -> list[Learned]:
    states, shape = [one.state for one in ready], ready[0].state.shape
    count, entries = len(ready), math.prod(shape)
    frames = [state.frame or Frame() for state in states]
    common = frame.stacked(frames, len(shape))
    given = Slice(np.stack([one.given.values for one in ready]), np.stack([one.given.mask for one in ready]))
    relative, mask, beyond = trials.usable(common, given)
    flat, observed, scale = (
        _filled(np.asarray(part), count)
        for part in (relative.reshape(count, -1), mask.reshape(count, -1), np.reshape(common.scale, -1))
    )
    framed = _filled(np.array([state.frame is not None for state in states]), count)
    steps = _filled(np.array([one.steps for one in ready], np.float32), count)
    before, settings = _arrays(states), tuple(model.state.settings for model in states[0].cps)
    followed = [state.season for state in states]
    expected = season_together.predicted(followed, entries, BATCH)
    judged = batch.judge_all(before, flat, observed, scale, settings, expected, steps)
    learning = framed & observed.any(axis=1)
    values, use = (part.reshape(-1, *shape) for part in (judged.values, judged.use))
    pairs = [
        batching.advance_all(core, values, use, learning, own)
        for core, own in zip(before.models, settings, strict=True)
    ]
    models, reports = (tuple(part) for part in zip(*pairs, strict=True))
    fitted, seasonal = season_together.fitted(
        followed, np.asarray(judged.values), np.asarray(judged.verdict.learn), entries, BATCH
    )
    here = _filled(np.ones(count, np.bool_), count)
    after, answer, found, every = batch.learn_all(
        before, models, reports, judged, observed, scale, learning, here, seasonal
    )
    kept, forecasts = ahead_together.remembered(
        [state.ahead for state in states],
        fitted,
        np.asarray(before.core.law.spread),
        judged,
        observed,
        answer,
        after,
        scale,
        BATCH,
    )
    used = np.asarray(judged.use).sum(axis=1)
    arrays, reported, said = jax.device_get((after, (answer, found), every))
    result = []
    for number, one in enumerate(ready):
        state = _after(one.state, number, arrays, bool(learning[number]), entries - int(used[number]))
        state = replace(state, season=kept[number], ahead=forecasts[number])
        result.append((state, _output(one, number, reported, said[number], mask[number], beyond[number])))
    return result


def _arrays(states: Sequence[Tracking]) -> Arrays:
    """States one after the other, with the last one again where there are too few."""
    padded = [*states, *[states[-1]] * (BATCH - len(states))]
    each = [
        Arrays(state.core, tuple(model.state.core for model in state.cps), _ranks(state))  # type: ignore[arg-type]
        for state in padded
    ]
    leaves, tree = zip(*(jax.tree.flatten(one) for one in each), strict=True)
    stacked: Arrays = jax.tree.unflatten(
        tree[0], [np.stack([np.asarray(part) for part in parts]) for parts in zip(*leaves, strict=True)]
    )
    return stacked


def _ranks(state: Tracking) -> NDArray[np.int32]:
    return np.array([int(model.rank) for model in state.cps], np.int32)


def _filled(part: NDArray[Any], count: int) -> NDArray[Any]:
    """The same for a whole batch, 0 beyond the last."""
    whole = np.zeros((BATCH, *part.shape[1:]), part.dtype)
    whole[:count] = part
    return whole


def _after(state: Tracking, number: int, arrays: Arrays, learned: bool, unused: int) -> Tracking:
    """One of the streams, in memory of its own: the batch need not stay because one of them does."""
    own: Arrays = jax.tree.map(lambda leaf: leaf[number].copy(), arrays)
    cps = []
    for model, core, rank in zip(state.cps, own.models, own.ranks, strict=True):
        before = model.state
        missing = before.missing
        if learned and separable(before.config):
            missing = (*missing, unused)[-before.config.window :]
        made = replace(before, steps=before.steps + learned, core=core, missing=missing)
        cps.append(CP(made, int(rank)))
    return replace(state, core=own.core, cps=tuple(cps))


def _output(one: _Ready, number: int, reported: Any, said: Any, mask: Any, beyond: Any) -> TrackerOutput:
    answer, found = jax.tree.map(lambda leaf: leaf[number], reported)
    state, given = one.state, one.given
    used_frame = state.frame or Frame()
    flagged = answer.probability.reshape(state.shape) > 0.5
    output = TrackerOutput(
        answer=answer,
        frame=used_frame,
        shape=state.shape,
        low_rank_part=found.low_rank,
        components=found.rank,
        found=events.named(
            flagged, bool(found.slice_off), found.changed, found.dead, mask, found.lasting, state.seen - 1
        ),
        noticed=tracking.noticed(not given.mask.any(), beyond.any(), np.any(given.filled)).value,
        dtype=given.values.dtype,
        config=tracking.settings(used_frame),
        asked=state.core.events.after,
        ranks=found.ranks,
        given=given,
        said=said,
        beyond=(beyond, given.values) if beyond.any() else None,
    )
    return output if one.repeating_since is None else output.repeated(one.repeating_since)
