import json
from dataclasses import replace

import pytest

from undertow.lab.accuracy.contenders import CONTENDERS
from undertow.lab.accuracy.heat_map import colour, digits
from undertow.lab.accuracy.ranking import columns, standings, winner
from undertow.lab.accuracy.reporter import Silent
from undertow.lab.accuracy.scoreboard import Plan, run
from undertow.lab.accuracy.scoreboard_page import write_page
from undertow.lab.accuracy.streams import STREAMS, chosen

METHODS = [CONTENDERS[name] for name in ("last_value", "moving_mean", "running_median", "online_cp", "olstec")]


class Counting(Silent):
    def __init__(self):
        super().__init__()
        self.planned = self.finished = self.computed = 0

    def begin(self, cells):
        self.planned = cells

    def cell(self, label, slices):
        self.computed += 1

    def done(self):
        self.finished += 1


def test_rows_columns_winners_and_page(tiny, tmp_path):
    def absent(*arguments):
        raise FileNotFoundError("x.mat is expected at /there: put it there")

    lost = replace(tiny, name="lost", title="lost stream", make=absent, recorded=True)
    reporter = Counting()
    plan = Plan([tiny, lost], METHODS, seeds=2)
    board = run(plan, tmp_path, reporter)
    assert reporter.finished == reporter.planned
    assert reporter.sentences
    assert set(reporter.sentences) == {"x.mat is expected at /there: put it there"}
    assert json.loads((tmp_path / "scoreboard.json").read_text()) == board

    sparse, full, *missing = board["rows"]
    assert (sparse["judged_by"], full["judged_by"]) == ("hidden_error", "all_error")
    assert [row["judged_by"] for row in missing] == [None, None]
    assert sparse["entries"]["online_cp"]["published"]["reason"] == "needs complete slices"
    assert full["entries"]["online_cp"]["published"]["seeds"] == 2
    assert [column.title for column in columns(board)][:3] == ["last value", "moving mean", "moving mean · tuned"]
    first = winner(board, sparse, "hidden_error")
    best = min(
        entry["scores"]["hidden_error"]
        for method in sparse["entries"].values()
        for entry in method.values()
        if entry["status"] == "ok"
    )
    assert sparse["entries"][first.method][first.kind]["scores"]["hidden_error"] == best
    assert sum(standing.won for standing in standings(board)) == 2

    html = write_page(board, tmp_path).read_text()
    assert html.count('class="win"') >= 2
    assert "data:image/png;base64," in html
    assert "x.mat is expected at /there" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html

    again = Counting()
    assert run(plan, tmp_path, again) == board
    assert again.computed == 0


def test_quick_takes_the_rows_meant_for_it(tiny):
    assert len(Plan([tiny], METHODS, quick=True).rows()) == 1
    assert len(Plan([tiny], METHODS).rows()) == 2
    untuned = Plan([tiny], METHODS, seeds=3, tuned=False)
    assert untuned.cells() == 2 * 3 * len(METHODS)


def test_unknown_streams_list_the_known_ones():
    with pytest.raises(ValueError, match="unknown stream abilena: choose from drifting, authors"):
        chosen("abilena")
    assert [stream.name for stream in chosen("abilene")] == ["abilene"]
    assert any(stream.in_quick for stream in STREAMS.values())


def test_colours_run_from_green_to_red():
    assert colour(0) == "rgb(22,112,101)"
    assert colour(5) == "rgb(196,78,58)"
    assert digits(0.12345, 3) == "0.123"
    assert digits(0.00012, 3) == "0.0001"
    assert digits(1234.5, 3) == "1.23e+03"
