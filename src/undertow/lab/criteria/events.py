"""Criteria on what may happen to any stream: each beside the same stream to which it did not happen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from undertow.lab.cases import Condition
from undertow.lab.cases.case import Data
from undertow.lab.cases.disturbing import First, Off, with_first, with_row_at_zero, with_slice_off, without_slices
from undertow.lab.cases.making import from_synthetic
from undertow.lab.criteria.criterion import Asked, Criterion, Numbers, Trial
from undertow.lab.criteria.measures import ALERT, hidden_error, mean_error, ratio, within
from undertow.lab.criteria.recorded import BURN_IN, recorded
from undertow.lab.models import Make, Model, follow
from undertow.lab.synthetic.dynamics import autoregressive, seasonal
from undertow.lab.synthetic.streams import drifting
from undertow.lab.track import Floats, Track

Stream = Callable[[Trial], Data]

OFFSET = 1e6
EMPTY = 0.2
"""Fraction of the slices in which nothing is observed."""
ROW, BACK = 3, 5
"""The row that goes to zero, and how soon after its return it should be as before."""
AFTER = 5
"""Slices after the one that is off in which the error is compared."""


def abilene(trial: Trial) -> Data:
    """Half of it hidden."""
    return recorded(trial, "abilene", Condition(0.5))


def hangzhou(trial: Trial) -> Data:
    """Half of it hidden."""
    return recorded(trial, "hangzhou", Condition(0.5))


def sparse(trial: Trial) -> Data:
    """40×40 of rank 5 with drifting factors, 15 % observed, 2 % outliers."""
    return from_synthetic(drifting((40, 40), 5, slices=trial.slices, observed=0.15, seed=trial.seed), BURN_IN)


def factors(trial: Trial) -> Data:
    """20×20 of rank 3 with AR(1) rows, half of it hidden."""
    return from_synthetic(autoregressive(slices=trial.slices, seed=trial.seed), BURN_IN)


def season(trial: Trial) -> Data:
    """20×20 with season and trend, half of it hidden."""
    return from_synthetic(seasonal(slices=trial.slices, seed=trial.seed), BURN_IN)


def bad_first(stream: Stream) -> Callable[[Trial], Numbers]:
    """Error with a slice of zeros, of nothing or of garbage before the stream, over that without."""

    def measure(trial: Trial) -> Numbers:
        data = stream(trial)
        plain = hidden_error(data, trial.follow(data.values).low_rank)
        numbers = {}
        for kind in get_args(First):
            changed = with_first(data, kind, trial.seed)
            numbers[kind] = ratio(hidden_error(changed, trial.follow(changed.values).low_rank), plain)
        return numbers

    return measure


def empty_slices(stream: Stream) -> Callable[[Trial], Numbers]:
    """Error of slices in which nothing was observed, and over that of the model's last mean carried on."""

    def measure(trial: Trial) -> Numbers:
        data, empty = without_slices(stream(trial), EMPTY, trial.seed)
        track = trial.follow(data.values)
        last = np.maximum.accumulate(np.where(empty, 0, np.arange(len(data))))  # the last slice with observations
        where = within(data.known & empty.reshape(-1, *([1] * len(data.shape))), BURN_IN)
        error = mean_error(track.low_rank, data.truth, where)
        covered = math.nan
        if track.std is not None:
            covered = float(np.mean(np.abs(data.clean - track.low_rank)[where] <= 1.96 * track.std[where]))
        carried = mean_error(track.low_rank[last], data.truth, where)
        return {"error": error, "over carried": ratio(error, carried), "coverage": covered}

    return measure


def offset(stream: Stream) -> Callable[[Trial], Numbers]:
    """How far the answer to the stream + 1e6 differs from the shifted answer, over its size; and the two errors."""

    def measure(trial: Trial) -> Numbers:
        data = stream(trial)
        plain = trial.follow(data.values).low_rank
        moved = follow(Shifted(trial.make, OFFSET), data.values).low_rank
        before = hidden_error(data, plain)
        where = within(np.ones(plain.shape, bool), BURN_IN)
        return {
            "difference": mean_error(moved, np.asarray(plain, np.float64), where),
            "error over plain": ratio(hidden_error(data, moved), before),
        }

    return measure


class Shifted:
    """A model that is shown everything with an offset, whose answers have it taken off again in double precision."""

    def __init__(self, make: Make, offset: float) -> None:
        self._model: Model = make()
        self._offset = offset

    def update(self, x: Any, /) -> _Moved:
        """Learn a slice."""
        result = self._model.update(np.asarray(x, np.float64) + self._offset)
        mean = np.asarray(result.mean, np.float64) - self._offset
        return _Moved(mean, result.std, result.outliers, result.outlier_probability)


