"""Dataclasses as groups of options."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from undertow.cli.grouping import grouped


@dataclass(frozen=True)
class Output:
    keep: Annotated[str, typer.Option(help="What to keep.")] = "low_rank"
    fast: Annotated[bool, typer.Option("--fast")] = False


@pytest.fixture
def called():
    """The command, and what it was called with."""
    calls = []
    app = typer.Typer()

    @app.command()
    @grouped
    def command(source: str, output: Output, limit: int = 3) -> None:
        """Do it."""
        calls.append((source, output, limit))

    return app, calls


def test_fields_become_options_and_come_back_as_one_object(called):
    app, calls = called
    assert CliRunner().invoke(app, ["x.npy", "--keep", "std", "--fast"]).exit_code == 0
    assert calls == [("x.npy", Output("std", True), 3)]


def test_help_shows_the_fields(called):
    shown = CliRunner().invoke(called[0], ["--help"]).output
    assert "What to keep." in shown
    assert "Do it." in shown
    assert "output" not in shown
