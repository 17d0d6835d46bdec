"""``undertow reproduce``: the paper's experiments, again, on equal terms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from undertow.cli.terminal import show_file

_NAMES = (
    "synthetic-factorization, synthetic-completion, batch, rank, airport-factorization, airport-completion, mri, "
    "multislice, abilene-factorization, abilene-completion"
)


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help=f"all, or some of: {_NAMES}.", show_default="all")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer slices, cropped pictures: about two minutes.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds per figure [default: 3, for recordings and with --quick 1].")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures, numbers and page.")] = Path("undertow-reproduce"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use results of earlier runs.")] = False,
) -> None:
    """Run the paper's experiments: a picture in the paper's form, the numbers, and one page that collects them."""
    from undertow.cli.bars import Bars  # all here, so that other commands need not wait for it
    from undertow.lab.figures.make import make_figures
    from undertow.lab.figures.registry import chosen
    from undertow.lab.pages.gallery import write_gallery

    figures = chosen(list(names or []))
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    with Bars(console) as bars:
        made = make_figures(figures, out, bars, quick=quick, seeds=seeds, folder=data, fresh=fresh)
    if not made:
        raise ValueError("no figure could be made: see the sentences above")
    for figure in made:
        console.print(_table(figure))
    show_file(console, "Page", write_gallery(out))


def _table(figure: dict[str, Any]) -> Table:
    """Every method's error in every panel, by the curve that the panel shows."""
    from undertow.lab.scores import SCORES

    panels = [
        panel
        for panel in figure["panels"]
        if any(method["scores"].get(panel["shows"]) is not None for method in panel["methods"].values())
    ]
    table = Table(title=figure["title"], title_justify="left")
    table.add_column("method")
    for panel in panels:
        table.add_column(f"{panel['title']}: {SCORES[panel['shows']].title}", justify="right")
    methods = {name: method for panel in panels for name, method in panel["methods"].items()}
    for name, method in methods.items():
        values = [panel["methods"].get(name, {}).get("scores", {}).get(panel["shows"]) for panel in panels]
        shown = ["–" if value is None else f"{value:.3f}" for value in values]
        table.add_row(method["label"], *shown, style="bold" if method["family"] == "undertow" else None)
    return table
