"""Every criterion with a model that carries the last value on: what is tested is the measure, not the model."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from undertow.lab.criteria import recorded
from undertow.lab.criteria.criterion import Trial
from undertow.lab.criteria.registry import CRITERIA, chosen

GENERATED = [
    name
    for name in CRITERIA
    if not any(name.startswith(part) for part in ("first-", "empty-abilene"))
    and CRITERIA[name] not in recorded.CRITERIA
]


class Carry:
    """The last value of every entry, before any the mean of the others; jumps by more than 5 are not learned."""

    def __init__(self):
        self.last = None

    def update(self, x):
        last = np.full(x.shape, np.nan) if self.last is None else self.last
        jump = np.abs(x - last) > 5
        self.last = np.where(np.isnan(x) | jump, last, x)
        known = self.last[~np.isnan(self.last)]
        return SimpleNamespace(
            mean=np.where(np.isnan(self.last), known.mean() if known.size else 0.0, self.last),
            std=np.ones(x.shape),
            outliers=np.zeros(x.shape),
            outlier_probability=jump * 1.0,
            status=SimpleNamespace(codes=("JUMP",) if jump.any() else ()),
        )


@pytest.fixture(scope="module")
def measure():
    kept = {}

    def numbers(name, slices=64):
        if name not in kept:
            kept[name] = CRITERIA[name].measure(Trial(Carry, 0, slices))
        return kept[name]

    return numbers


@pytest.mark.parametrize("name", GENERATED)
def test_every_number_asked_is_measured(name, measure):
    numbers = measure(name)
    assert set(CRITERIA[name].asked) <= set(numbers)
    assert not any(math.isinf(value) for value in numbers.values())


def test_carrying_on_is_as_good_as_the_last_mean(measure):
    for name in ("empty-autoregressive", "empty-season"):
        assert measure(name)["over carried"] == 1
    assert 0.32 < measure("empty-autoregressive")["error"] < 0.8  # one step, and entries hidden for several


def test_an_offset_does_not_matter_to_a_model_that_only_carries_on(measure):
    assert measure("offset")["difference"] == pytest.approx(0, abs=1e-6)


def test_a_shifted_slice_is_flagged_and_named_and_a_doubled_one_does_harm(measure):
    shifted, doubled = measure("slice-shifted"), measure("slice-doubled")
    assert (shifted["flagged"], shifted["named"]) == (1, 1)
    assert 1 < shifted["next slices"] < 1.3  # what is carried on is one slice older
    assert doubled["flagged"] < 0.5
    assert doubled["next slices"] > 2


def test_a_first_slice_of_nothing_does_no_harm():
    numbers = CRITERIA["first-sparse"].measure(Trial(Carry, 0, 30))
    assert numbers["nothing"] == 1
    assert numbers["garbage"] > 100


def test_the_level_at_its_best_pace_is_not_beaten_on_walks(measure):
    assert 1 < measure("walks")["over level"] < 1.1
    assert measure("walks")["flagged"] == 0


class Two(Carry):
    """Answers with the mean of two predictors, one of which is right about what is carried on."""

    def update(self, x):
        result = super().update(x)
        result.predictions = {"right": result.mean, "high": result.mean + 2}
        result.mean = result.mean + 1
        return result


def test_regret_is_over_the_best_single_predictor_of_the_same_slices():
    for name in ("level-factors", "linear-multiplicative-late", "switching"):
        found, plain = (CRITERIA[name].measure(Trial(model, 3, 64)) for model in (Two, Carry))
        assert found["over best"] == pytest.approx(found["error"] / plain["error"])
        assert math.isnan(plain["over best"])
    assert found["over best of each turn"] == pytest.approx(found["over best"])


def test_names_and_beginnings_of_names():
    assert [one.name for one in chosen(["proportional-", "walks"])][-2:] == ["proportional-daily", "walks"]
    assert len(chosen(None)) == len(CRITERIA)
    with pytest.raises(ValueError, match="unknown row wlaks: choose from hangzhou"):
        chosen(["wlaks"])
