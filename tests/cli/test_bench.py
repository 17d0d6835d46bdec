import json
import os
import re
from pathlib import Path

import pytest

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


def test_list_names_every_case(capsys):
    assert call("bench", "--list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in registry.CASES)
    assert call("bench", "--list", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)) == list(registry.CASES)


def test_an_unknown_case_is_one_sentence(tmp_path, capsys):
    assert call("bench", "--case", "vidoe", "--out", tmp_path / "out") == 2
    assert capsys.readouterr().err.startswith("undertow: unknown case vidoe: choose from small")
    assert not (tmp_path / "out").exists()


def test_a_recording_that_is_not_there_is_one_sentence(tmp_path, capsys):
    assert call("bench", "--case", "airport", "--data", tmp_path, "--out", tmp_path / "out") == 2
    answer = capsys.readouterr()
    assert "airport_hall.mat is expected at" in answer.out
    assert answer.err == "undertow: nothing could be timed: see the sentences above\n"


def test_runs_add_up_in_the_history(tmp_path, capsys, monkeypatch):
    from bench.conftest import tiny

    case = tiny(registry.CASES["small"], rivals=("last_value", "olstec"))
    monkeypatch.setattr(registry, "CASES", {"small": case})
    out = tmp_path / "out"
    assert call("bench", "--quick", "--out", out) == 0
    assert "× plain product" in capsys.readouterr().out
    assert call("bench", "--quick", "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["cases"][0]["name"] == "small"
    assert len((out / "history.jsonl").read_text().splitlines()) == 2
    assert "2 runs on this device" in (out / "bench.html").read_text()


def test_numpy_that_is_loaded_is_left_alone(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)

    one_thread_for_numpy(["bench"])
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_the_page_on_speed_names_options_that_exist():
    from typer.main import get_command

    from undertow.cli.app import app

    page = (Path(__file__).parents[2] / "docs" / "developers" / "speed.md").read_text()
    known = {spelling for parameter in get_command(app).commands["bench"].params for spelling in parameter.opts}
    assert set(re.findall(r"--[a-z][a-z-]*", page)) <= known
    assert set(re.findall(r"--case ([a-z-]+)", page)) <= set(registry.CASES)
