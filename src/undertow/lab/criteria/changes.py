"""Criteria on streams that change their nature in mid-stream, once or again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from undertow.lab.cases.making import from_synthetic
from undertow.lab.criteria.criterion import Asked, Criterion, Numbers, Trial
from undertow.lab.criteria.measures import best_error, hidden_error, ratio, usual
from undertow.lab.criteria.recorded import BURN_IN
from undertow.lab.references import best_level
from undertow.lab.synthetic.regimes import regimes

PAIRS = (("level", "factors"), ("quiet", "spiky"), ("linear", "multiplicative"))
TURNS = ("level", "factors", "covariance", "drift")
EVERY = 50
"""Slices between switches."""
LATE = 17 / 26
"""Of the slices, after which a late change comes: after 170 of 260, not shortly before one of the tracker's reviews."""


def change(before: str, after: str, part: float) -> Callable[[Trial], Numbers]:
    """Error on hidden entries from 20 slices after the change on, over three references.

    "over best": that of the best single predictor of the model itself on these slices, and "over best before" the same
    for those before the change; "over fresh": a new model of the same kind that begins with the change, and so has
    nothing to unlearn; "over level": the per-entry level after the change at its best pace in hindsight.

    Args:
        before: the kind of stream that it is.
        after: the kind that it becomes.
        part: of its slices, after which it does.
    """

    def measure(trial: Trial) -> Numbers:
        at = math.ceil(part * trial.slices)
        data = from_synthetic(regimes((before, after), slices=trial.slices, every=at, seed=trial.seed), at + BURN_IN)
        later = replace(
            data,
            values=data.values[at:],
            truth=data.truth[at:],
            clean=data.clean[at:],
            corrupted=None if data.corrupted is None else data.corrupted[at:],
            burn_in=BURN_IN,
        )
        track, said = trial.with_predictions(data.values)
        error, earlier = hidden_error(data, track.low_rank), (BURN_IN, at)
        fresh = hidden_error(later, trial.follow(later.values).low_rank)
        level = best_level(later.values, lambda estimates: hidden_error(later, estimates))
        return {
            "error": error,
            "over best before": ratio(hidden_error(data, track.low_rank, *earlier), best_error(data, said, *earlier)),
            "over best": ratio(error, best_error(data, said)),
            "over fresh": ratio(error, fresh),
            "over level": ratio(error, level),
        }

    return measure


def switching(trial: Trial) -> Numbers:
    """A stream that goes from level to factors to covariance to drift, 50 slices each: error, coverage, flagged.

    "over best": over that of the model's single predictor that is best on the whole stream, its regret; "over best of
    each turn": of the one that is best in each turn, which takes knowing when the stream will switch.
    """
    data = from_synthetic(regimes(TURNS, slices=trial.slices, every=EVERY, seed=trial.seed), BURN_IN)
    track, said = trial.with_predictions(data.values)
    numbers = usual(data, track)
    level = best_level(data.values, lambda estimates: hidden_error(data, estimates))
    begins = np.unique(np.maximum(np.arange(0, trial.slices, EVERY), BURN_IN))
    ends = np.append(begins[1:], trial.slices)
    turns = [best_error(data, said, int(first), int(last)) for first, last in zip(begins, ends, strict=True)]
    return {
        **numbers,
        "over best": ratio(numbers["error"], best_error(data, said)),
        "over best of each turn": ratio(numbers["error"], float(np.average(turns, weights=ends - begins))),
        "over level": ratio(numbers["error"], level),
    }


def _change(before: str, after: str, late: bool = False) -> Criterion:
    most = Asked(at_most=1.1)
    asked = {"error": Asked(), "over best before": most, "over best": most, "over fresh": most, "over level": most}
    name, slices, part = ("-late", 260, LATE) if late else ("", 200, 0.5)
    title = f"{before}, then {after}" + (", at two thirds" if late else "")
    return Criterion(f"{before}-{after}{name}", title, change(before, after, part), asked, slices)


CRITERIA = (
    *(_change(*pair) for one in PAIRS for pair in (one, one[::-1])),
    *(_change(*pair, late=True) for pair in (PAIRS[-1], PAIRS[-1][::-1])),
    Criterion(
        "switching",
        "another kind of stream every 50 slices",
        switching,
        {
            "error": Asked(),
            "over best": Asked(at_most=1.03),
            "over best of each turn": Asked(),
            "over level": Asked(),
            "coverage": Asked(),
            "flagged": Asked(),
        },
        400,
    ),
)
