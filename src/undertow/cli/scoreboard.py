"""``undertow scoreboard``: every method on every data set, on equal terms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from undertow.cli.terminal import show_file


def scoreboard(
    quick: Annotated[bool, typer.Option("--quick", help="Short streams, few rows and methods, one seed.")] = False,
    datasets: Annotated[str | None, typer.Option(help="Only these data sets, separated by commas.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row [default: 3, with --quick 1].")] = None,
    hindsight: Annotated[
        bool | None,
        typer.Option(
            "--hindsight/--published",
            help="Baselines at their best settings in hindsight too [default: not with --quick].",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for numbers and page.")] = Path("undertow-scoreboard"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use results of earlier runs.")] = False,
) -> None:
    """Compare all methods on all data sets: same data, same mask, error of the low rank; go on where a run stopped."""
    from undertow.cli.bars import Bars  # all here, so that other commands need not wait for it
    from undertow.lab.cases import DATASETS
    from undertow.lab.methods import chosen
    from undertow.lab.names import pick, separated
    from undertow.lab.pages.scoreboard import write_page
    from undertow.lab.scoreboard.compare import QUICK_METHODS, Comparison, compare

    with_rows = {name: dataset for name, dataset in DATASETS.items() if dataset.conditions}
    wanted = pick("data set", separated(datasets), with_rows)
    if quick and datasets is None:
        wanted = [dataset for dataset in wanted if dataset.in_quick]
    comparison = Comparison(
        wanted,
        chosen(QUICK_METHODS if quick and methods is None else methods),
        seeds=seeds or (1 if quick else 3),
        quick=quick,
        hindsight=(not quick) if hindsight is None else hindsight,
        folder=data,
    )
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    with Bars(console) as bars:
        board = compare(comparison, out, bars, fresh)
    console.print(_rows(board))
    console.print(_standings(board))
    show_file(console, "Numbers", out / "scoreboard.json")
    show_file(console, "Page", write_page(board, out))


def _rows(board: dict[str, Any]) -> Table:
    from undertow.lab.scoreboard.ranking import columns, value_of, winner

    table = Table(title="Best method of every row (relative error)", title_justify="left")
    for heading in ("data set", "observed", "decided by"):
        table.add_column(heading)
    for heading in ("Undertow", "paper preset", "converged", "best baseline", "best naive", "best"):
        table.add_column(heading, justify="right")
    everyone = columns(board)
    for row in board["rows"]:
        score = row["decided_by"]
        if score is None:
            table.add_row(row["title"], row["condition"], "nothing ran", *["–"] * 6, style="dim")
            continue

        def best(row: dict[str, Any], score: str, *families: str) -> str:
            found = [
                (value, column.title)
                for column in everyone
                if column.family in families and (value := value_of(row, column, score)) is not None
            ]
            return "{:.3f} {}".format(*min(found)) if found else "–"

        undertow = [
            next((value_of(row, column, score) for column in everyone if column.method == name), None)
            for name in ("undertow", "undertow_paper", "undertow_paper_converged")
        ]
        first = winner(board, row, score)
        won = first is not None and first.family == "undertow"
        table.add_row(
            row["title"],
            row["condition"],
            board["scores"][score]["title"],
            *[f"{value:.3f}" if value is not None else "–" for value in undertow],
            best(row, score, "baseline"),
            best(row, score, "naive"),
            f"[green]{first.title}[/]" if won and first else (first.title if first else "–"),
        )
    return table


def _standings(board: dict[str, Any]) -> Table:
    from undertow.lab.scoreboard.ranking import standings

    table = Table(title="Standings over all rows", title_justify="left")
    table.add_column("method")
    for heading in ("rows won", "within 5 %", "of", "error / best", "worst", "time per slice"):
        table.add_column(heading, justify="right")
    for standing in standings(board):
        table.add_row(
            standing.column.title,
            str(standing.won),
            str(standing.near),
            str(standing.rows),
            f"{standing.typical:.2f}×",
            f"{standing.worst:.3g}×",
            f"{standing.speed:.3g}",
            style="bold" if standing.column.family == "undertow" else None,
        )
    table.caption = "time in 512×512 matrix products, compilation left out"
    return table
