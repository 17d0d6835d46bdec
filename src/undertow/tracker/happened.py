"""What happened in the newest slices, until season and forecasts have taken it in.

Both are kept by the host. As long as no period is known nothing that is computed depends on them, so that they need not
wait for a device: they take a slice in when those after it are being learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from undertow.model import platform
from undertow.model.types import Core as ModelCore
from undertow.tracker import season as seasons
from undertow.tracker.ahead import LARGEST_SLICE, Ahead, Outlook, asked_now, follow, outlook
from undertow.tracker.core import Core
from undertow.tracker.season import Season

BEHIND = 2
"""Slices that are being learned or about to be fetched."""


@dataclass(frozen=True, eq=False)
class Happened:
    """One slice, (n,) on the scale of the stream; arrays may still be computed.

    Attributes:
        values: Observations.
        observed: Which there are.
        weights: Of these, for the learners.
        completed: The answer.
        variance: Of an observation around its prediction, not yet calibrated.
        spread: Factor of the error bars.
        scale: Of the stream, its number.
        outlook: What is expected from here on; None where that is found out when it is taken in.
    """

    values: Any
    observed: Any
    weights: Any
    completed: Any
    variance: Any
    spread: Any
    scale: Any
    outlook: Outlook | None = None


def can_wait(season: Season, waiting: int) -> bool:
    """Whether a slice has to be taken in, and nothing depends on it while others wait before it."""
    taken = seasons.takes_in(season) or season.entries <= LARGEST_SLICE
    return taken and season.deviation is None and not seasons.due(season, waiting + 1)


def on_its_way(season: Season, waiting: int, one: Happened, core: Core, model: ModelCore) -> Happened:
    """A slice that can wait, with what is expected from here on; what the host needs of it is being sent there."""
    there = replace(season, clock=season.clock + waiting + 1)
    one = replace(one, outlook=outlook(core, model, asked_now(there)))
    if platform.current().separate_memory:
        for array in jax.tree.leaves(vars(one)):
            if isinstance(array, jax.Array):
                array.copy_to_host_async()
    return one


def taken_in(
    season: Season, ahead: Ahead, one: Happened, core: Core | None = None, model: ModelCore | None = None
) -> tuple[Season, Ahead]:
    """Season and forecasts after a slice; `core` and `model` after it, where its outlook is still to be found."""
    std = None
    if seasons.takes_in(season):
        std = np.sqrt(np.asarray(one.variance)) * np.asarray(one.spread)
    season = seasons.remembered(season, one.values, one.weights, one.completed, std)
    if season.entries > LARGEST_SLICE:
        return season, ahead
    expected = one.outlook
    if expected is None:
        assert core is not None
        assert model is not None
        expected = outlook(core, model, asked_now(season))
    return season, follow(ahead, season, expected, one.values, one.observed, one.scale)
