"""Seasons of many streams, each its own: the programs of `season` for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.programs.program import program
from undertow.tracker import season as seasons
from undertow.tracker.predictors.base import Prediction
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.season import Season

PROFILES = 2
"""Of a season at most; where there are fewer, nothing is known of the others."""

Floats = NDArray[np.float32]


def predicted(streams: Sequence[Season | None], entries: int, size: int) -> Prediction:
    """`season.predict` of every stream (size, n), NaN beyond the last."""
    if all(one is None or one.deviation is None for one in streams):
        return Prediction(*(np.full((size, entries), np.nan, np.float32) for _ in range(3)))  # type: ignore[arg-type]
    made: Prediction = _all_predicted(*_batch([(one, 0) for one in streams], entries, size))[0]
    return made


def at(moments: Sequence[tuple[Season, int]], entries: int, size: int) -> list[tuple[Any, Any, Any]]:
    """`season.at` of all these streams and numbers of slices ahead, `size` at a time."""
    unknown = np.full(entries, np.nan, np.float32)
    found = [(unknown, unknown, unknown)] * len(moments)
    known = [number for number, (one, _) in enumerate(moments) if one.deviation is not None]
    for first in range(0, len(known), size):
        some = known[first : first + size]
        made, profile = _all_predicted(*_batch([moments[number] for number in some], entries, size))
        means, alone = np.asarray(made.mean), np.asarray(profile)
        for position, number in enumerate(some):
            one, ahead = moments[number]
            assert one.latest is not None  # it comes with the deviation
            found[number] = means[position], alone[position], one.latest[(one.clock + ahead) % len(one.latest)]
    return found


def fitted(
    streams: Sequence[Season | None], values: Floats, weights: Floats, entries: int, size: int
) -> tuple[list[Season | None], Floats]:
    """`season.fitted` of every stream; what is known now (size, n), NaN beyond the last."""
    if all(one is None or one.deviation is None for one in streams):
        return list(streams), np.full((size, entries), np.nan, np.float32)
    after, now = _all_fitted(*_batch([(one, 0) for one in streams], entries, size), values, weights)
    deviations = jax.device_get(after)

    def own(number: int, one: Season | None) -> Season | None:
        if one is None or one.deviation is None:
            return one
        profiles = len(one.periods)
        return replace(one, deviation=jax.tree.map(lambda leaf: leaf[number, :profiles].copy(), deviations))

    return [own(number, one) for number, one in enumerate(streams)], np.asarray(now)


def _batch(moments: Sequence[tuple[Season | None, int]], entries: int, size: int) -> tuple[LevelState, Floats]:
    """Deviations and profile rows of all, `PROFILES` each; NaN in rows of which nothing is known."""
    rows = np.full((size, PROFILES, entries), np.nan, np.float32)
    blank = _blank(entries)
    deviations = jax.tree.map(lambda leaf: np.stack([leaf] * size), blank)
    for number, (one, ahead) in enumerate(moments):
        if one is not None and one.deviation is not None:
            count = len(one.periods)
            rows[number, :count] = seasons.rows(one, ahead)
            for name, leaf in vars(deviations).items():
                leaf[number, :count] = np.asarray(getattr(one.deviation, name))
    return deviations, rows


@lru_cache(maxsize=16)
def _blank(entries: int) -> LevelState:
    state: LevelState = jax.device_get(seasons.no_deviation(entries, PROFILES))
    return state


@program()
def _all_predicted(deviation: LevelState, profile: Array) -> tuple[Prediction, Array]:
    found: tuple[Prediction, Array] = jax.vmap(seasons.predicted)(deviation, profile)
    return found


@program()
def _all_fitted(deviation: LevelState, profile: Array, values: Array, weights: Array) -> tuple[LevelState, Array]:
    after: LevelState = jax.vmap(seasons.deviations)(deviation, profile, values, weights)
    return after, jax.vmap(seasons.predicted)(after, profile)[0].mean
