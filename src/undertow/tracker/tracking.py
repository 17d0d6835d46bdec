"""Streams through their trackers, slice by slice; one stream is the case of one of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax import Array

from undertow.inputs.dense import Slice
from undertow.programs.program import program
from undertow.tracker import answering, framing, learning, learning_together, scales
from undertow.tracker import season as seasons
from undertow.tracker.ahead import look_ahead
from undertow.tracker.frame import Frame
from undertow.tracker.learning import Learned, Ready
from undertow.tracker.state import Tracking, after_gap, caught_up, noted, one_at_a_time


def update(states: Sequence[Tracking], slices: Sequence[Slice], times: Sequence[Any]) -> list[Learned]:
    """Learn from the next slice of every stream, unless it is the last one again; arrays of CP models are used up.

    Args:
        states: Of streams of one shape, each at most once.
        slices: One for each.
        times: Of the slices, each later than that of the slice before; None where there is none.
    """
    counted = [noted(*each) for each in zip(states, slices, times, strict=True)]
    with one_at_a_time:
        found: dict[int, Learned] = {}
        ready: list[tuple[int, Ready]] = []
        reviews: list[framing.Review | None] = []
        for number, ((state, verdict, steps), given) in enumerate(zip(counted, slices, strict=True)):
            since = int(verdict.since) if verdict.repeated else -1
            if steps != 1 or verdict.frozen:
                state = caught_up(state)
            if steps != 1:
                state = after_gap(state, steps)
            if verdict.frozen:
                found[number] = _frozen(Ready(state, given, since))
                continue
            state, review = framing.framed(state, given)
            ready.append((number, Ready(state, given, since, steps)))
            reviews.append(review)
        before = framing.all_in_frame([one.state for _, one in ready], reviews)
        framed = [replace(one, state=state) for (_, one), state in zip(ready, before, strict=True)]
        found |= zip([number for number, _ in ready], learning_together.learned(framed), strict=True)
    return [found[number] for number in range(len(states))]


def _frozen(ready: Ready) -> Learned:
    """After a slice that is the last one again: nothing is learned of it."""
    state = ready.state
    output = learning.learned(replace(ready, state=replace(state, season=None)), learning=False)[1]
    return replace(state, season=None if state.season is None else seasons.skipped(state.season, 1)), output


def forecast(state: Tracking, slices: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the next slices (slices, *shape), in units of the data; nothing is learned."""
    state = caught_up(state)
    frame, season = state.frame or Frame(), state.season
    assert season is not None  # only while slices are learned anew
    with one_at_a_time:
        z, deviation = look_ahead(
            state.ahead, season, state.core, state.cps[0].state.core, slices, np.int32(frame.scale)
        )
        mean, std = _in_units(z, deviation, np.int32(frame.scale))
    shape = (slices, *state.shape)
    return frame.absolute(mean).reshape(shape), (np.asarray(std, np.float64) * frame.unit).reshape(shape)


@program()
def _in_units(z: Array, deviation: Array, scale: Array) -> tuple[Array, Array]:
    return scales.plain(z, scale), answering.width(z, deviation, scale)
