"""Streams in the frames that suit their recent slices; where a frame changes, these are learned anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import Array

from undertow.inputs.dense import Slice
from undertow.programs.program import program
from undertow.tracker import events, law, learning_together, recent, scales, trials
from undertow.tracker import season as seasons
from undertow.tracker.ahead import Ahead
from undertow.tracker.frame import Frame, usual_slices
from undertow.tracker.learning import Ready
from undertow.tracker.recent import RECENT
from undertow.tracker.season import Season
from undertow.tracker.state import Tracking, anew, caught_up, start

JUDGED = 2
"""Slices of which at least one is predicted from another."""
ALONE = 2
"""Frames that a single stream tries."""


@dataclass(frozen=True)
class Review:
    """Frames to be tried on the recent slices; whether these are to be learned anew even if the frame stays."""

    frames: tuple[Frame, ...]
    again: bool


def framed(state: Tracking, given: Slice) -> tuple[Tracking, Review | None]:
    """With the slice among the recent ones, and what these ask for."""
    if not given.mask.any():
        return state, None
    kept, used = recent.remembered(state.recent, given, state.used)
    begun = recent.was_constant(kept)
    if begun:
        kept, used = kept[-2:], 2
    return replace(state, recent=kept, used=used), review(state.frame, kept, used, begun)


def review(current: Frame | None, kept: tuple[Slice, ...], used: int, begun: bool = False) -> Review | None:
    """What the recent slices of a stream ask for; None where nothing is to be done. With `begun` they begin anew."""
    frames = recent.next_frames(current, kept, used)
    again = current is not None and (begun or recent.learned_nonsense(current, kept, used))
    if frames in ((), (current,)) and not again:
        return None
    assert frames or current is not None  # without a frame there is nothing to learn again
    return Review(frames or (current,), again)  # type: ignore[arg-type]


def all_in_frame(states: Sequence[Tracking], reviews: Sequence[Review | None]) -> list[Tracking]:
    """Streams as `framed` gives them, in the frames that suit them."""
    asked = [number for number, one in enumerate(reviews) if one is not None]
    if not asked:
        return list(states)
    made = list(states)
    before = [caught_up(states[number]) for number in asked]
    for number, old, new in zip(asked, before, tried(before, [reviews[number] for number in asked]), strict=True):
        made[number] = the_better(old, new)
    return made


def tried(states: Sequence[Tracking], reviews: Sequence[Review | None]) -> list[Tracking]:
    """In the first frames asked for, unless recent slices are predicted clearly better in others, or in the one that is
    in use: learned anew.

    The same state where a frame stays as it is, unless slices are to be learned again.
    """
    made = list(states)
    asked = {number: one for number, one in enumerate(reviews) if one is not None}
    past = {number: usual_slices(states[number].recent[:-1]) for number in asked}
    best = _best({number: one.frames for number, one in asked.items()}, past)
    new = [number for number, one in asked.items() if one.again or best[number] != states[number].frame]
    frames = [_learned_in(states[number].frame, best[number], len(past[number])) for number in new]
    tries = [(states[number], one) for number, some in zip(new, frames, strict=True) for one in some]
    replayed = iter(_replayed([replace(state, frame=one) for state, one in tries]))
    for number, some in zip(new, frames, strict=True):
        learned = [next(replayed) for _ in some]
        losses = [trials.loss(one.core.error, frame) for one, frame in zip(learned, some, strict=True)]
        # Who changes after more slices than are learned anew forgets the others: that must pay.
        chosen = trials.best_of(losses) if states[number].used < RECENT else int(np.argmin(losses))
        if chosen == 0 or asked[number].again:
            made[number] = learned[chosen]
    return made


def _learned_in(current: Frame | None, best: Frame, slices: int) -> tuple[Frame, ...]:
    """Where the scale is to change, both: what CP models make of a scale is known once they have learned in it."""
    return (best,) if current is None or current.scale == best.scale or slices < JUDGED else (best, current)


def _best(asked: dict[int, tuple[Frame, ...]], past: dict[int, list[Slice]]) -> dict[int, Frame]:
    several = {number: frames for number, frames in asked.items() if len(frames) > 1 and past[number]}
    pairs = [(one, past[number]) for number, frames in several.items() for one in frames]
    losses = iter(
        trials.losses(pairs, learning_together.BATCH if len(pairs) >= learning_together.FEWEST else ALONE)
        if pairs
        else ()
    )
    best = {number: frames[0] for number, frames in asked.items()}
    chosen = {number: trials.best_of([next(losses) for _ in frames]) for number, frames in several.items()}
    return best | {number: several[number][position] for number, position in chosen.items()}


def _replayed(states: Sequence[Tracking]) -> list[Tracking]:
    """The same frames, learned anew from the recent slices but the newest."""
    if not states:
        return []
    blank = start(states[0].shape)
    made = [anew(blank if len(states) == 1 else _own(blank), state) for state in states]
    past = [usual_slices(state.recent[:-1]) for state in states]
    for position in range(max(map(len, past))):
        some = [number for number, slices in enumerate(past) if len(slices) > position]
        learned = learning_together.learned([Ready(made[number], past[number][position]) for number in some])
        for number, (state, _) in zip(some, learned, strict=True):
            made[number] = state
    return [_expecting(state) for state in made]


def _own(blank: Tracking) -> Tracking:
    """In memory of its own: learning donates the arrays of the CP models."""
    return replace(blank, cps=tuple(replace(model, state=model.state.copy()) for model in blank.cps))


def _expecting(fresh: Tracking) -> Tracking:
    """What has learned the recent slices without what was grossly off, expecting as much from now on."""
    past = fresh.recent[:-1]
    usual = usual_slices(past)
    gross = sum(int(one.mask.sum()) for one in past) - sum(int(one.mask.sum()) for one in usual)
    if len(usual) < len(past) or not gross:
        return fresh
    return replace(fresh, core=replace(fresh.core, law=_expected(fresh.core.law, np.float32(gross))))


_expected = program()(law.with_outliers)


def the_better(state: Tracking, best: Tracking) -> Tracking:
    """In the frame of `best`, which has learned the recent slices anew in it, unless that is the same state."""
    if best is state:
        return state
    season, ahead = state.season, state.ahead
    if best.frame != state.frame:
        season, ahead = reframed(season, ahead, state.frame, best.frame)
    core = best.core
    if state.frame is not None and best.frame is not None:
        core = replace(core, events=events.further_back(core.events, state.core.events))
        if best.frame.scale == state.frame.scale and state.used > RECENT:
            core = replace(core, law=state.core.law)
    if season is not None and season.periods:  # it took no part in what was learned anew
        core = replace(core, past_gram=state.core.past_gram)
    return replace(best, core=core, season=season, ahead=ahead, clock=state.clock)


def reframed(
    season: Season | None, ahead: Ahead, before: Frame | None, after: Frame | None
) -> tuple[Season | None, Ahead]:
    """Season and forecasts of a stream whose frame changes."""
    old, new = before or Frame(), after or Frame()

    def convert(z: Any) -> Any:
        relative = new.relative(old.absolute(_plain(z, np.int32(old.scale))))
        return np.asarray(_scaled(relative, np.int32(new.scale)))

    return None if season is None else seasons.reframed(season, convert), replace(ahead, pending={})


@program()
def _plain(z: Array, scale: Array) -> Array:
    return scales.plain(z, scale)


@program()
def _scaled(x: Array, scale: Array) -> Array:
    return scales.scaled(x, scale)
