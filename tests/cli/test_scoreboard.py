import json

import pytest

from undertow.cli import main
from undertow.cli.reproduce import _NAMES


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")


def call(*arguments):
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    return done.value.code


@pytest.mark.slow
def test_scoreboard_shows_tables_and_writes_a_page(tmp_path, capsys):
    options = (
        "--quick",
        "--datasets",
        "drifting,abilene",
        "--methods",
        "last_value,olstec",
        "--data",
        tmp_path / "none",
    )
    assert call("scoreboard", *options, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "Best method of every row" in shown
    assert "OLSTEC" in shown
    assert shown.count("abilene_sand.mat is expected at") == 1  # said once, and the rest still ran
    board = json.loads((tmp_path / "out" / "scoreboard.json").read_text())
    assert board["quick"] is True
    assert (tmp_path / "out" / "scoreboard.html").is_file()


def test_unknown_names_are_one_sentence_with_the_known_ones(tmp_path, capsys):
    for arguments, sentence in (
        (("reproduce", "airprot"), "undertow: unknown figure airprot: choose from synthetic-factorization"),
        (("scoreboard", "--datasets", "x"), "undertow: unknown data set x: choose from drifting"),
        (("scoreboard", "--methods", "x"), "undertow: unknown method x: choose from undertow"),
    ):
        assert call(*arguments, "--out", tmp_path / "out") == 2
        assert capsys.readouterr().err.startswith(sentence)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_figure_without_its_data_is_a_sentence(tmp_path, capsys):
    assert call("reproduce", "mri", "--quick", "--data", tmp_path / "none", "--out", tmp_path / "out") == 2
    answer = capsys.readouterr()
    assert "pincat.mat is expected at" in answer.out
    assert answer.err == "undertow: no figure could be made: see the sentences above\n"


def test_help_names_every_figure():
    from undertow.lab.figures.registry import FIGURES

    assert _NAMES.split(", ") == list(FIGURES)
