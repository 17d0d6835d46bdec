"""What the commands of ``undertow bench`` share: where things go, and tables with progress above them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from undertow.lab.studies.table import StudyTable

Out = Annotated[Path, typer.Option(help="Folder for results, numbers and pages.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the data files.")]
OUT = Path("undertow-bench")


def show_tables(tables: Callable[[Any], list[StudyTable]]) -> None:
    """Show progress while the tables are made, then the tables."""
    from undertow.cli.bars import Bars

    console = Console()
    with Bars(console) as bars:
        made = tables(bars)
    for one in made:
        table = Table(title=one.title, title_justify="left")
        for position, heading in enumerate(one.headings):
            table.add_column(heading, justify="right" if position else "left")
        for row in one.rows:
            table.add_row(*row)
        console.print(table)


def sizes(shape: str) -> tuple[int, int]:
    """ "144x176" as two numbers."""
    try:
        rows, columns = (int(size) for size in shape.split("x"))
    except ValueError:
        raise ValueError(f"shape must be two numbers with an x between them, got {shape!r}: use 144x176") from None
    return rows, columns
