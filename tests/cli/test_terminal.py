"""Nothing from a file reaches the terminal as a command to it."""

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from stubs import StubStream, store_stub

from undertow.cli.app import run
from undertow.cli.terminal import printable, show_file

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31mnorth\u202e"


def test_control_characters_are_written_out():
    assert printable(ESCAPE) == r"\x1b]0;owned\x07\x1b[2J\x9b31mnorth\u202e"
    assert printable("one\ttwo\nähnlich 東 ×") == "one\ttwo\nähnlich 東 ×"
    assert printable("\ud800") == r"\ud800"


def harmless(text):
    return not any(letter in text for letter in "\x1b\x07\x9b\u202e")


def test_files_are_shown_in_one_line_without_control_codes_and_markup(capsys):
    path = Path("[red]") / ("long" * 40) / ESCAPE
    show_file(Console(width=40), "Page", path)
    assert capsys.readouterr().out == f"Page:    {printable(path)}\n"


def test_labels_in_tables_and_messages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(
        "t,site,v\n" + "".join(f"{t},{site},{t}\n" for t in range(4) for site in (ESCAPE, "b")), encoding="utf-8"
    )
    assert run(["inspect", "x.csv", "--time", "t", "--modes", "site", "--value", "v"]) == 0
    shown = capsys.readouterr().out
    assert "north" in shown
    assert harmless(shown)
    stream = StubStream(3)
    stream.name = ESCAPE
    store_stub(tmp_path / "s", stream)
    assert run(["inspect", "s"]) == 0
    assert harmless(capsys.readouterr().out)
    np.save(f"{ESCAPE[:6]}.npy", np.zeros(3))
    assert run(["inspect", f"{ESCAPE}.npy"]) == 2
    assert harmless(capsys.readouterr().err)


@pytest.mark.parametrize("damaged", [False, True])
def test_inspect_verify(tmp_path, monkeypatch, capsys, damaged):
    monkeypatch.chdir(tmp_path)
    store_stub(tmp_path / "s", StubStream(3))
    if damaged:
        (tmp_path / "s/std/c.0.0.0").write_bytes(b"nonsense")
    assert run(["inspect", "s", "--verify"]) == (2 if damaged else 0)
    out, err = capsys.readouterr()
    assert "s is damaged (std/c.0.0.0: " in err if damaged else "chunks, no damage" in out
    np.save("x.npy", np.zeros((3, 2)))
    assert run(["inspect", "x.npy", "--verify"]) == 2
    assert "--verify is for stores" in capsys.readouterr().err
