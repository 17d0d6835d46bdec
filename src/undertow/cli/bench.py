"""``undertow bench``: how fast, beside the plain matrix product and every rival."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def bench(
    case: Annotated[list[str] | None, typer.Option(help="Only this case; give it again for another.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the cases and do nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer slices and repetitions: about a minute.")] = False,
    growth: Annotated[
        bool | None,
        typer.Option("--growth/--no-growth", help="How cost grows with size [default: without --quick or --case]."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Large cases also without a GPU.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for history and page.")] = Path("undertow-bench"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object about the run.")] = False,
) -> None:
    """Time one step of the model on several cases, beside the plain matrix product and the rivals; show how it grows.

    Examples:

    \b
      undertow bench --quick                     # about a minute, once everything is compiled
      undertow bench --case video --case small   # these two and their rivals
      undertow bench --list                      # which cases there are
      undertow bench --case hd --no-growth --json | jq '.cases[0].seconds'

    Every run is a line of history.jsonl in the folder; bench.html shows it, and the trend of runs on the same device.
    """
    from undertow.cli.bars import Bars
    from undertow.lab.speed import device, history, registry  # all here, so that other commands need not wait for it
    from undertow.lab.speed.axes import axes
    from undertow.lab.speed.page import write_page
    from undertow.lab.speed.run import Plan, run

    console = Console(stderr=as_json)
    if show:
        _list(as_json)
        return
    gpu = device.has_gpu()
    cases = registry.chosen(case or (), quick=quick, large=gpu or everything)
    wanted = (not quick and not case) if growth is None else growth
    plan = Plan(cases, axes(gpu) if wanted else (), folder=data)
    if quick:
        plan = replace(plan, quick=True, slices=4, limit=2.0)
    out.mkdir(parents=True, exist_ok=True)
    with Bars(console) as bars:
        record = run(plan, bars)
    if not record["cases"] and not record["growth"]:
        raise ValueError("nothing could be timed: see the sentences above")
    lines = out / "history.jsonl"
    earlier = history.comparable(history.read(lines), record["device"])
    history.append(lines, record)
    target = write_page(record, earlier, out)
    if as_json:
        typer.echo(json.dumps(record, indent=1, allow_nan=False))
        return
    _show(record, console)
    console.print(f"History: [bold]{escape(str(lines))}[/]")
    console.print(f"Page:    [bold]{escape(str(target))}[/]")


def _list(as_json: bool) -> None:
    from undertow.lab.speed.registry import CASES

    if as_json:
        typer.echo(json.dumps({name: case.shows for name, case in CASES.items()}, indent=1, ensure_ascii=False))
        return
    table = Table(title="Cases", title_justify="left")
    for heading in ("case", "slice", "W", "R", "stream", "shows", "runs"):
        table.add_column(heading)
    for name, case in CASES.items():
        when = "GPU or --all" if case.large else "always" if case.quick else "not in --quick"
        shape = "×".join(map(str, case.shape))
        stream = f"{case.kind}, {case.observed:.0%}" if case.observed < 1 else case.kind
        table.add_row(name, shape, str(case.window), str(case.max_rank), stream, case.shows, when)
    Console().print(table)


def _show(record: dict[str, Any], console: Console) -> None:
    from undertow.lab.speed import device, tables

    title = f"One step, warm: {device.in_words(record['device'])}"
    table = Table("case", *tables.CASE_HEADINGS, title=title, title_justify="left")
    for case in record["cases"]:
        table.add_row(case["name"], *tables.case_cells(case))
    console.print(table)
    for case in record["cases"]:
        found = tables.methods(case)
        if len(found) > 1:
            rivals = Table("method", *tables.RIVAL_HEADINGS, title=f"{case['name']}: rivals", title_justify="left")
            for method in found:
                style = "bold" if method["family"] == "ours" else None
                rivals.add_row(method["label"], *tables.rival_cells(method), style=style)
            console.print(rivals)
    if record["growth"]:
        slopes = Table("growth with", "time of a sweep", "formula", "memory of a step", "formula", title_justify="left")
        for one in record["growth"]:
            values = [
                one["time_slope"],
                one["time_slope_formula"],
                one.get("bytes_slope"),
                one.get("bytes_slope_formula"),
            ]
            slopes.add_row(one["title"], *("–" if value is None else f"size^{value:.2f}" for value in values))
        console.print(slopes)
