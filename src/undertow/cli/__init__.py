"""The command line: parse, call, show. No mathematics here, and no jax before a command needs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from undertow.cli.environment import one_thread_for_numpy
from undertow.cli.signals import SIGNALS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``undertow``; an error in the input, or a signal, is one sentence on stderr and an exit code (2, 128 + n)."""
    if arguments is None:  # called with arguments, the process is the caller's
        SIGNALS.watch()
    given = sys.argv[1:] if arguments is None else list(arguments)
    one_thread_for_numpy(given)
    try:
        from undertow.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "click", "rich"}:
            raise
        print(f"undertow: the command line needs {error.name}: pip install 'undertow[cli]'", file=sys.stderr)
        SIGNALS.finish(2)
    SIGNALS.finish(run(given))
