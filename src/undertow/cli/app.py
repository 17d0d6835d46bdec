"""The commands and what they have in common: options, error messages, exit codes."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from undertow import __version__
from undertow.cli.bench import bench
from undertow.cli.demo import demo
from undertow.cli.export import export
from undertow.cli.incidents import incidents
from undertow.cli.inspect import inspect
from undertow.cli.live import view
from undertow.cli.report import report
from undertow.cli.reproduce import reproduce
from undertow.cli.run import run as run_command
from undertow.cli.scoreboard import scoreboard
from undertow.cli.serve import serve
from undertow.cli.terminal import printable
from undertow.cli.wording import as_typed

app = typer.Typer(
    name="undertow",
    help="Robust Bayesian factorization and completion of streaming tensors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run_command, inspect, report, incidents, export, demo, reproduce, scoreboard, serve, view):
    app.command()(command)
app.add_typer(bench, name="bench")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"undertow {__version__}")
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Robust Bayesian factorization and completion of streaming tensors."""


def run(arguments: list[str]) -> int:
    """Parse and call; what the library refuses becomes one sentence, unless ``--debug`` asks for everything.

    With ``--json`` it is the last line of the output, too, as ``{"error": …}``.
    """
    debug = "--debug" in arguments
    if debug:  # wherever it stands, it means the same
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    try:
        app(arguments, prog_name="undertow")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except Exception as error:
        if debug:
            raise
        sentence = printable(as_typed(_sentence(error)))
        print(f"undertow: {sentence}", file=sys.stderr)
        if "--json" in arguments:
            print(json.dumps({"error": sentence}))
        return 2
    return 0


def _sentence(error: Exception) -> str:
    from undertow.service.errors import ServiceError  # costs nothing, but only where there is an error

    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"this command needs {error.name}: pip install 'undertow[cli]'"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this ({text or 'it is full'}): use smaller slices, window or max_rank"
    if isinstance(error, (ValueError, TypeError, ImportError, OSError, ServiceError)):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text or 'no reason given'} (a defect, please report it with what --debug shows)"
