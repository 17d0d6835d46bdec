"""``undertow report``: a store on one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from undertow.cli.terminal import printable


def report(
    store: Annotated[Path, typer.Argument(help="What undertow run wrote.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The page (default: beside the store).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object.")] = False,
) -> None:
    """Write one self-contained HTML page: summary, curves, the worst slices as pictures, top alerts, settings.

    Examples:

    \b
      undertow report lobby-undertow.zarr
      undertow report lobby-undertow.zarr --out for-a-colleague.html
    """
    from undertow.report import write_report

    page = write_report(store, out)
    typer.echo(json.dumps({"report": str(page)}) if as_json else f"Report: {printable(page)}")
