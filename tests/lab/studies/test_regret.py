from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from undertow.lab.criteria.criterion import Asked, Criterion, Trial
from undertow.lab.criteria.registry import CRITERIA
from undertow.lab.studies import regret

TRUTH = np.ones((4, 3))


def measure(trial):
    first, second = (trial.follow(TRUTH).low_rank for _ in range(2))  # a model of its own for each
    return {"error": float(np.abs(first - TRUTH).mean() + np.abs(second - TRUTH).mean()), "other": 9.0}


TOY = Criterion("toy", "a toy", measure, {"error": Asked()}, slices=4)


@dataclass
class Two:
    """Answers with the mean of two predictors."""

    def update(self, x):
        says = {"above": x + 0.5, "below": x - 0.1}
        mean = sum(says.values()) / 2
        return SimpleNamespace(mean=mean, predictions=says, std=None, outliers=None, outlier_probability=None)


def test_every_predictor_is_measured_as_if_it_had_answered():
    found = regret.errors(TOY, Trial(Two, seed=0, slices=4))
    assert found == pytest.approx({"tracker": 0.4, "above": 1.0, "below": 0.2})


def test_a_line_for_every_row_that_ran():
    trials = [{"tracker": 1.2, "a": 1.0, "b": 4.0}, {"tracker": 1.0, "a": 2.0, "b": 0.5}, {}]
    records = [{"row": "toy", "numbers": one} for one in trials]
    table = regret.table([TOY, CRITERIA["walks"]], records)
    assert table.rows == [("a toy (toy)", "1.1", "1.5 a", "0.733", "2.000")]


def test_rows_without_hidden_entries_have_no_regret():
    assert [one.name for one in regret.rows(["walks", "low-rank-"])][:2] == ["walks", "low-rank-2"]
    with pytest.raises(ValueError, match="none of these rows has a regret, got lobby"):
        regret.rows(["lobby"])
    assert {one.name for one in regret.rows(None)} == set(regret.ROWS)
