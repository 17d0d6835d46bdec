"""Other values of the model's constants, for as long as a trial takes."""

import os

import pytest

from undertow.lab.constants import apart, holders, replaced
from undertow.model import control, defaults
from undertow.tracker import combination, huber, recent


def test_names_in_capitals_are_constants_and_unknown_ones_are_said():
    assert apart({"max_rank": 3, "MAX_ADDED": 1}) == ({"max_rank": 3}, {"MAX_ADDED": 1})
    assert apart({}) == ({}, {})
    with pytest.raises(ValueError, match=r"unknown constant NO_SUCH_THING: choose from .*MAX_ADDED"):
        apart({"NO_SUCH_THING": 1})
    with pytest.raises(ValueError, match=r"unknown constant NO_SUCH_THING: choose from .*TIGHT"):
        apart({"tracker.huber.NO_SUCH_THING": 1})
    with pytest.raises(ValueError, match=r"unknown module undertow.tracker.nowhere .* tracker.law.FORGETTING"):
        apart({"tracker.nowhere.NO_SUCH_THING": 1})


def test_constants_of_any_module_are_named_with_it():
    assert apart({"tracker.huber.TIGHT": 1, "grow": True}) == ({"grow": True}, {"tracker.huber.TIGHT": 1})
    before = huber.TIGHT, combination.FORGETTING
    with replaced({"tracker.huber.TIGHT": 1.25, "tracker.combination.FORGETTING": [0.5]}):
        assert float(huber.bound(1.0)) == huber.TIGHT == 1.25
        assert combination.FORGETTING.dtype == before[1].dtype
        assert combination.FORGETTING.tolist() == [0.5]
    assert before == (huber.TIGHT, combination.FORGETTING)


def test_every_module_that_imports_a_constant_has_it():
    found = {(module.__name__, name) for module, name in holders("engine.capacity.FREE_SLOTS")}
    homes = ("undertow.engine.capacity", "undertow.tracker.predictors.cp")
    assert found == {(home, "FREE_SLOTS") for home in homes}
    assert {module.__name__ for module, _ in holders("OVER_RELAXATION")} == {defaults.__name__, control.__name__}


def test_what_a_constant_was_made_into_while_importing_would_keep_its_value():
    assert recent.CONSTANT_FOR < recent.RECENT
    with pytest.raises(ValueError, match=r"RECENT is used while undertow\.tracker\.recent is imported"):
        apart({"tracker.recent.RECENT": 5})


@pytest.mark.slow
@pytest.mark.parametrize("folder", [None, "somewhere"])
def test_every_module_has_the_other_value_until_the_trial_ends(monkeypatch, folder):
    monkeypatch.delenv("UNDERTOW_CACHE", raising=False)
    if folder is not None:
        monkeypatch.setenv("UNDERTOW_CACHE", folder)
    before = defaults.OVER_RELAXATION, control.OVER_RELAXATION
    seen = []

    def trial():
        with replaced({"OVER_RELAXATION": 0.25}):
            # Nothing that is kept may be taken for a program with this value.
            seen.extend([defaults.OVER_RELAXATION, control.OVER_RELAXATION, os.environ["UNDERTOW_CACHE"]])
            raise RuntimeError("a trial fails")

    with pytest.raises(RuntimeError, match="a trial fails"):
        trial()
    assert seen == [0.25, 0.25, "off"]
    assert before == (defaults.OVER_RELAXATION, control.OVER_RELAXATION)
    assert os.environ.get("UNDERTOW_CACHE") == folder
