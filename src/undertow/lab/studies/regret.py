"""Regret: the error of the tracker over that of the best of its own predictors, chosen in hindsight, row by row.

The tracker runs once and what every predictor says is recorded. Then the criterion is measured again for each of them,
as if it had been the answer. All are measured on hidden entries: of an observed one a predictor predicts without having
seen it, and the tracker with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from undertow.lab.criteria.criterion import Criterion, Numbers, Trial
from undertow.lab.criteria.measures import ratio
from undertow.lab.criteria.registry import chosen
from undertow.lab.models import Model
from undertow.lab.predictions import Recording, Slices
from undertow.lab.studies.table import StudyTable
from undertow.lab.track import Floats

ERRORS = ("hidden error", "error", "over level")
"""Numbers of a criterion that are errors on hidden entries: the first of them that it has."""
ANSWER = "tracker"
ROWS = (
    *("hangzhou", "radar", "chicago", "abilene-50", "abilene-10", "intel", "airport", "pincat", "sunnybrook"),
    *("low-rank-2", "low-rank-3", "low-rank-4", "low-rank-6", "low-rank-7"),
    *("poisson-.3", "poisson-5", "walks", "walk-sums", "student"),
    *("level-factors", "factors-level", "quiet-spiky", "spiky-quiet"),
    *("linear-multiplicative", "multiplicative-linear", "linear-multiplicative-late", "multiplicative-linear-late"),
    "switching",
)
"""Those with hidden entries and one error. On the others the tracker is compared with itself."""


def rows(names: Sequence[str] | None) -> list[Criterion]:
    """Those of `ROWS` that are asked for, as `chosen` reads names."""
    wanted = [criterion for criterion in chosen(names or ROWS) if criterion.name in ROWS]
    if not wanted:
        raise ValueError(
            f"none of these rows has a regret, got {', '.join(names or ())}: choose from {', '.join(ROWS)}"
        )
    return [replace(criterion, seeds=None) for criterion in wanted]


def errors(criterion: Criterion, trial: Trial) -> Numbers:
    """Error of the tracker, and of each of its predictors if it alone had answered."""
    recorded: list[Slices] = []

    def recording() -> Model:
        recorded.append([])
        return Recording(trial.make(), recorded[-1])

    found = {ANSWER: _error(criterion, replace(trial, make=recording))}
    for name in recorded[0][0]:
        again = iter(recorded)
        found[name] = _error(criterion, replace(trial, make=_replaying(again, name)))
    return found


def table(criteria: Sequence[Criterion], records: Sequence[Mapping[str, Any]]) -> StudyTable:
    """Mean errors over seeds, and the tracker's over the smallest of its predictors, seed by seed and in the mean."""
    headings = ("stream", "tracker", "best predictor", "over it", "over it, worst seed")
    made = StudyTable("Error over that of the best predictor in hindsight", headings)
    for criterion in criteria:
        trials = [one["numbers"] for one in records if one["row"] == criterion.name and one["numbers"]]
        if not trials:
            continue
        means = {name: float(np.mean([_number(one[name]) for one in trials])) for name in trials[0]}
        answer, single = means.pop(ANSWER), [_regret(one) for one in trials]
        best = min(means, key=lambda name: means[name])
        made.rows.append(
            (
                f"{criterion.title} ({criterion.name})",
                f"{answer:.4g}",
                f"{means[best]:.4g} {best}",
                f"{ratio(answer, means[best]):.3f}",
                f"{max(single):.3f}",
            )
        )
    return made


@dataclass(frozen=True)
class _Said:
    """What one predictor said, as a result."""

    mean: Floats
    std: None = None
    outliers: None = None
    outlier_probability: None = None


class _Replaying:
    """One predictor of a recording, as a model."""

    def __init__(self, slices: Slices, name: str) -> None:
        self._said = iter([one[name] for one in slices])

    def update(self, x: Any, /) -> _Said:
        """What it said of the next slice."""
        return _Said(next(self._said))


def _replaying(recorded: Iterator[Slices], name: str) -> Callable[[], Model]:
    return lambda: _Replaying(next(recorded), name)


def _error(criterion: Criterion, trial: Trial) -> float:
    numbers = criterion.measure(trial)
    return next(numbers[name] for name in ERRORS if name in numbers)


def _regret(numbers: Mapping[str, float | None]) -> float:
    others = [_number(value) for name, value in numbers.items() if name != ANSWER]
    return ratio(_number(numbers[ANSWER]), min(others))


def _number(value: float | None) -> float:
    return math.inf if value is None else value
