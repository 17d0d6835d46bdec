"""``undertow export``: a store in another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from undertow.cli.signals import SIGNALS
from undertow.cli.terminal import printable


def export(
    store: Annotated[Path, typer.Argument(help="What undertow run wrote.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="File to write; its suffix tells the format.", show_default=False)],
    variables: Annotated[
        str | None, typer.Option(help="Which arrays, with commas (default: all; for NIfTI mean); of a video: mask.")
    ] = None,
    fps: Annotated[float, typer.Option(help="Frames per second of a video.")] = 25.0,
    spreadsheet_safe: Annotated[
        bool, typer.Option("--spreadsheet-safe", help="CSV: an apostrophe before text that would be run as a formula.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object.")] = False,
) -> None:
    """Write a store as video (original | background | outliers), CSV, NetCDF or NIfTI.

    Examples:

    \b
      undertow export lobby-undertow.zarr lobby.mp4
      undertow export lobby-undertow.zarr mask.mp4 --variables mask
      undertow export flows-undertow.zarr flows.csv --variables mean,std
      undertow export sensors-undertow.zarr sensors.nc
      undertow export scan-undertow.zarr clean.nii.gz --variables mean
    """
    from undertow.export import export as write

    if target.exists() and not overwrite:
        raise ValueError(f"{target} is there already: name another file, or replace it with --overwrite")
    names = [name.strip() for name in variables.split(",")] if variables else None
    console = Console(stderr=True)
    bar = Progress(console=console, disable=as_json or not console.is_terminal, transient=True)
    with SIGNALS.orderly(), bar:
        task = bar.add_task("exporting", total=None)
        path = write(
            store,
            target,
            variables=names,
            frames_per_second=fps,
            spreadsheet_safe=spreadsheet_safe,
            progress=lambda done: bar.update(task, completed=done, description=f"exporting, {done} slices"),
        )
    typer.echo(json.dumps({"file": str(path), "bytes": path.stat().st_size}) if as_json else f"File: {printable(path)}")
