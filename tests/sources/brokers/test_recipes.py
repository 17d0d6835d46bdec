"""The recipe for Quix Streams, as the page has it, with a stand-in that hands messages and a state to a function."""

import json
import sys
from types import ModuleType

import numpy as np
import pages
import pytest

import undertow as ut


class State(dict):
    def set(self, name, value):
        self[name] = json.loads(json.dumps(value))  # Quix keeps JSON


class Application:
    told = ()

    def __init__(self, **settings):
        assert settings["processing_guarantee"] == "exactly-once"

    def topic(self, name, **serializers):
        return name

    def dataframe(self, topic):
        assert topic == "flows"
        return self

    def apply(self, function, stateful):
        assert stateful
        self.function = function
        return self

    def to_topic(self, topic):
        assert topic == "found"
        return self

    def run(self):
        state = State()
        Application.told = [self.function({"values": values}, state) for values in messages()]


def messages():
    draw = np.random.default_rng(0)
    for _ in range(3):
        x = np.outer(draw.normal(size=6), draw.normal(size=5))
        yield [[None if draw.random() < 0.1 else value for value in row] for row in x.tolist()]


@pytest.mark.slow
def test_the_recipe_for_quix_streams_goes_on_exactly_from_its_state(monkeypatch):
    quix = ModuleType("quixstreams")
    quix.Application = Application
    monkeypatch.setitem(sys.modules, "quixstreams", quix)
    recipe = pages.recipe(pages.ROOT / "docs/how-to/brokers.md", "quixstreams")
    exec(compile(recipe.replace("max_rank=4, window=8", "max_rank=3, window=4"), "brokers.md", "exec"), {})
    model = ut.RobustCP(max_rank=3, window=4)
    for told, values in zip(Application.told, messages(), strict=True):
        json.dumps(told)
        np.testing.assert_array_equal(told["mean"], model.update(np.array(values, float)).mean)
