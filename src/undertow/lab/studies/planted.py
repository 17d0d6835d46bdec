"""Streams of the study of incidents: clean ones of several kinds, and faults planted into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.synthetic.counts import poisson
from undertow.lab.synthetic.dynamics import autoregressive, seasonal
from undertow.lab.synthetic.noises import heavy_tailed

SHAPE, OBSERVED = (12, 12), 0.9
DAY = 288
"""Slices in a day."""
FIRST, APART = 300, 70
"""The slice in which the first fault is planted, and slices between faults."""
LENGTH = FIRST + 10 * APART
"""Slices of a stream with faults."""
Floats = NDArray[np.float64]


def gaussian(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Factors with AR(1) rows and normal noise; values, and the size of a fault: 12 σ."""
    made = autoregressive(SHAPE, slices=slices, observed=observed, seed=seed)
    return made.values, 0.6


def heavy(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Noise of Student's t with three degrees of freedom; a fault is 120 of its scales, once in ten days by chance."""
    made = heavy_tailed(SHAPE, slices=slices, observed=observed, seed=seed)
    return made.values, 12.0


def counts(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Poisson counts around 5."""
    return poisson(5.0, SHAPE, slices=slices, observed=observed, seed=seed).values, 12 * 5**0.5


def daily_counts(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Poisson counts whose rates follow the day, every entry with an hour of its own."""
    draw = np.random.default_rng([seed, 11])
    rates = 20 * np.exp(0.5 * draw.standard_normal(SHAPE))
    angle = 2 * np.pi * (np.arange(slices)[:, None, None] / DAY + draw.random(SHAPE))
    values = draw.poisson(rates * (1 + 0.8 * np.sin(angle))).astype(np.float64)
    return np.where(draw.random(values.shape) < observed, values, np.nan), 12 * 20**0.5


def daily(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """A season of a day, and normal noise."""
    return seasonal(SHAPE, slices=slices, period=DAY, observed=observed, seed=seed).values, 0.6


STREAMS: dict[str, Callable[[int, int, float], tuple[Floats, float]]] = {
    "normal": gaussian,
    "student": heavy,
    "counts": counts,
    "daily-counts": daily_counts,
    "daily": daily,
}
TITLES = {
    "normal": "normal noise",
    "student": "Student's t, 3 degrees of freedom",
    "counts": "counts",
    "daily-counts": "counts with a daily pattern",
    "daily": "daily pattern with normal noise",
}


@dataclass(frozen=True)
class Planted:
    """A fault: its kinds in words of incidents, its slices, and the entries that it touches."""

    name: str
    kinds: tuple[str, ...]
    first: int
    last: int
    entries: NDArray[np.bool_]


def planted(values: Floats, size: float) -> tuple[Floats, list[Planted]]:
    """The stream with one fault of each kind, of this size and far apart."""
    made = values.copy()
    faults: list[Planted] = []

    def fault(name: str, kinds: tuple[str, ...], lasts: int, where: Any, change: Callable[[Floats], Floats]) -> None:
        first = FIRST + APART * len(faults)
        entries = np.zeros(SHAPE, bool)
        entries[where] = True
        part = made[first : first + lasts]
        made[first : first + lasts] = np.where(entries, change(part), part)
        faults.append(Planted(name, kinds, first, first + lasts - 1, entries))

    both, everywhere = np.zeros(SHAPE, bool), np.ones(SHAPE, bool)
    both[5], both[:, 5] = True, True
    fault("spike", ("entry",), 1, (3, 4), lambda part: part + size)
    fault("router, row and column", ("row", "change"), 10, both, lambda part: part + size)
    fault("column", ("row", "change"), 10, np.s_[:, 9], lambda part: part + size)
    fault("block", ("block",), 3, np.ix_([2, 3, 4], [7, 8, 9]), lambda part: part + size)
    fault("slice", ("slice",), 1, everywhere, lambda part: 3 * part + size)
    fault("dead sensor", ("dead",), 60, (8, 8), lambda part: np.broadcast_to(part[0], part.shape))
    fault("silent sensor", ("silent",), 60, (10, 3), lambda part: np.full_like(part, np.nan))
    fault("level", ("change",), len(made), (1, 10), lambda part: part + size)
    fault("scene", ("scene",), len(made), everywhere, lambda part: part[:, ::-1, ::-1] + size)
    return made, faults
