"""Other values of the model's constants, for as long as a trial takes."""

import os

import pytest

from undertow.lab.constants import apart, replaced
from undertow.model import control, defaults


def test_names_in_capitals_are_constants_and_unknown_ones_are_said():
    assert apart({"max_rank": 3, "MAX_ADDED": 1}) == ({"max_rank": 3}, {"MAX_ADDED": 1})
    assert apart({}) == ({}, {})
    with pytest.raises(ValueError, match=r"unknown constant NO_SUCH_THING: choose from .*MAX_ADDED"):
        apart({"NO_SUCH_THING": 1})


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
