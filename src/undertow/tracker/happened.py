"""What happened in the newest slices, until season and forecasts have taken it in.

Both are kept by the host. As long as no period is known nothing that is computed depends on them, so that they need not
wait for a device: they take a slice in when those after it are being learned, and what forecasts of it were worth is
computed beside that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.model import platform
from undertow.model.types import Core as ModelCore
from undertow.programs.program import program
from undertow.tracker import ahead as forecasts
from undertow.tracker import season as seasons
from undertow.tracker.ahead import LARGEST_SLICE, Ahead, Compared, Outlook, asked_now, in_blocks, sampled
from undertow.tracker.core import Core
from undertow.tracker.judging import Verdict
from undertow.tracker.predictors.level import LevelState
from undertow.tracker.season import Season

BEHIND = 3
"""Slices that are being learned or about to be fetched, and one whose forecasts are being compared with it."""


@dataclass(frozen=True, eq=False)
class Happened:
    """One slice on the scale of the stream; arrays may still be computed.

    Attributes:
        full: What a season remembers of it (n,).
        parts: Of the entries by which forecasts are scored: values, which were observed, and the `Outlook`, as rows of
            one array (5 + H, k).
        scale: Of the stream, its number.
        horizons: At which forecasts are made after it.
        compared: What forecasts of it were worth, once that is being computed.
    """

    full: Any
    parts: Any
    scale: int
    horizons: list[int]
    compared: Compared | None = None


def happened(
    season: Season,
    waiting: int,
    after: Core,
    completed: Array,
    model: ModelCore,
    verdict: Verdict,
    values: Array,
    mask: Array,
    scale: int,
    spread: Array,
) -> Happened:
    """A slice that was learned, after `waiting` others that are not taken in yet; what is kept of it is on its way.

    Args:
        season: As far as it has taken slices in.
        waiting: How many it has not.
        after: State after the slice.
        completed: The answer about it (n,); of a slice that is off or empty that is not the last one of the state.
        model: The first CP model after it.
        verdict: About it.
        values: On the scale of the stream (n,).
        mask: Which were observed (n,).
        scale: Of the stream, its number.
        spread: Factor of the error bars before the slice.
    """
    horizons = asked_now(replace(season, clock=season.clock + waiting + 1))
    learned, horizon = (verdict.learn, verdict.variance, spread), in_blocks(horizons)
    full, parts = _kept(after.level, after.last, completed, model, horizon, values, mask, *learned)
    if platform.current().separate_memory:
        for array in (full, parts):
            array.copy_to_host_async()
    return Happened(full, parts, scale, horizons)


@program()
def _kept(
    level: LevelState,
    last: Array,
    completed: Array,
    model: ModelCore,
    horizons: Array,
    values: Array,
    mask: Array,
    weights: Array,
    variance: Array,
    spread: Array,
) -> tuple[Array, Array]:
    """`full` and `parts` of `Happened`."""
    full = seasons.completed_slice(values, weights, completed, jnp.sqrt(variance) * spread, jnp)
    mean, std, rows = forecasts.now(level, model, horizons)
    parts = jnp.vstack([values, mask.astype(values.dtype), mean, std, last, rows])
    places = sampled(values.size)
    return full, parts if places is None else parts[:, places]


def is_kept(season: Season) -> bool:
    """Whether anything but the number of a slice is."""
    return seasons.takes_in(season) or season.entries <= LARGEST_SLICE


def can_wait(season: Season, waiting: int) -> bool:
    """Whether nothing depends on a slice while others wait before it."""
    return season.deviation is None and not seasons.due(season, waiting + 1)


def being_compared(season: Season, ahead: Ahead, one: Happened) -> Happened:
    """The slice that is taken in next, with its forecasts being compared with it."""
    if one.compared is not None or season.entries > LARGEST_SLICE:
        return one
    values, observed = np.asarray(one.parts)[:2]
    period = forecasts.period_in(season)
    made = forecasts.comparing(ahead, season.clock, values, observed > 0, np.int32(one.scale), period)
    return replace(one, compared=made)


def taken_in(season: Season, ahead: Ahead, one: Happened) -> tuple[Season, Ahead]:
    """Season and forecasts after a slice."""
    one = being_compared(season, ahead, one)
    season = seasons.with_slice(season, one.full if seasons.takes_in(season) else None)
    if one.compared is None:
        return season, ahead
    parts = np.asarray(one.parts)
    ahead = forecasts.with_compared(ahead, season.clock - 1, one.compared, parts.shape[1])
    return season, forecasts.follow(ahead, season, Outlook(one.horizons, parts[2], parts[3], parts[4], parts[5:]))
