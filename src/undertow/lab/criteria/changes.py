"""Criteria on streams that change their nature in mid-stream, once or again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from undertow.lab.cases.making import from_synthetic
from undertow.lab.criteria.criterion import Asked, Criterion, Numbers, Trial
from undertow.lab.criteria.measures import hidden_error, ratio, usual
from undertow.lab.criteria.recorded import BURN_IN
from undertow.lab.references import best_level
from undertow.lab.synthetic.regimes import regimes

PAIRS = (("level", "factors"), ("quiet", "spiky"), ("linear", "multiplicative"))
TURNS = ("level", "factors", "covariance", "drift")
EVERY = 50
"""Slices between switches."""


def change(before: str, after: str) -> Callable[[Trial], Numbers]:
    """Error on hidden entries from 20 slices after the change on, over two references.

    "over fresh": a new model of the same kind that begins with the change, and so has nothing to unlearn; "over level":
    the per-entry level on the second half at its best pace in hindsight.
    """

    def measure(trial: Trial) -> Numbers:
        half = trial.slices // 2
        data = from_synthetic(regimes((before, after), slices=trial.slices, seed=trial.seed), half + BURN_IN)
        second = replace(
            data,
            values=data.values[half:],
            truth=data.truth[half:],
            clean=data.clean[half:],
            corrupted=None if data.corrupted is None else data.corrupted[half:],
            burn_in=BURN_IN,
        )
        error = hidden_error(data, trial.follow(data.values).low_rank)
        fresh = hidden_error(second, trial.follow(second.values).low_rank)
        level = best_level(second.values, lambda estimates: hidden_error(second, estimates))
        return {"error": error, "over fresh": ratio(error, fresh), "over level": ratio(error, level)}

    return measure


def switching(trial: Trial) -> Numbers:
    """A stream that goes from level to factors to covariance to drift, 50 slices each: error, coverage, flagged."""
    data = from_synthetic(regimes(TURNS, slices=trial.slices, every=EVERY, seed=trial.seed), BURN_IN)
    numbers = usual(data, trial.follow(data.values))
    level = best_level(data.values, lambda estimates: hidden_error(data, estimates))
    return {**numbers, "over level": ratio(numbers["error"], level)}


CRITERIA = (
    *(
        Criterion(
            f"{before}-{after}",
            f"{before}, then {after}",
            change(before, after),
            {"error": Asked(), "over fresh": Asked(at_most=1.1), "over level": Asked(at_most=1.1)},
            200,
        )
        for pair in PAIRS
        for before, after in (pair, pair[::-1])
    ),
    Criterion(
        "switching",
        "another kind of stream every 50 slices",
        switching,
        {"error": Asked(), "over level": Asked(at_most=1.03), "coverage": Asked(), "flagged": Asked()},
        400,
    ),
)
