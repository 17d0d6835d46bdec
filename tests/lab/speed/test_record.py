import json
from dataclasses import replace

import jax
import pytest
from lab.speed.conftest import Stub, tiny

from undertow.lab.pages.speed import write_page
from undertow.lab.reporter import Silent
from undertow.lab.speed.axes import Axis, axes
from undertow.lab.speed.record import Effort, record
from undertow.lab.speed.registry import WORKLOADS
from undertow.lab.speed.subject import Subject

BRIEF = Effort(quick=True, slices=2, repetitions=2)


class Counting(Silent):
    planned = finished = 0

    def begin(self, total):
        self.planned = total

    def done(self):
        self.finished += 1


class Still(Subject):
    """Does nothing, and says so little that every figure but the time is missing."""

    def feed(self, t):
        return None


def lost(*arguments):
    raise FileNotFoundError("x.mat is expected at /there: put it there")


@pytest.mark.slow
def test_a_record_holds_everything_and_the_page_shows_it(stubbed, tmp_path):
    still = replace(stubbed, name="still", make=lambda workload, slices: Still())
    axis = Axis("side", "side, I", lambda size: replace(stubbed, observed=size), (0.5, 0.75, 1.0), float, float)
    reporter = Counting()
    made = record([stubbed, still, tiny(WORKLOADS["airport"], source=lost)], [axis], reporter, BRIEF)
    assert reporter.finished == reporter.planned
    assert reporter.sentences == ["airport is left out: x.mat is expected at /there: put it there"]

    json.dumps(made, allow_nan=False)
    small, still = made["workloads"]
    assert small["seconds"] > 0
    assert small["times_plain"] == pytest.approx(small["plain_flops_per_second"] / small["flops_per_second"])
    assert small["baselines"][0]["times_undertow"] == pytest.approx(small["baselines"][0]["seconds"] / small["seconds"])
    assert small["error"] == pytest.approx(1)
    assert [still[name] for name in ("flops", "times_plain", "error", "bytes", "sweep_seconds")] == [None] * 5
    assert made["skipped"][0]["workload"] == "airport"
    (growth,) = made["growth"]
    assert growth["sizes"] == [0.5, 0.75]
    assert growth["time_slope_formula"] == pytest.approx(1)

    html = write_page(made, [made], tmp_path).read_text()
    for words in ("small", "still", "OLSTEC", "x.mat is expected at /there", "2 runs on this device", "Growth"):
        assert words in html
    assert html.count("data:image/png;base64,") == 4  # two workloads, growth, trend
    assert "https://" not in html


@pytest.mark.slow
def test_no_compiled_program_outlives_its_workload(stubbed):
    compiled = jax.jit(lambda x: x + 1)
    compiled(1.0)
    assert compiled._cache_size() == 1
    record([replace(stubbed, baselines=())], [], Silent(), BRIEF)
    assert compiled._cache_size() == 0


def test_axes_cross_at_one_base_and_grow_one_thing():
    for gpu in (False, True):
        for axis in axes(gpu):
            grown = [axis.at(size) for size in axis.sizes]
            varied = {(one.shape, one.window, one.max_rank, one.observed) for one in grown}
            assert len(varied) == len(axis.sizes) == 4
            values = [axis.work(size) for size in axis.sizes]
            assert values == sorted(values)


def test_stubs_answer_as_models_do(stubbed):
    subject = Stub(stubbed, None)
    assert subject.pinned(9).feed(0) == 9
    assert subject.feed(0) == 3
