"""``undertow incidents``: what a run found, and what a person says about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from undertow.cli.terminal import printable


def incidents(
    store: Annotated[Path, typer.Argument(help="What undertow run wrote.", show_default=False)],
    false_alarm: Annotated[
        list[int] | None, typer.Option(help="Number of an incident that was a false alarm; several times for several.")
    ] = None,
    real: Annotated[list[int] | None, typer.Option(help="Number of one that was real after all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON list.")] = False,
) -> None:
    """List the incidents of a run, or say that one was a false alarm.

    An answer raises the bar for the entries, rows or slices of that incident from the next --resume on.

    Examples:

    \b
      undertow incidents flows-undertow.zarr
      undertow incidents flows-undertow.zarr --false-alarm 3
      undertow run flows.csv --resume
    """
    from undertow.runs.store.feedback import add_feedback
    from undertow.runs.store.reader import open_store

    run = open_store(store)
    known = {one["id"] for one in run.incidents()}
    answers = [*((id, True) for id in false_alarm or ()), *((id, False) for id in real or ())]
    for id, _ in answers:
        if id not in known:
            raise ValueError(f"{store} has no incident {id}: undertow incidents {store} lists what there is")
    for id, said in answers:
        add_feedback(store, id, said)
    found = run.incidents()
    if as_json:
        typer.echo(json.dumps(found))
    elif not found:
        typer.echo("No incidents.")
    else:
        Console().print(_table(found, " UTC" if run.dataset.attrs.get("time_zone") else ""))


def _table(found: list[dict[str, Any]], zone: str) -> Table:
    table = Table("id", "kind", "what", "sure", "answer", box=None)
    for one in found:
        answer = {True: "false alarm", False: "real", None: ""}[one["false_alarm"]]
        sure = f"{100 * one['probability']:.0f} %"
        table.add_row(str(one["id"]), one["kind"], printable(one["sentence"] + zone), sure, answer)
    return table
