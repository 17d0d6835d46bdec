import json
import os
import re
import sys
from pathlib import Path

import pytest
from lab.speed.conftest import Stub, tiny

from undertow.cli import main
from undertow.cli.environment import one_thread_for_numpy
from undertow.lab.speed import registry


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def call(*arguments):
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    return done.value.code


def test_engines_that_are_absent_are_named_with_their_extras(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "undertow.lab.studies.engines", None)
    assert call("bench", "engines", "--engine", "spark") == 2
    assert "pip install 'undertow[spark,ray]'" in capsys.readouterr().err


def commands():
    from typer.main import get_command

    from undertow.cli.app import app

    return get_command(app).commands["bench"].commands


def test_help_names_every_study(capsys):
    assert call("bench", "--help") == 0
    shown = capsys.readouterr().out
    assert set(commands()) == {
        "speed", "accuracy", "recorded", "changes", "faults", "tracker", "ablation", "fidelity", "fleet", "video",
        "run", "start", "compile", "forecast", "incidents", "foreground", "sharded", "capacity", "engines", "smooth",
        "regret", "cost", "layouts", "film",
    }  # fmt: skip
    assert all(name in shown for name in commands())


def test_list_names_every_workload(capsys):
    assert call("bench", "speed", "--list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in registry.WORKLOADS)
    assert call("bench", "speed", "--list", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)) == list(registry.WORKLOADS)


def test_unknown_names_are_one_sentence(tmp_path, capsys):
    out = tmp_path / "out"
    for arguments, sentence in (
        (("speed", "--workload", "vidoe", "--out", out), "unknown workload vidoe: choose from small"),
        (("recorded", "--rows", "abilena", "--out", out), "unknown row abilena: choose from Abilene, 50 % hidden"),
        (("tracker", "--rows", "wlaks", "--out", out), "unknown row wlaks: choose from hangzhou"),
        (("tracker", "--rows", "walks", "--method", "olstek", "--out", out), "unknown method olstek: choose from"),
        (("ablation", "--rows", "walks", "--out", out), "an ablation needs at least one replacement"),
        (("fidelity", "--methods", "olstek", "--out", out), "unknown method olstek: choose from online_cp"),
        (("video", "--shape", "144"), "shape must be two numbers with an x between them, got '144': use 144x176"),
    ):
        assert call("bench", *arguments) == 2
        assert capsys.readouterr().err.startswith(f"undertow: {sentence}")
    assert not out.exists()


@pytest.mark.slow
def test_a_recording_that_is_not_there_is_one_sentence(tmp_path, capsys):
    options = ("--data", tmp_path, "--out", tmp_path / "out")
    assert call("bench", "speed", "--workload", "airport", *options) == 2
    answer = capsys.readouterr()
    assert "airport_hall.mat is expected at" in answer.out
    assert answer.err == "undertow: nothing could be timed: see the sentences above\n"
    assert call("bench", "recorded", "--rows", "PINCAT", "--seeds", 1, *options) == 0
    assert capsys.readouterr().out.count("pincat.mat is expected at") == 1


@pytest.mark.slow
def test_runs_add_up_in_the_history(tmp_path, capsys, monkeypatch):
    small = tiny(registry.WORKLOADS["small"], baselines=("last_value",), make=Stub)
    monkeypatch.setattr(registry, "WORKLOADS", {"small": small})
    out = tmp_path / "out"
    assert call("bench", "speed", "--quick", "--out", out) == 0
    assert "× plain product" in capsys.readouterr().out
    assert call("bench", "speed", "--quick", "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["workloads"][0]["name"] == "small"
    assert len((out / "history.jsonl").read_text().splitlines()) == 2
    assert "2 runs on this device" in (out / "speed.html").read_text()


@pytest.mark.slow
def test_a_study_shows_a_table_and_writes_its_numbers(tmp_path, capsys, monkeypatch):
    from undertow.lab.studies import fidelity

    monkeypatch.setattr(fidelity, "ROWS", fidelity.ROWS[:1])
    code = call("bench", "fidelity", "--methods", "olstec", "--seeds", 1, "--out", tmp_path)
    shown = capsys.readouterr().out
    (record,) = json.loads((tmp_path / "fidelity.json").read_text())
    assert f"{record['here']:.3f}" in shown
    assert code == (0 if abs(record["ratio"] - 1) <= fidelity.LIMIT else 1)


def test_the_tracker_s_table_is_reached_beside_asked(tmp_path, capsys):
    options = ("--rows", "empty-season", "--masks", 1, "--slices", 40, "--out", tmp_path)
    assert call("bench", "tracker", "--method", "last_value,moving_mean", *options) == 0
    assert "over carried" in (shown := capsys.readouterr().out)
    assert "1 ✓" in shown
    assert call("bench", "ablation", "--method", "moving_mean", "--replace", "forgetting=0", *options) == 0
    assert "moving_mean forgetting=0" in capsys.readouterr().out
    kept = [json.loads(line) for line in (tmp_path / "tracker.jsonl").read_text().splitlines()]
    assert [record["method"] for record in kept] == ["last_value", "moving_mean", "moving_mean", "moving_mean"]
    assert kept[0]["numbers"]["error"] == kept[3]["numbers"]["error"]
    assert call("bench", "tracker", "--rows", "walks", "--list") == 0
    assert "≤ 1.02" in capsys.readouterr().out


def test_numpy_that_is_loaded_is_left_alone(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)

    one_thread_for_numpy(["bench"])
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_the_page_on_speed_names_options_that_exist():
    page = (Path(__file__).parents[2] / "docs" / "developers" / "speed.md").read_text()
    known = {spelling for command in commands().values() for parameter in command.params for spelling in parameter.opts}
    assert set(re.findall(r"--[a-z][a-z-]*", page)) <= known
    assert set(re.findall(r"bench ([a-z]+)", page)) <= set(commands())
    assert set(re.findall(r"--workload ([a-z-]+)", page)) <= set(registry.WORKLOADS)
