"""Criteria on generated streams: low rank with outliers, counts, walks, noise that is not normal, traffic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.making import from_synthetic
from undertow.lab.criteria.criterion import Asked, Criterion, Numbers, Trial
from undertow.lab.criteria.measures import flagged, found, hidden_error, known, mean_error, ratio, usual, within
from undertow.lab.criteria.recorded import BURN_IN, COVERAGE
from undertow.lab.references import best_level
from undertow.lab.scores import error_curves, scores
from undertow.lab.studies.accuracy import ROWS
from undertow.lab.synthetic.counts import poisson, walks
from undertow.lab.synthetic.ingredients import SyntheticStream
from undertow.lab.synthetic.noises import heavy_tailed, lognormal_traffic, proportional
from undertow.lab.track import Floats

SURE = 0.95
"""Probability beyond which an outlier is called certain."""
PLANTED = 0.02
"""Fraction of the entries that are off under heavy-tailed noise."""
SKEWED = 0.5
"""Standard deviation of the logarithm of noise that is far from symmetric."""
EARLY = 10
"""First slice in which proportional noise is scored."""
REACHED = (0.028, 0.091, 0.180, 0.032, 0.0020, 0.0042, 0.0033)
"""Median error on the seven low-rank rows that has been reached before; within 5 % of it is asked."""


def low_rank(dataset: str, condition: Condition) -> Callable[[Trial], Numbers]:
    """Median over slices of the error of all entries against the true low rank, coverage, F1 of outliers."""

    def measure(trial: Trial) -> Numbers:
        data = DATASETS[dataset].case(condition, trial.seed, slices=trial.slices, burn_in=BURN_IN).data
        track = trial.follow(data.values)
        curves = error_curves(data, track)
        errors = [math.inf if error is None else error for error in curves["all_error"][BURN_IN:]]
        found = scores(data, track, curves)
        f1, coverage = known(found["outlier_f1"]), known(found["coverage"])
        hidden = hidden_error(data, track.low_rank)
        return {"error": float(np.median(errors)), "hidden error": hidden, "F1": f1, "coverage": coverage}

    return measure


def beside_level(generate: Callable[..., SyntheticStream], **settings: float | bool) -> Callable[[Trial], Numbers]:
    """Error over that of the per-entry level at its best pace in hindsight, and the fraction flagged.

    On hidden entries: as they were generated, noise included, as with recordings; and against the truth behind them.
    """

    def measure(trial: Trial) -> Numbers:
        stream = generate(**settings, slices=trial.slices, seed=trial.seed)
        data = from_synthetic(stream, BURN_IN)
        track = trial.follow(data.values)
        hidden = within(data.hidden, BURN_IN)

        def over(truth: Floats) -> float:
            level = best_level(data.values, lambda estimates: mean_error(estimates, truth, hidden))
            return ratio(mean_error(track.low_rank, truth, hidden), level)

        return {
            "over level": over(stream.complete),
            "over level, truth": over(stream.low_rank),
            "flagged": flagged(data, track),
        }

    return measure


def heavy_tails(trial: Trial) -> Numbers:
    """Student-t noise: coverage and fraction flagged on clean data; of the entries surely outliers, those planted."""
    clean, planted = (
        from_synthetic(heavy_tailed(slices=trial.slices, planted=fraction, seed=trial.seed), BURN_IN)
        for fraction in (0.0, PLANTED)
    )
    numbers = usual(clean, trial.follow(clean.values))
    precision, recall = found(planted, trial.follow(planted.values), SURE)
    return {**numbers, "precision": precision, "recall": recall}


def in_proportion(noise: float, daily: bool) -> Callable[[Trial], Numbers]:
    """Fraction flagged from slice 10 on where nothing is wrong."""

    def measure(trial: Trial) -> Numbers:
        data = from_synthetic(proportional(noise, slices=trial.slices, daily=daily, seed=trial.seed), EARLY)
        return {"flagged": flagged(data, trial.follow(data.values))}

    return measure


def skewed(trial: Trial) -> Numbers:
    """Noise of 50 % in proportion, 30 % of the entries hidden: totals, and intervals of 95 %, on hidden entries.

    A mean that is a median comes out 12 % too low, and a symmetric interval reaches below zero.
    """
    stream = proportional(SKEWED, slices=trial.slices, observed=0.7, seed=trial.seed)
    data = from_synthetic(stream, BURN_IN)
    hidden = within(data.hidden, BURN_IN)
    model = trial.make()
    trial.reporter.start(trial.label, len(data.values))
    means, bounds = [], []
    for x in data.values:
        result = model.update(x)
        means.append(np.asarray(result.mean))
        bounds.append(result.interval() if hasattr(result, "interval") else np.full((2, *x.shape), np.nan))
        trial.reporter.tick()
    lower, upper = (part[hidden] for part in np.moveaxis(np.array(bounds), 1, 0))
    truth = stream.complete[hidden]
    inside = float(np.mean((lower <= truth) & (truth <= upper)))
    return {
        "totals": ratio(float(np.array(means)[hidden].sum()), float(truth.sum())),
        "lower end": float(lower.min()),
        "inside": math.nan if np.isnan(lower).any() else inside,
    }


def alerts(trial: Trial) -> Numbers:
    """Precision and recall of the entries flagged in traffic with log-normal noise."""
    data = from_synthetic(lognormal_traffic(slices=trial.slices, seed=trial.seed), BURN_IN)
    precision, recall = found(data, trial.follow(data.values))
    return {"precision": precision, "recall": recall}


def _beside_level(
    name: str, title: str, generate: Callable[..., SyntheticStream], **settings: float | bool
) -> Criterion:
    asked = {"over level": Asked(at_most=1.02), "over level, truth": Asked(), "flagged": Asked(at_most=0.001)}
    return Criterion(name, title, beside_level(generate, **settings), asked, 300)


def _in_proportion(name: str, noise: float, daily: bool = False) -> Criterion:
    title = f"proportional noise, {noise:.0%}".replace("%", " %") + (", daily curve" if daily else "")
    asked = {"flagged": Asked(at_most=0.005, over="worst")}
    return Criterion(name, title, in_proportion(noise, daily), asked, 100, seeds=8)


CRITERIA = (
    *(
        Criterion(
            f"low-rank-{number}",
            row.name,
            low_rank(row.dataset, row.condition),
            {"error": Asked(at_most=1.05 * error), "F1": Asked(at_least=0.98), "coverage": COVERAGE},
            100,
        )
        for number, (row, error) in enumerate(zip(ROWS, REACHED, strict=True), 1)
    ),
    _beside_level("poisson-.3", "Poisson counts, mean 0.3", poisson, mean=0.3),
    _beside_level("poisson-5", "Poisson counts, mean 5", poisson, mean=5.0),
    _beside_level("walks", "random walks, one per entry", walks),
    _beside_level("walk-sums", "sums of random walks of rows and columns", walks, shared=True),
    Criterion(
        "student",
        "noise of Student-t, 3 degrees of freedom",
        heavy_tails,
        {
            "coverage": COVERAGE,
            "flagged": Asked(at_most=0.005),
            "precision": Asked(at_least=0.85),
            "recall": Asked(),
            "error": Asked(),
        },
        200,
    ),
    _in_proportion("proportional-5", 0.05),
    _in_proportion("proportional-12", 0.12),
    _in_proportion("proportional-30", 0.30),
    _in_proportion("proportional-daily", 0.12, daily=True),
    Criterion(
        "skewed",
        "proportional noise, 50 %, 30 % hidden",
        skewed,
        {"totals": Asked(at_least=0.98, at_most=1.02), "lower end": Asked(at_least=0.0), "inside": COVERAGE},
        200,
    ),
    Criterion(
        "traffic",
        "generated traffic, log-normal noise 12 %, planted anomalies",
        alerts,
        {"precision": Asked(at_least=0.95), "recall": Asked(at_least=0.93)},
        1075,
    ),
)
