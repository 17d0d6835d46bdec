"""One slice of each of many trackers that are apart: batch by batch, and each goes on with a state of its own.

A batch holds states for one slice only: they are copied into common arrays, the programs of `batch` run over these, and
what comes out is copied back, which is a tenth of the time. So there is nothing to join or to leave; whoever has a
slice takes part. A stream gets what it would have got alone, to rounding. On two CPU cores a 12×12 slice takes 16 ms of
processor time alone, and some 7 ms in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.engine.capacity import separable
from undertow.inputs.dense import Slice
from undertow.tracker import batch_step, frame, learning, trials
from undertow.tracker.batch import Arrays
from undertow.tracker.frame import Frame
from undertow.tracker.growing import grown
from undertow.tracker.learning import Learned, Ready, reported
from undertow.tracker.predictors.cp import CP
from undertow.tracker.state import Tracking, caught_up

BATCH = 64
"""States in a batch: one size, so that little is compiled; what is not filled is computed in vain."""
FEWEST = 12
"""Slices from which on that is quicker than one after the other."""
LARGEST_SLICE = 1024
"""Entries of a slice up to which streams are stepped together: larger ones fill the caches alone."""


def together(ready: Sequence[Ready]) -> bool:
    """Whether these slices, of one shape, are learned together: they are many and small."""
    return len(ready) >= FEWEST and math.prod(ready[0].state.shape) <= LARGEST_SLICE


def learned(ready: Sequence[Ready]) -> list[Learned]:
    """After these slices: those whose arrays have the same shapes together."""
    if not together(ready):
        return [learning.learned(one) for one in ready]
    fitted = [replace(one, state=_fitting(caught_up(one.state))) for one in ready]
    found: dict[int, Learned] = {}
    alike: dict[Any, list[int]] = {}
    for number, one in enumerate(fitted):
        key = tuple((model.state.config, model.state.slots) for model in one.state.cps)
        alike.setdefault(key, []).append(number)
    for numbers in alike.values():
        for first in range(0, len(numbers), BATCH):
            some = numbers[first : first + BATCH]
            found |= zip(some, _learned([fitted[number] for number in some]), strict=True)
    return [found[number] for number in range(len(ready))]


def _fitting(state: Tracking) -> Tracking:
    return replace(state, cps=tuple(model.fitting() for model in grown(state.cps, state.core)))


def _learned(ready: Sequence[Ready]) -> list[Learned]:
    states, shape, count = [one.state for one in ready], ready[0].state.shape, len(ready)
    common = frame.stacked([state.frame or Frame() for state in states], len(shape))
    given = Slice(np.stack([one.given.values for one in ready]), np.stack([one.given.mask for one in ready]))
    relative, mask, beyond = trials.usable(common, given)
    flat, observed, scale, framed, steps, here = (
        _filled(np.asarray(part), count)
        for part in (
            relative.reshape(count, -1),
            mask.reshape(count, -1),
            np.reshape(common.scale, -1),
            [state.frame is not None for state in states],
            np.array([one.steps for one in ready], np.float32),
            np.ones(count, np.bool_),
        )
    )
    settings = tuple(model.state.settings for model in states[0].cps)
    memory = [state.season for state in states], [state.ahead for state in states]
    made = batch_step.learned(_arrays(states), flat, observed, scale, framed, here, steps, settings, shape, memory)
    arrays, answer, found, said, unused = jax.device_get((made.arrays, made.answer, made.found, made.said, made.unused))
    assert made.memory is not None
    result = []
    for number, (one, season, ahead) in enumerate(zip(ready, *made.memory, strict=True)):
        state = _after(one.state, number, arrays, bool(made.learning[number]), int(unused[number]))
        off = beyond[number] if beyond[number].any() else None
        own, noted = jax.tree.map(lambda leaf, number=number: leaf[number], (answer, found))
        result.append((replace(state, season=season, ahead=ahead), reported(one, own, noted, said[number], off, None)))
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
