"""A criterion: a stream, what is measured on it, and the figures asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from undertow.lab.models import Make, follow
from undertow.lab.predictions import Recording, Slices
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.track import Floats, Track

Numbers = dict[str, float]


@dataclass(frozen=True)
class Trial:
    """One model on one criterion from one seed.

    Attributes:
        make: a new model that has seen nothing.
        seed: of every random draw.
        slices: length of the stream.
        folder: of the data files.
        reporter: shows progress.
        label: what it calls this trial.
        tracks: all that `follow` has given.
    """

    make: Make
    seed: int
    slices: int
    folder: Folder = None
    reporter: Reporter = field(default_factory=Reporter)
    label: str = ""
    tracks: list[Track] = field(default_factory=list)

    def follow(self, values: Floats) -> Track:
        """A new model's answers to these slices."""
        self.reporter.start(self.label, len(values))
        self.tracks.append(follow(self.make(), values, self.reporter.tick))
        return self.tracks[-1]

    def with_predictions(self, values: Floats) -> tuple[Track, Mapping[str, Floats]]:
        """The same, and what each of its predictors said, (T, *shape) by name; nothing of a model without them."""
        kept: Slices = []
        track = replace(self, make=lambda: Recording(self.make(), kept)).follow(values)
        return track, {name: np.stack([one[name] for one in kept]) for name in kept[0]}


@dataclass(frozen=True)
class Asked:
    """The figure asked of one number; without limits it is shown only.

    Attributes:
        at_most: an upper limit.
        at_least: a lower limit.
        over: how seeds are put together: their mean, or the worst of them.
    """

    at_most: float | None = None
    at_least: float | None = None
    over: Literal["mean", "worst"] = "mean"

    def combine(self, values: Sequence[float]) -> float:
        """One number out of those of all seeds; NaN where any of them is missing."""
        if not values or any(math.isnan(value) for value in values):
            return math.nan
        if self.over == "mean":
            return float(np.mean(values))
        return min(values) if self.at_most is None else max(values)

    def reached(self, value: float) -> bool | None:
        """Whether a number lies within the limits; None where nothing is asked."""
        if self.at_most is None and self.at_least is None:
            return None
        above = self.at_most is None or value <= self.at_most
        return above and (self.at_least is None or value >= self.at_least)

    def __str__(self) -> str:
        if self.at_most is not None and self.at_least is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"


@dataclass(frozen=True, eq=False)
class Criterion:
    """One stream or one comparison of streams.

    Attributes:
        name: its key.
        title: for people.
        measure: a trial → its numbers, NaN for what a model cannot say.
        asked: of every number that is shown, by its name, in the order of the table.
        slices: length of the stream.
        seeds: how many, where that is part of what is asked; None for as many as wanted.
    """

    name: str
    title: str
    measure: Callable[[Trial], Numbers]
    asked: Mapping[str, Asked]
    slices: int
    seeds: int | None = None
