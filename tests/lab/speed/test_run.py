import json
from dataclasses import replace

import pytest
from lab.speed.conftest import tiny

from undertow.lab.accuracy.reporter import Silent
from undertow.lab.speed.axes import Axis, axes
from undertow.lab.speed.page import write_page
from undertow.lab.speed.registry import CASES
from undertow.lab.speed.run import Plan, run
from undertow.lab.speed.subject import Subject
from undertow.lab.speed.tables import figures
from undertow.model.step import advance


class Counting(Silent):
    planned = finished = 0

    def begin(self, cells):
        self.planned = cells

    def done(self):
        self.finished += 1


class Still(Subject):
    """Does nothing, and says so little that every figure but the time is missing."""

    def feed(self, t):
        return None


def lost(*arguments):
    raise FileNotFoundError("x.mat is expected at /there: put it there")


@pytest.fixture
def record(small):
    still = replace(small, name="still", make=lambda case, stream: Still())
    axis = Axis("side", "side, I", lambda size: tiny(CASES["small"], observed=size), (0.5, 0.75, 1.0), float, float)
    reporter = Counting()
    gone = tiny(CASES["airport"], source=lost)
    made = run(Plan([small, still, gone], [axis], quick=True, slices=2, repetitions=2), reporter)
    assert reporter.finished == reporter.planned
    assert reporter.sentences == ["airport is left out: x.mat is expected at /there: put it there"]
    return made


def test_a_record_holds_everything_and_the_page_shows_it(record, tmp_path):
    json.dumps(record, allow_nan=False)
    small, still = record["cases"]
    assert small["seconds"] > 0
    assert small["times_plain"] == pytest.approx(small["plain_flops_per_second"] / small["flops_per_second"])
    assert small["rivals"][0]["times_ours"] == pytest.approx(small["rivals"][0]["seconds"] / small["seconds"])
    assert small["error"] < 1
    assert [still[name] for name in ("flops", "times_plain", "error", "bytes", "sweep_seconds")] == [None] * 5
    assert record["skipped"][0]["case"] == "airport"
    (growth,) = record["growth"]
    assert growth["sizes"] == [0.5, 0.75]
    assert growth["time_slope_formula"] == pytest.approx(1)

    html = write_page(record, [record], tmp_path).read_text()
    for words in ("small", "still", "OLSTEC", "x.mat is expected at /there", "2 runs on this device", "Growth"):
        assert words in html
    assert html.count("data:image/png;base64,") == 4  # two cases, growth, trend
    assert "https://" not in html


@pytest.mark.usefixtures("record")
def test_no_compiled_program_outlives_its_case():
    assert advance._cache_size() == 0


def test_axes_cross_at_one_base_and_grow_one_thing():
    for gpu in (False, True):
        for axis in axes(gpu):
            cases = [axis.at(size) for size in axis.sizes]
            varied = {(case.shape, case.window, case.max_rank, case.observed) for case in cases}
            assert len(varied) == len(axis.sizes) == 4
            values = [axis.work(size) for size in axis.sizes]
            assert values == sorted(values)


def test_numbers_as_people_read_them():
    assert [figures(value) for value in (None, 0.0, 0.0001234, 0.5, 12.345, 123456.7)] == [
        "–",
        "0",
        "0.0001",
        "0.500",
        "12.3",
        "123 457",
    ]
