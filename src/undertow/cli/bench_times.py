"""``undertow bench speed`` and its like: how long things take, one command each."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from undertow.cli.bench_tables import OUT, Data, Out, show_tables, sizes
from undertow.cli.terminal import show_file

Shape = Annotated[str, typer.Option(help="Of a slice, 144x176.")]


def speed(
    workload: Annotated[list[str] | None, typer.Option(help="Only this one; give it again for another.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the workloads and do nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer slices and repetitions: about a minute.")] = False,
    growth: Annotated[
        bool | None,
        typer.Option("--growth/--no-growth", help="How cost grows with size [default: without --quick or --workload]."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Large workloads also without a GPU.")] = False,
    out: Out = OUT,
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Nothing but one JSON object.")] = False,
) -> None:
    """Time one step on several workloads, beside the plain matrix product and the baselines; show how it grows.

    Examples:

    \b
      undertow bench speed --quick                             # about a minute, once everything is compiled
      undertow bench speed --workload video --workload small   # these two and their baselines
      undertow bench speed --list                              # which workloads there are
      undertow bench speed --workload hd --no-growth --json | jq '.workloads[0].seconds'

    Every run is a line of history.jsonl in the folder; speed.html shows it, and the trend of runs on the same device.
    """
    from undertow.cli.bars import Bars  # all here, so that other commands need not wait for it
    from undertow.lab.pages.speed import write_page
    from undertow.lab.speed import device, history, registry
    from undertow.lab.speed.axes import axes
    from undertow.lab.speed.record import QUICK, Effort, record

    console = Console(stderr=as_json)
    if show:
        _list(as_json)
        return
    gpu = device.has_gpu()
    workloads = registry.chosen(workload or (), quick=quick, large=gpu or everything)
    wanted = (not quick and not workload) if growth is None else growth
    out.mkdir(parents=True, exist_ok=True)
    with Bars(console) as bars:
        made = record(workloads, axes(gpu) if wanted else (), bars, QUICK if quick else Effort(), data)
    if not made["workloads"] and not made["growth"]:
        raise ValueError("nothing could be timed: see the sentences above")
    lines = out / "history.jsonl"
    earlier = history.comparable(history.read(lines), made["device"])
    history.append(lines, made)
    target = write_page(made, earlier, out)
    if as_json:
        typer.echo(json.dumps(made, indent=1, allow_nan=False))
        return
    _show_record(made, console)
    show_file(console, "History", lines)
    show_file(console, "Page", target)


def fleet(
    members: Annotated[int, typer.Option(min=1, help="Streams in the fleet.")] = 256,
    slices: Annotated[int, typer.Option(min=1, help="Timed, after the windows have been filled.")] = 10,
    shape: Shape = "12x12",
    window: int = 20,
    max_rank: int = 5,
    singles: Annotated[int, typer.Option(min=0, help="Members that the loop steps; 0: no loop.")] = 16,
    model: Annotated[str, typer.Option(help="cp, or tracker: without window and rank.")] = "cp",
) -> None:
    """Slices a second of a fleet, against a Python loop over single models."""
    from undertow.lab.studies.fleet import fleet as study

    study(members, slices, sizes(shape), window, max_rank, singles, typer.echo, model)


def video(
    shape: Shape = "144x176",
    slices: Annotated[int, typer.Option(min=1, help="Timed, after the window has been filled.")] = 40,
    observed: Annotated[float, typer.Option(min=0, max=1, help="Fraction of the pixels.")] = 0.5,
    plain: Annotated[bool, typer.Option("--plain", help="No outliers, robust=False, noise='shared'.")] = False,
) -> None:
    """A warm step on generated video, and frames a second."""
    from undertow.lab.studies.video import video as study

    study(sizes(shape), slices, observed, plain, typer.echo)


def film(
    shape: Shape = "144x176",
    frames: Annotated[int, typer.Option(min=40, help="Of each film.")] = 120,
) -> None:
    """Frames a second of a whole `undertow run` on a generated MP4 file, grey and in colour, and its alerts."""
    from undertow.lab.studies.film import film as study

    rows, columns = sizes(shape)
    show_tables(lambda bars: [study((rows, columns), frames)])


def cost(
    shape: Annotated[list[str] | None, typer.Option(help="Only this one, 144x176; give it again for another.")] = None,
    slices: Annotated[int, typer.Option(min=4, help="Of each run.")] = 60,
    rounds: Annotated[int, typer.Option(min=1, help="How often both are timed.")] = 2,
    cold: Annotated[
        bool, typer.Option("--cold", help="Instead: a new process that finds no compiled programs, 15 % observed.")
    ] = False,
    steady: Annotated[
        bool, typer.Option("--steady", help="Instead: milliseconds of a frame of video after 41 frames.")
    ] = False,
) -> None:
    """Time of a default tracker over that of the CP models it keeps, whole runs from the first slice.

    Examples:

    \b
      undertow bench cost                              # 12×12, 40×40 and 144×176
      undertow bench cost --cold --shape 144x176       # what a user waits for the first time
      undertow bench cost --steady --shape 144x176 --shape 1080x1920 --slices 19
    """
    from undertow.lab.studies import cost as study
    from undertow.lab.studies import steady as in_its_stride

    shapes = [sizes(one) for one in shape] if shape else study.SHAPES
    if steady:
        show_tables(lambda bars: [in_its_stride.table(shapes if shape else study.SHAPES[-1:], slices, bars)])
    elif cold:
        show_tables(lambda bars: [study.cold(one, slices) for one in (shapes if shape else study.SHAPES[-1:])])
    else:
        show_tables(lambda bars: [study.costs(shapes, slices, rounds, bars)])


def start(
    shape: Shape = "40x40",
    repeats: Annotated[int, typer.Option(min=1, help="Processes that find kept programs.")] = 3,
) -> None:
    """From import to the first result in a new process: with nothing kept, and with compiled programs kept."""
    from undertow.lab.studies.start import start as study

    study(sizes(shape), repeats, typer.echo)


def compilation(
    shape: Annotated[list[str] | None, typer.Option(help="Only this one, 40x40; give it again for another.")] = None,
) -> None:
    """How large the compiled step is, and the seconds that tracing, lowering and compiling it take."""
    from undertow.lab.studies.compilation import SHAPES
    from undertow.lab.studies.compilation import compilation as study

    show_tables(lambda bars: [study(bars, [sizes(one) for one in shape] if shape else SHAPES)])


def run_overhead(
    frames: Annotated[int, typer.Option(min=2, help="Of the video.")] = 80,
    rounds: Annotated[int, typer.Option(min=1, help="How often both are timed.")] = 5,
    preset: str = "default",
) -> None:
    """What a whole run costs over bare update calls."""
    from undertow.lab.studies.run_overhead import run_overhead as study

    study(frames, rounds, preset, typer.echo)


def _list(as_json: bool) -> None:
    from undertow.lab.speed.registry import WORKLOADS

    if as_json:
        typer.echo(json.dumps({name: one.shows for name, one in WORKLOADS.items()}, indent=1, ensure_ascii=False))
        return
    table = Table("workload", "slice", "W", "R", "stream", "shows", "runs", title="Workloads", title_justify="left")
    for name, one in WORKLOADS.items():
        when = "GPU or --all" if one.large else "always" if one.quick else "not in --quick"
        stream = f"{one.kind}, {one.observed:.0%}" if one.observed < 1 else one.kind
        sizes = "×".join(map(str, one.shape))
        table.add_row(name, sizes, str(one.window), str(one.max_rank), stream, one.shows, when)
    Console().print(table)


def layouts(
    shape: Annotated[str, typer.Option(help="Of a slice, 144x176.")] = "144x176",
    observed: Annotated[list[float] | None, typer.Option(help="Fraction; give it again for another.")] = None,
    max_rank: Annotated[int, typer.Option(min=1, help="Most components.")] = 16,
    window: Annotated[int, typer.Option(min=1, help="Slices in the window.")] = 20,
    slices: Annotated[int, typer.Option(min=1, help="Timed, after the window is full.")] = 12,
) -> None:
    """Time of a step on all entries over that on the observed ones only, by the fraction that is observed."""
    from undertow.lab.studies.layouts import layouts as study

    fractions = observed or [0.01, 0.05, 0.15]
    if not all(0 < fraction <= 1 for fraction in fractions):
        raise typer.BadParameter(f"must lie in (0, 1], got {fractions}.", param_hint="--observed")
    show_tables(lambda bars: [study(sizes(shape), fractions, max_rank, window, slices, bars)])


def _show_record(record: dict[str, Any], console: Console) -> None:
    from undertow.lab.pages import speed_tables as tables
    from undertow.lab.speed import device

    title = f"One step, warm: {device.in_words(record['device'])}"
    table = Table("workload", *tables.WORKLOAD_HEADINGS, title=title, title_justify="left")
    for workload in record["workloads"]:
        table.add_row(workload["name"], *tables.workload_row(workload))
    console.print(table)
    for workload in record["workloads"]:
        found = tables.methods(workload)
        if len(found) > 1:
            title = f"{workload['name']}: baselines"
            compared = Table("method", *tables.METHOD_HEADINGS, title=title, title_justify="left")
            for method in found:
                style = "bold" if method["family"] == "undertow" else None
                compared.add_row(method["label"], *tables.method_row(method), style=style)
            console.print(compared)
    if record["growth"]:
        slopes = Table("growth with", "time of a sweep", "formula", "memory of a step", "formula", title_justify="left")
        for one in record["growth"]:
            names = ("time_slope", "time_slope_formula", "bytes_slope", "bytes_slope_formula")
            values = [one.get(name) for name in names]
            slopes.add_row(one["title"], *("–" if value is None else f"size^{value:.2f}" for value in values))
        console.print(slopes)
