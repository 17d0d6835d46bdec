"""The commands and what they have in common: options, error messages, exit codes."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from undertow.cli.cache import use_compilation_cache
from undertow.cli.demo import demo
from undertow.cli.reproduce import reproduce
from undertow.cli.scoreboard import scoreboard

app = typer.Typer(
    name="undertow",
    help="Robust Bayesian factorization and completion of streaming tensors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(reproduce)
app.command()(scoreboard)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"undertow {version('undertow')}")
        except PackageNotFoundError:  # run from a source tree that was never installed
            typer.echo("undertow (not installed)")
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Robust Bayesian factorization and completion of streaming tensors."""
    use_compilation_cache()


def run(arguments: list[str]) -> int:
    """Parse and call; what the library refuses becomes one sentence, unless ``--debug`` asks for everything."""
    try:
        app(arguments, prog_name="undertow")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except (ValueError, TypeError, ImportError, OSError) as error:
        if "--debug" in arguments:
            raise
        print(f"undertow: {_sentence(error)}", file=sys.stderr)
        return 2
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"this command needs {error.name}: pip install 'undertow[cli]'"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}"
    return " ".join(str(error).split()) or type(error).__name__
