"""What in a store is worth a reader's time: the slices that went worst, and the clearest alerts."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.runs.store.alerts import NUMBERS
from undertow.runs.store.reader import StoredRun

_STRETCHES = 32  # of a long store that are sampled
_SAMPLED_BYTES = 256 * 2**20
_WARM_UP = 0.1  # of the slices, at most 20, are not compared: the model has seen too few


@dataclass(frozen=True)
class WorstSlice:
    """A slice to show, and why."""

    index: int
    why: str


@dataclass
class AlertGroup:
    """The alerts of one entry.

    Attributes:
        entry: Its labels.
        first: Time of the first.
        last: Time of the last.
        count: How many.
        worst: The one farthest from what was expected.
        distance: How far, in standard deviations.
    """

    entry: tuple[str, ...]
    first: str
    last: str
    count: int
    worst: dict[str, Any]
    distance: float


@dataclass(frozen=True)
class Alerts:
    """The clearest groups of alerts, and how many groups and alerts there are in all."""

    groups: list[AlertGroup]
    entries: int
    total: int


def worst_slices(run: StoredRun, count: int = 4) -> list[WorstSlice]:
    """Those with most outliers and those with the largest error, by turns, in the order of the stream."""
    rates, errors = run.per_slice("outlier_rate"), run.per_slice("fit_error")
    by_rate = (WorstSlice(index, f"{rates[index]:.1%} of its entries are outliers") for index in _largest(rates))
    by_error = (WorstSlice(index, f"relative error {errors[index]:.3g}") for index in _largest(errors))
    found: dict[int, WorstSlice] = {}
    apart = max(2, run.length // (4 * count))
    for one in itertools.chain.from_iterable(itertools.zip_longest(by_rate, by_error)):
        # Neighbours show the same event: one picture of it is enough.
        if len(found) < count and one and all(abs(one.index - other) > apart for other in found):
            found[one.index] = one
    return [found[index] for index in sorted(found)]


def outlier_frequency(run: StoredRun) -> tuple[NDArray[np.float64], int] | None:
    """For every entry the fraction of slices in which it was flagged, and the number of slices it was taken from.

    A long store is sampled, in stretches as they are on the disk; None if the probabilities were not kept.
    """
    if "outlier_probability" not in run.kept:
        return None
    fitting = max(_STRETCHES, _SAMPLED_BYTES // (4 * max(1, math.prod(run.shape))))
    stretch = -(-min(run.length, fitting) // _STRETCHES)
    counts, sampled = np.zeros(run.shape), 0
    apart = stretch if run.length <= fitting else run.length // _STRETCHES
    for start in range(0, run.length, apart):
        part = run.loaded(run.dataset["outlier_probability"].isel({run.time_name: slice(start, start + stretch)}))
        counts += (part >= run.threshold).sum(axis=0)
        sampled += len(part)
    return counts / sampled, sampled


def grouped_alerts(run: StoredRun, count: int = 20) -> Alerts:
    """By entry, those with the largest standardised residuals first; memory for one alert of each entry is needed."""
    groups: dict[tuple[str, ...], AlertGroup] = {}
    total = 0
    for row in run.alerts():
        total += 1
        time, distance = str(row[run.time_name]), standardised_residual(row)
        named = itertools.takewhile(lambda item: item[0] not in NUMBERS, row.items())
        entry = tuple(str(value) for name, value in named if name != run.time_name)
        group = groups.get(entry)
        if group is None:
            groups[entry] = AlertGroup(entry, time, time, 1, row, distance)
            continue
        group.count, group.last = group.count + 1, time
        if distance > group.distance:
            group.worst, group.distance = row, distance
    best = heapq.nlargest(count, groups.values(), key=lambda group: (group.distance, group.count))
    return Alerts(best, len(groups), total)


def standardised_residual(row: dict[str, Any]) -> float:
    """|value − expected| / std of an alert."""
    std = float(row["std"])
    return abs(float(row["value"]) - float(row["expected"])) / std if std > 0 else math.inf


def _largest(values: NDArray[Any]) -> list[int]:
    start = min(20, int(_WARM_UP * len(values)))
    candidates = [index for index in range(start, len(values)) if np.isfinite(values[index]) and values[index] > 0]
    return sorted(candidates, key=lambda index: (-values[index], index))
