import json
from dataclasses import replace

import pytest

from undertow.lab.cases import DATASETS
from undertow.lab.methods import ALL_METHODS
from undertow.lab.pages.scoreboard import write_page
from undertow.lab.reporter import Silent
from undertow.lab.scoreboard.compare import Comparison, compare
from undertow.lab.scoreboard.ranking import columns, standings, winner

# Every rank compiles anew: what is tested here is the comparison, so the last stage of a grid is enough.
METHODS = [
    replace(ALL_METHODS[name], hindsight=ALL_METHODS[name].hindsight[-1:])
    for name in ("last_value", "moving_mean", "running_median", "online_cp", "olstec")
]


class Counting(Silent):
    def __init__(self):
        super().__init__()
        self.planned = self.finished = self.computed = 0

    def begin(self, total):
        self.planned = total

    def start(self, label, slices):
        self.computed += 1

    def done(self):
        self.finished += 1


@pytest.mark.slow
def test_rows_columns_the_best_and_the_page(tiny, tmp_path):
    def absent(*arguments):
        raise FileNotFoundError("x.mat is expected at /there: put it there")

    lost = replace(tiny, name="lost", title="lost stream", make=absent, recorded=True)
    reporter = Counting()
    comparison = Comparison([tiny, lost], METHODS, seeds=2)
    board = compare(comparison, tmp_path, reporter)
    assert reporter.finished == reporter.planned
    assert reporter.sentences
    assert set(reporter.sentences) == {"x.mat is expected at /there: put it there"}
    assert json.loads((tmp_path / "scoreboard.json").read_text()) == board

    sparse, full, *missing = board["rows"]
    assert (sparse["decided_by"], full["decided_by"]) == ("hidden_error", "all_error")
    assert [row["decided_by"] for row in missing] == [None, None]
    assert sparse["entries"]["online_cp"]["published"]["reason"] == "needs complete slices"
    assert full["entries"]["online_cp"]["published"]["seeds"] == 2
    assert [column.title for column in columns(board)][:3] == [
        "last value",
        "moving mean",
        "moving mean · in hindsight",
    ]
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
    assert compare(comparison, tmp_path, again) == board
    assert again.computed == 0


def test_quick_takes_the_rows_meant_for_it(tiny):
    assert len(Comparison([tiny], METHODS, quick=True).rows()) == 1
    assert len(Comparison([tiny], METHODS).rows()) == 2
    published = Comparison([tiny], METHODS, seeds=3, hindsight=False)
    assert published.evaluations() == 2 * 3 * len(METHODS)


def test_some_rows_are_quick():
    assert any(dataset.in_quick for dataset in DATASETS.values())