@dataclass(frozen=True, eq=False)
class _Moved:
    mean: Floats
    std: Floats | None
    outliers: Floats | None
    outlier_probability: Floats | None


def slice_off(kind: Off) -> Callable[[Trial], Numbers]:
    """One whole slice off: fraction of it flagged, whether the status says anything, and the error of the next ones."""

    def measure(trial: Trial) -> Numbers:
        data, at = season(trial), trial.slices // 2
        changed = with_slice_off(data, at, kind, trial.seed)
        plain, track = trial.follow(data.values), trial.follow(changed.values)
        after = slice(at + 1, at + 1 + AFTER)
        errors = [hidden_error(data, one.low_rank, after.start, after.stop) for one in (track, plain)]
        return {
            "flagged": _fraction(track, changed, slice(at, at + 1)),
            "named": _named(track, plain, at, at + 2),
            "next slices": ratio(*errors),
        }

    return measure


def row_at_zero(trial: Trial) -> Numbers:
    """A row at zero for a quarter of the stream: flagged at first, named, and errors over those without it.

    "others" are the other rows while it is away, "returned" is the row and "after" everything, from five slices after
    its return on.
    """
    data = season(trial)
    first = 3 * trial.slices // 8
    back = first + trial.slices // 4
    changed = with_row_at_zero(data, ROW, first, back)
    plain, track = trial.follow(data.values), trial.follow(changed.values)
    row = np.zeros(data.values.shape, bool)
    row[:, ROW] = True

    def over(where: np.ndarray, begin: int, end: int | None) -> float:
        chosen = within(where, begin, end)
        return ratio(*(mean_error(one.low_rank, data.truth, chosen) for one in (track, plain)))

    return {
        "flagged": _fraction(track, changed, slice(first, first + BACK)),
        "named": _named(track, plain, first, back),
        "others": over(~row, first, back),
        "returned": over(row, back + BACK, back + 4 * BACK),
        "after": over(row | ~row, back + BACK, None),
    }


def _fraction(track: Track, data: Data, slices: slice) -> float:
    """Fraction of the corrupted entries shown in these slices that is flagged."""
    if track.probability is None or data.corrupted is None:
        return math.nan
    where = (data.corrupted & data.shown)[slices]
    return float(np.mean(track.probability[slices][where] > ALERT))


def _named(track: Track, plain: Track, first: int, last: int) -> float:
    """1 if a status of slices first..last − 1 says something that it does not say without the disturbance, else 0."""
    if track.probability is None:  # nothing is ever said by a model without results of its own
        return math.nan
    said, usual = ({code for flag in one.flags[first:last] for code in flag.split(", ")} for one in (track, plain))
    return float(bool(said - usual - {""}))


def _first(name: str, stream: Stream, slices: int) -> Criterion:
    asked = {kind: Asked(at_most=1.03, over="worst") for kind in get_args(First)}
    return Criterion(
        f"first-{name}", f"{name}, a bad first slice: error over without", bad_first(stream), asked, slices
    )


def _empty(name: str, stream: Stream, slices: int) -> Criterion:
    asked = {"error": Asked(), "over carried": Asked(at_most=1.0), "coverage": Asked()}
    return Criterion(f"empty-{name}", f"{name}, slices of nothing", empty_slices(stream), asked, slices)


CRITERIA = (
    _first("abilene", abilene, 200),
    _first("hangzhou", hangzhou, 200),
    _first("sparse", sparse, 100),
    _empty("abilene", abilene, 300),
    _empty("autoregressive", factors, 200),
    _empty("season", season, 200),
    Criterion(
        "offset",
        "any stream + 1e6",
        offset(factors),
        {"difference": Asked(at_most=1e-3), "error over plain": Asked(at_most=1.01)},
        100,
    ),
    *(
        Criterion(
            f"slice-{kind}",
            f"one whole slice {'of noise' if kind == 'noise' else kind}",
            slice_off(kind),
            {
                "flagged": Asked(at_least=0.95, over="worst"),
                "named": Asked(at_least=1, over="worst"),
                "next slices": Asked(at_most=1.1),
            },
            100,
        )
        for kind in get_args(Off)
    ),
    Criterion(
        "row-at-zero",
        "a row at zero for 50 slices",
        row_at_zero,
        {
            "flagged": Asked(at_least=0.95),
            "named": Asked(at_least=1, over="worst"),
            "others": Asked(at_most=1.1),
            "returned": Asked(at_most=1.1),
            "after": Asked(at_most=1.1),
        },
        200,
    ),
)
