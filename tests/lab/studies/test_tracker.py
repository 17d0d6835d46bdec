import json
import math

import pytest

from undertow.lab.criteria import registry
from undertow.lab.criteria.criterion import Asked, Criterion
from undertow.lab.studies import tracker as study
from undertow.lab.studies.entries import Entry, entries, settings_of, variants
from undertow.model import control


def numbers(trial):
    if trial.seed == 13:
        raise FileNotFoundError("the file is\nmissing")
    return {"error": trial.seed / trial.slices, "nothing": math.nan, "beyond": math.inf}


ASKED = {"error": Asked(at_most=0.3), "nothing": Asked(at_most=1), "beyond": Asked(at_least=1)}


@pytest.fixture
def criterion(monkeypatch):
    made = Criterion("toy", "a toy", numbers, ASKED, slices=10)
    monkeypatch.setitem(registry.CRITERIA, "toy", made)
    return made


def test_a_line_for_every_number_and_every_trial(criterion, reporter, tmp_path):
    out = tmp_path / "deep" / "tracker.jsonl"
    table, records = study.tracker([criterion], [Entry("last_value")], [1, 4], reporter, out)
    assert table.headings == ("stream", "number", "asked", "last_value")
    assert table.rows == [
        ("a toy (toy)", "error", "≤ 0.3", "0.25 ✓"),
        ("", "nothing", "≤ 1", "–"),
        ("", "beyond", "≥ 1", "–"),
    ]
    assert [json.loads(line) for line in out.read_text().splitlines()] == records
    assert [record["numbers"]["error"] for record in records] == [0.1, 0.4]


def test_regret_is_the_error_over_the_best_of_the_others(criterion):
    columns = [Entry("cp"), Entry("cp", {"window": 5}), Entry("last_value")]
    records = [
        {"row": "toy", "method": entry.method, "settings": dict(entry.settings), "numbers": {"error": error}}
        for entry, error in zip(columns, (0.3, 0.2, None), strict=True)
    ]
    assert study.regret([criterion], columns, records).rows == [("a toy", "0.3", "0.2 cp window=5", "1.500")]
    assert study.regret([criterion], columns[:1], records).rows == []


def test_what_goes_wrong_is_said_and_stops_nothing(criterion, reporter, tmp_path):
    table, records = study.tracker([criterion], [Entry("last_value")], [13, 1], reporter, tmp_path / "t.jsonl")
    assert reporter.sentences == ["toy, last_value: the file is missing"]
    assert records[1]["numbers"]["error"] == 0.1
    assert table.rows[0][-1] == "–"


def test_shorter_streams_and_a_criterion_s_own_number_of_seeds(criterion, reporter, tmp_path):
    own = Criterion("toy", "a toy", numbers, ASKED, slices=10, seeds=3)
    _, records = study.tracker([own], [Entry("last_value")], [5], reporter, tmp_path / "t.jsonl", slices=4)
    assert [(record["seed"], record["slices"]) for record in records] == [(5, 4), (6, 4), (7, 4)]


def test_an_unknown_method_is_said_before_anything_runs(criterion, reporter, tmp_path):
    with pytest.raises(ValueError, match="unknown method lsat: choose from"):
        study.tracker([criterion], [Entry("lsat")], [0], reporter, tmp_path / "t.jsonl")
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.slow
def test_worker_processes_give_the_same_numbers(reporter, tmp_path):
    rows, columns = registry.chosen(["walks", "empty-season"]), [Entry("last_value"), Entry("moving_mean")]
    found = []
    for jobs in (1, 2):
        _, records = study.tracker(rows, columns, [0], reporter, tmp_path / "t.jsonl", jobs=jobs, slices=30)
        found.append({(one["row"], one["method"]): one["numbers"] for one in records})
    assert found[0] == found[1]


def test_settings_of_one_method_or_of_all():
    assert settings_of(["a=1", "b=text", "c=false", "d=x=y"]) == {"a": 1, "b": "text", "c": False, "d": "x=y"}
    with pytest.raises(ValueError, match="a setting must be name=value, got 'a': write"):
        settings_of(["a"])
    made = entries(["cp", "last_value"], ["cp.preset=fast", "all=1"])
    assert [entry.label for entry in made] == ["cp preset=fast all=1", "last_value all=1"]


def test_with_and_without():
    made = variants(Entry("cp", {"preset": "default"}), ["robust=false", "window=5+max_rank=3"])
    assert [dict(entry.settings) for entry in made] == [
        {"preset": "default"},
        {"preset": "default", "robust": False},
        {"preset": "default", "window": 5, "max_rank": 3},
    ]
    with pytest.raises(ValueError, match="needs at least one replacement"):
        variants(Entry("cp"), [])


def test_a_column_may_have_another_constant_of_the_model(monkeypatch, reporter, tmp_path):
    seen = Criterion("toy", "a toy", lambda trial: {"sweeps": control.SWEEPS_PER_ROUND}, {"sweeps": Asked()}, slices=10)
    monkeypatch.setitem(registry.CRITERIA, "toy", seen)
    columns = variants(Entry("last_value"), ["SWEEPS_PER_ROUND=3"])
    table, _ = study.tracker([seen], columns, [1], reporter, tmp_path / "tracker.jsonl")
    assert table.rows == [("a toy (toy)", "sweeps", "", "6", "3")]
