"""``undertow run``: a source through the model into a store."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from undertow.cli.config_file import Config
from undertow.cli.grouping import grouped
from undertow.cli.run_bar import RunBar
from undertow.cli.source_options import FollowOptions

if TYPE_CHECKING:
    from undertow.runs import RunSummary

_MODEL, _RESULTS, _SAFETY = "Model", "Results", "Checkpoints"


@grouped
def run(
    source: Annotated[str, typer.Argument(help="File, folder, or - for standard input.", show_default=False)],
    reading: FollowOptions,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder for the results (default: SOURCE-undertow.zarr).", rich_help_panel=_RESULTS),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            help="Of every slice: low_rank, std, outliers, outlier_probability, low_rank_std, data; or none.",
            rich_help_panel=_RESULTS,
        ),
    ] = "low_rank,std,outliers,outlier_probability",
    precision: Annotated[
        str, typer.Option(help="Of what is kept: single or double.", rich_help_panel=_RESULTS)
    ] = "single",
    alerts: Annotated[
        str, typer.Option(help="Table of outliers: csv, jsonl, parquet or none.", rich_help_panel=_RESULTS)
    ] = "csv",
    threshold: Annotated[
        float, typer.Option(help="Outlier probability from which on an entry is an alert.", rich_help_panel=_RESULTS)
    ] = 0.5,
    report: Annotated[bool, typer.Option("--report", help="Write the report too.", rich_help_panel=_RESULTS)] = False,
    preset: Annotated[str, typer.Option(help="default or paper.", rich_help_panel=_MODEL)] = "default",
    max_rank: Annotated[int | None, typer.Option(help="Most components at once.", rich_help_panel=_MODEL)] = None,
    window: Annotated[int | None, typer.Option(help="Slices kept and re-examined.", rich_help_panel=_MODEL)] = None,
    forgetting: Annotated[
        float | None, typer.Option(help="A slice t steps old counts forgetting^t.", rich_help_panel=_MODEL)
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting of the model: outlier_rate=0.01.", rich_help_panel=_MODEL),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run stopped.", rich_help_panel=_SAFETY)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove earlier results first.", rich_help_panel=_SAFETY)
    ] = False,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Checkpoint every so many slices.", rich_help_panel=_SAFETY)
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="Checkpoint when so much time has passed.", rich_help_panel=_SAFETY)
    ] = 30.0,
    limit: Annotated[int | None, typer.Option(help="Stop after so many slices.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object about the run.")] = False,
    config: Config = None,
) -> None:
    """Clean a stream: low rank with error bars, outliers and alerts for every slice, kept in a store.

    Examples:

    \b
      undertow run lobby.mp4 --resize 0.5 --keep low_rank,outliers,data --report
      undertow run flows.csv --time t --modes src,dst --value bytes
      undertow run scan.nii.gz --window 10 --max-rank 8
      undertow run sensors.nc --variable temperature --alerts parquet
      sensor-feed | undertow run - --store live.zarr
      undertow run lobby.mp4 --resume        # after a kill, a crash, Ctrl-C

    The store opens with xarray.open_zarr; undertow report, export and inspect read it too.
    """
    options = reading.given()
    folder = store or default_store(source)
    settings = {"max_rank": max_rank, "window": window, "forgetting": forgetting, **assignments(set_ or [])}
    from undertow import make_config

    make_config(preset, **settings)  # refuses before anything is opened, and without jax
    from undertow.runs import RunInterrupted
    from undertow.runs import run as run_loop
    from undertow.sources import open_stream

    with closing(open_stream(source, **options)) as stream:
        from undertow.estimator import RobustCP  # jax, once it is clear that there is something to do

        console = Console(stderr=True)
        try:
            with RunBar(console, stream.length, quiet=as_json) as bar:
                summary = run_loop(
                    stream,
                    RobustCP(preset, **settings),
                    store=folder,
                    resume=resume,
                    overwrite=overwrite,
                    keep=keep,
                    precision=precision,  # type: ignore[arg-type] # the loop says what is allowed
                    alerts=None if alerts == "none" else alerts,  # type: ignore[arg-type]
                    threshold=threshold,
                    checkpoint_every=checkpoint_every,
                    checkpoint_seconds=checkpoint_seconds,
                    limit=limit,
                    progress=bar.show,
                    say=bar.say,
                )
        except KeyboardInterrupt as stopped:
            at_once = f"stopped at once: go on with --resume from the last checkpoint in {folder}"
            print(f"undertow: {stopped if isinstance(stopped, RunInterrupted) else at_once}", file=sys.stderr)
            leave(130, source)
    page = None
    if report:
        from undertow.report import write_report

        page = write_report(folder)
    if as_json:
        print(json.dumps(summary_as_json(summary, page)))
    else:
        show_summary(summary, page, Console())
    leave(0, source)


def default_store(name: str) -> Path:
    """Beside nothing else: in the present folder, named after the source."""
    stem = "stdin" if name == "-" else Path(name).resolve().name.split(".")[0] or "stream"
    return Path(f"{stem}-undertow.zarr")


def assignments(texts: list[str]) -> dict[str, Any]:
    """``["outlier_rate=0.01"]`` → ``{"outlier_rate": 0.01}``; the model says what is allowed."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip().isidentifier():
            raise ValueError(f"--set takes a name and a value such as outlier_rate=0.01, got {text!r}")
        try:
            settings[name.strip()] = json.loads(value)
        except ValueError:
            settings[name.strip()] = value.strip()
    return settings


def summary_as_json(summary: RunSummary, page: Path | None) -> dict[str, Any]:
    """The summary for machines."""
    content = {**asdict(summary), "store": str(summary.store), "notices": list(summary.notices)}
    return content if page is None else {**content, "report": str(page)}


def show_summary(summary: RunSummary, page: Path | None, console: Console) -> None:
    """The summary for people."""
    again = f" ({summary.new_slices} of them new)" if summary.new_slices != summary.slices else ""
    speed = (
        f", {summary.new_slices / summary.seconds:.3g} slices/s" if summary.seconds > 0 and summary.new_slices else ""
    )
    console.print(
        f"[bold]{_counted(summary.slices, 'slice')}[/]{again} in {summary.seconds:.1f} s{speed}", highlight=False
    )
    if summary.rank is not None:
        console.print(
            f"rank {summary.rank} and noise {summary.noise_std:.3g} at the end, {_counted(summary.alerts, 'alert')}",
            highlight=False,
        )
    for code, count in sorted(summary.troubles.items(), key=lambda item: -item[1])[:3]:
        console.print(f"[yellow]{code.lower().replace('_', ' ')}[/]: {_counted(count, 'slice')}", highlight=False)
    console.print(f"Store:  [bold]{escape(str(summary.store))}[/]", highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"Report: [bold]{escape(str(page))}[/]", highlight=False, soft_wrap=True)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def leave(code: int, source: str) -> None:
    """End with this code, even if a read of standard input, which says nothing, is still under way."""
    if source == "-" and any(thread.name == "undertow reader" for thread in threading.enumerate()):
        # Python waits for the lock of standard input when it closes down, and aborts if it cannot get it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    if code:
        raise typer.Exit(code)
