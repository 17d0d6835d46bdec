"""Silence is explained: once, and only where somebody reads it."""

import logging
import time
from threading import Thread

import pytest

from undertow.programs import waiting
from undertow.programs.folder import Folder
from undertow.programs.waiting import Waiting


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.02)


def compile_for(one, seconds, folder=None):
    with one.compiling("step", folder):
        time.sleep(seconds)


def test_a_long_compilation_is_explained_once_with_how_long_it_took_last_time(impatient, tmp_path):
    folder, said = Folder(tmp_path / "programs"), []
    compile_for(Waiting(said.append), 0.2, folder)
    assert said == ["undertow is compiling for slices of this shape, and keeps the programs for the next time"]
    again = Waiting(said.append)
    compile_for(again, 0.2, folder)
    compile_for(again, 0.2, folder)
    assert len(said) == 2
    assert "(it took 0 s last time)" in said[1]


def test_programs_compiled_at_once_count_once():
    one = Waiting(lambda sentence: None)
    threads = [Thread(target=compile_for, args=(one, 0.3)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compile_for(one, 0.3)
    assert 0.6 <= one.seconds < 1.2


def test_a_short_one_is_not(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 30.0)
    said = []
    compile_for(Waiting(said.append), 0.01)
    assert said == []


def test_nobody_is_told_off_a_terminal(capsys):
    waiting.say_to_people("anything")
    assert capsys.readouterr().err == ""


def test_every_program_is_logged(caplog):
    with caplog.at_level(logging.INFO, "undertow.programs"):
        compile_for(Waiting(lambda sentence: None), 0.0)
    assert "compiled step in 0.0 s" in caplog.text


def test_a_failure_passes(impatient):
    one = Waiting(lambda sentence: None)
    with pytest.raises(ZeroDivisionError), one.compiling("step", None):
        1 / 0  # noqa: B018
    assert one.seconds >= 0
