"""``undertow scoreboard``: every method on every stream, on equal terms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def scoreboard(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams, few rows and rivals, one seed.")] = False,
    streams: Annotated[str | None, typer.Option(help="Only these streams, separated by commas.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row [default: 3, with --quick 1].")] = None,
    tuned: Annotated[
        bool | None, typer.Option("--tuned/--published", help="Tune the rivals too [default: not with --quick].")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for numbers and page.")] = Path("undertow-scoreboard"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use results of earlier runs.")] = False,
) -> None:
    """Compare all methods on all streams: same data, same mask, error of the low rank; go on where a run stopped."""
    from undertow.cli.bars import Bars  # all here, so that other commands need not wait for it
    from undertow.lab.accuracy import contenders as known_methods
    from undertow.lab.accuracy import streams as known_streams
    from undertow.lab.accuracy.scoreboard import QUICK_METHODS, Plan, run
    from undertow.lab.accuracy.scoreboard_page import write_page

    chosen = known_streams.chosen(streams)
    if quick and streams is None:
        chosen = [stream for stream in chosen if stream.in_quick]
    plan = Plan(
        streams=chosen,
        contenders=known_methods.chosen(QUICK_METHODS if quick and methods is None else methods),
        seeds=seeds or (1 if quick else 3),
        quick=quick,
        tuned=(not quick) if tuned is None else tuned,
        folder=data,
    )
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    with Bars(console) as bars:
        board = run(plan, out, bars, fresh)
    console.print(_rows(board))
    console.print(_standings(board))
    console.print(f"Numbers: [bold]{escape(str(out / 'scoreboard.json'))}[/]")
    console.print(f"Page:    [bold]{escape(str(write_page(board, out)))}[/]")


def _rows(board: dict[str, Any]) -> Table:
    from undertow.lab.accuracy.ranking import columns, score, winner

    table = Table(title="Who wins which row (relative error)", title_justify="left")
    table.add_column("stream")
    table.add_column("observed")
    table.add_column("judged by")
    for heading in ("Undertow", "paper preset", "best rival", "best naive", "winner"):
        table.add_column(heading, justify="right")
    everyone = columns(board)
    for row in board["rows"]:
        figure = row["judged_by"]
        if figure is None:
            table.add_row(row["title"], row["condition"], "nothing ran", *["–"] * 5, style="dim")
            continue

        def best(row: dict[str, Any], figure: str, *families: str) -> str:
            found = [
                (value, column.title)
                for column in everyone
                if column.family in families and (value := score(row, column, figure)) is not None
            ]
            return "{:.3f} {}".format(*min(found)) if found else "–"

        ours = [
            next((score(row, column, figure) for column in everyone if column.method == name), None)
            for name in ("undertow", "undertow_paper")
        ]
        first = winner(board, row, figure)
        won = first is not None and first.family == "ours"
        table.add_row(
            row["title"],
            row["condition"],
            board["figures"][figure]["title"],
            *[f"{value:.3f}" if value is not None else "–" for value in ours],
            best(row, figure, "rival"),
            best(row, figure, "naive"),
            f"[green]{first.title}[/]" if won and first else (first.title if first else "–"),
        )
    return table


def _standings(board: dict[str, Any]) -> Table:
    from undertow.lab.accuracy.ranking import standings

    table = Table(title="Standings over all rows", title_justify="left")
    table.add_column("method")
    for heading in ("rows won", "within 5 %", "of", "error / best", "worst", "time per slice"):
        table.add_column(heading, justify="right")
    for place in standings(board):
        table.add_row(
            place.column.title,
            str(place.won),
            str(place.near),
            str(place.rows),
            f"{place.typical:.2f}×",
            f"{place.worst:.3g}×",
            f"{place.speed:.3g}",
            style="bold" if place.column.family == "ours" else None,
        )
    table.caption = "time in 512×512 matrix products, compilation left out"
    return table
