"""Forecasts of many streams, each its own: the programs of `ahead` for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.model.types import Core as ModelCore
from undertow.programs.program import program
from undertow.tracker import ahead as alone
from undertow.tracker import season as seasons
from undertow.tracker import season_together
from undertow.tracker.ahead import Ahead
from undertow.tracker.answering import Answer
from undertow.tracker.batch import Arrays
from undertow.tracker.judging import Verdict
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.season import Season

DUE = 64
"""Forecasts that are compared with their slices at a time."""

Floats = NDArray[np.float32]


def remembered(
    before: Sequence[Ahead],
    fitted: Sequence[Season | None],
    spread: Floats,
    verdict: Verdict,
    values: Floats,
    observed: NDArray[np.bool_],
    answer: Answer,
    after: Arrays,
    scale: NDArray[np.int32],
    size: int,
) -> tuple[list[Season | None], list[Ahead]]:
    """Seasons and forecasts after a slice of every stream.

    Args:
        before: Forecasts, of each.
        fitted: Seasons, as `season_together.fitted` has left them; None where there is none.
        spread: Factors of the error bars, before the slice (size,).
        verdict: About the slices.
        values: Of the slices, on their scales (size, n).
        observed: Which of these were (size, n).
        answer: What was learned of them.
        after: Arrays of the whole batch, after the slices.
        scale: Of each stream (size,).
        size: Of the batch.
    """
    weights, completed = np.asarray(verdict.learn), np.asarray(answer.scaled)
    stds = np.sqrt(np.asarray(verdict.variance)) * np.asarray(spread)[:, None]
    kept = [
        None if one is None else seasons.remembered(one, values[number], weights[number], completed[number], std)
        for number, (one, std) in enumerate(zip(fitted, stds, strict=False))
    ]
    return kept, follow(before, kept, after, values, observed, scale, size)


def follow(
    before: Sequence[Ahead],
    streams: Sequence[Season | None],
    arrays: Arrays,
    values: Floats,
    observed: NDArray[np.bool_],
    scale: NDArray[np.int32],
    size: int,
) -> list[Ahead]:
    """`ahead.follow` of every stream.

    Args:
        before: Of each.
        streams: After the slice; None where there is no season, and so no forecast.
        arrays: Of the whole batch, after the slice.
        values: Of the slices (size, n).
        observed: Which of these were (size, n).
        scale: Of each stream (size,).
        size: Of the batch.
    """
    known = {number: one for number, one in enumerate(streams) if one is not None}
    entries = values.shape[1]
    told = [
        (number, horizon, one)
        for number, season in known.items()
        if observed[number].any()
        for horizon, one in alone.due_at(before[number], season.clock - 1)
    ]
    found: dict[int, tuple[list[int], list[tuple[Any, ...]]]] = {number: ([], []) for number in known}
    for first in range(0, len(told), DUE):
        some = told[first : first + DUE]
        padded = [*some, *[some[-1]] * (DUE - len(some))]
        learned = [alone.nearby(before[n], horizon, alone.period_in(known[n])) for n, horizon, _ in padded]
        judged = _all_compared(
            np.stack([values[n] for n, _, _ in padded]),
            np.stack([observed[n] for n, _, _ in padded]),
            np.stack([one.means for _, _, one in padded]),
            np.stack([one.std for _, _, one in padded]),
            np.stack([one.gram for one in learned]),
            np.stack([one.share for one in learned]),
            np.stack([alone.factor_of(before[n], horizon) for n, horizon, _ in padded]),
            np.stack([scale[n] for n, _, _ in padded]),
        )
        for (number, horizon, _), *parts in zip(some, *map(np.array, judged), strict=False):
            found[number][0].append(horizon)
            found[number][1].append(tuple(parts))
    asked = {number: alone.asked_now(one) for number, one in known.items()}
    blocks = {number: alone.in_blocks(horizons) for number, horizons in asked.items()}
    wanted = np.ones((size, max((block.size for block in blocks.values()), default=alone.BLOCK)), np.float32)
    for number, block in blocks.items():
        wanted[number, : len(block)] = block
    level, std, rows = (np.array(part) for part in _all_now(arrays.core.level, arrays.models[0], wanted))
    last = np.asarray(arrays.core.last)
    moments = [(one, horizon - 1) for number, one in known.items() for horizon in asked[number]]
    seasonal = iter(season_together.at(moments, entries, size))
    made = list(before)
    for number, one in known.items():
        three = [next(seasonal) for _ in asked[number]]
        means = alone.side_by_side(level[number], last[number], rows[number], three)
        scored = alone.with_scores(before[number], one.clock - 1, *found[number], entries)
        made[number] = alone.with_forecasts(
            scored, one, asked[number], alone.of_sample(means), alone.of_sample(std[number]).copy()
        )
    return made


@program()
def _all_compared(
    values: Array,
    observed: Array,
    means: Array,
    std: Array,
    gram: Array,
    share: Array,
    factor: Array,
    scale: Array,
) -> tuple[Array, ...]:
    found: tuple[Array, ...] = jax.vmap(alone.compared)(
        values, observed, *(part[:, None] for part in (means, std, gram, share, factor)), scale
    )
    return tuple(part[:, 0] for part in found)


@program()
def _all_now(level: LevelState, model: ModelCore, horizons: Array) -> tuple[Array, Array, Array]:
    found: tuple[Array, Array, Array] = jax.vmap(alone.now)(level, model, horizons)
    return found
