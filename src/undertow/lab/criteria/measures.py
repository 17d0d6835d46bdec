"""Numbers that several criteria share. NaN where a model does not say what they are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from undertow.lab import metrics
from undertow.lab.cases.case import Bools, Data
from undertow.lab.criteria.criterion import Numbers
from undertow.lab.scores import error_curves, scores
from undertow.lab.track import Floats, Track

ALERT = 0.5
"""Probability beyond which an entry is flagged."""


def usual(data: Data, track: Track) -> Numbers:
    """Error and coverage of ±1.96 std on hidden entries, and the fraction of shown ones flagged, from the burn-in on.

    A hidden entry is an observation that was withheld, noise included, and `std` is that of a new observation: the two
    belong together as they are.
    """
    found = scores(data, track, error_curves(data, track))
    return {
        "error": hidden_error(data, track.low_rank),
        "coverage": known(found["coverage"]),
        "flagged": flagged(data, track),
    }


def flagged(data: Data, track: Track, first: int | None = None) -> float:
    """Fraction of the shown, uncorrupted entries with a probability beyond one half, from slice `first` on."""
    if track.probability is None:
        return math.nan
    where = data.shown if data.corrupted is None else data.shown & ~data.corrupted
    where = within(where, data.burn_in if first is None else first)
    return float(np.mean(track.probability[where] > ALERT)) if where.any() else math.nan


def found(data: Data, track: Track, level: float = ALERT) -> tuple[float, float]:
    """Precision and recall of the shown entries whose probability is beyond a level, from the burn-in on."""
    if track.probability is None or data.corrupted is None:
        return math.nan, math.nan
    where = within(data.shown, data.burn_in)
    alert, actual = track.probability[where] > level, data.corrupted[where]
    hits = int((alert & actual).sum())
    precision = hits / int(alert.sum()) if alert.any() else math.nan
    return precision, hits / int(actual.sum()) if actual.any() else math.nan


def standardised(data: Data, track: Track) -> Floats:
    """|value − mean| / std of the shown entries, NaN elsewhere; 0 where both are 0."""
    if track.std is None:
        return np.full(data.values.shape, np.nan)
    distance = np.abs(data.values - track.low_rank)
    return np.where(distance > 0, distance / np.maximum(track.std, np.finfo(np.float32).tiny), distance)


def mean_error(estimates: Floats, truth: Floats, where: Bools) -> float:
    """Mean over slices of ‖X̂ − X‖ / ‖X‖ on some entries; infinite where an estimate is not a number.

    Slices that have no such entries, or only zeros there, have no relative error and are left out.
    """
    errors = []
    for x, y, w in zip(estimates, truth, where & ~np.isnan(truth), strict=True):
        if np.any(y[w]):
            errors.append(metrics.relative_error(x, y, w))
    return float(np.mean(np.where(np.isnan(errors), np.inf, errors))) if errors else math.nan


def hidden_error(data: Data, estimates: Floats, first: int | None = None, last: int | None = None) -> float:
    """`mean_error` on hidden entries of slices first..last − 1, by default from the burn-in to the end."""
    return mean_error(estimates, data.truth, within(data.hidden, data.burn_in if first is None else first, last))


def best_error(
    data: Data, predictions: Mapping[str, Floats], first: int | None = None, last: int | None = None
) -> float:
    """The smallest `hidden_error` of any single predictor; NaN where none said anything."""
    return min((hidden_error(data, one, first, last) for one in predictions.values()), default=math.nan)


def within(where: Bools, first: int, last: int | None = None) -> Bools:
    """True in slices first..last − 1 only."""
    chosen = np.zeros_like(where)
    chosen[first:last] = where[first:last]
    return chosen


def ratio(one: float, other: float) -> float:
    """One number over another; NaN over nothing."""
    return one / other if other else math.nan


def known(value: float | None) -> float:
    """A score as a number: NaN where it does not apply."""
    return math.nan if value is None else value
