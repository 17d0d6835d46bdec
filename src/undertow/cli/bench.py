"""``undertow bench``: studies of accuracy and speed, one command each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from undertow.lab.store import ResultStore
    from undertow.lab.studies.entries import Entry
    from undertow.lab.studies.table import StudyTable

bench = typer.Typer(no_args_is_help=True, help="Measure accuracy and speed: every number that the documentation names.")

Seeds = Annotated[int, typer.Option(min=1, help="How many seeds.")]
FirstSeed = Annotated[int, typer.Option(min=0, help="The first of them; settings were chosen on 0 to 4.")]
Out = Annotated[Path, typer.Option(help="Folder for results, numbers and pages.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the data files.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do not use results of earlier runs.")]
Shape = Annotated[str, typer.Option(help="Of a slice, 144x176.")]
Rows = Annotated[str | None, typer.Option(help="Names, separated by commas; one that ends in - begins several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, name=value, of one method only method.name=value.")
]
Masks = Annotated[int, typer.Option(min=1, help="How many masks or seeds; some rows have their own number.")]
UnseenSeed = Annotated[int, typer.Option(min=0, help="The first of them; settings were chosen on 0 to 4.")]
Slices = Annotated[int | None, typer.Option(min=25, help="No stream is longer: for a quick look.")]
Jobs = Annotated[int, typer.Option(min=1, help="Worker processes.")]

_OUT = Path("undertow-bench")


@bench.command()
def speed(
    workload: Annotated[list[str] | None, typer.Option(help="Only this one; give it again for another.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the workloads and do nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer slices and repetitions: about a minute.")] = False,
    growth: Annotated[
        bool | None,
        typer.Option("--growth/--no-growth", help="How cost grows with size [default: without --quick or --workload]."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Large workloads also without a GPU.")] = False,
    out: Out = _OUT,
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
    console.print(f"History: [bold]{escape(str(lines))}[/]")
    console.print(f"Page:    [bold]{escape(str(target))}[/]")


@bench.command()
def accuracy(seeds: Seeds = 5, first_seed: FirstSeed = 0, out: Out = _OUT, fresh: Fresh = False) -> None:
    """Error on generated streams: default settings, settings tuned per row, the other presets, naive methods."""
    from undertow.lab.studies.accuracy import accuracy as study

    _study("accuracy", out, fresh, lambda store, bars: study(range(first_seed, first_seed + seeds), store, bars))


@bench.command()
def recorded(
    seeds: Seeds = 5,
    first_seed: FirstSeed = 0,
    rows: Annotated[str, typer.Option(help="Only rows whose name holds this.")] = "",
    out: Out = _OUT,
    data: Data = None,
    fresh: Fresh = False,
) -> None:
    """Error on hidden entries of recorded streams: default settings beside baselines and naive methods."""
    from undertow.lab.studies.recorded import chosen
    from undertow.lab.studies.recorded import recorded as study

    wanted, which = chosen(rows), range(first_seed, first_seed + seeds)
    _study("recorded", out, fresh, lambda store, bars: study(wanted, which, store, bars, data))


@bench.command()
def changes(seeds: Seeds = 5, first_seed: FirstSeed = 0) -> None:
    """Streams that change: how soon the error is back after new factors, and which rank is found."""
    from undertow.lab.studies.changes import changes as study

    _with_bars(lambda bars: [study(range(first_seed, first_seed + seeds), bars)])


@bench.command()
def faults(seeds: Seeds = 5, first_seed: FirstSeed = 0, data: Data = None) -> None:
    """What is plainly wrong: whether first spikes and impossible sensor values are flagged."""
    from undertow.lab.studies.faults import faults as study

    _with_bars(lambda bars: study(range(first_seed, first_seed + seeds), bars, data))


@bench.command()
def tracker(
    rows: Rows = None,
    method: Annotated[
        str | None, typer.Option(help="Names, separated by commas [default: what a user gets who sets nothing].")
    ] = None,
    setting: Settings = None,
    masks: Masks = 5,
    first_seed: UnseenSeed = 100,
    slices: Slices = None,
    jobs: Jobs = 1,
    show: Annotated[bool, typer.Option("--list", help="Show the rows and do nothing.")] = False,
    out: Out = _OUT,
    data: Data = None,
) -> None:
    """One table of everything asked of a tracker, reached beside asked: recordings, generated streams, events, changes.

    Examples:

    \b
      undertow bench tracker --list                                # which rows there are, and what is asked
      undertow bench tracker --rows walks,slice- --masks 2         # one row, and all that begin with slice-
      undertow bench tracker --method cp,last_value --set cp.preset=fast --jobs 2

    Every trial is a line of tracker.jsonl in the folder.
    """
    from undertow.lab.models import DEFAULT
    from undertow.lab.names import separated
    from undertow.lab.studies.entries import entries

    _criteria(
        rows, entries(separated(method) or [DEFAULT], setting or ()), masks, first_seed, slices, jobs, show, out, data
    )


@bench.command()
def ablation(
    replace: Annotated[
        list[str] | None,
        typer.Option(help="A setting to replace, name=value, several at a time joined by +; again for another column."),
    ] = None,
    rows: Rows = None,
    method: Annotated[str | None, typer.Option(help="One name [default: what a user gets who sets nothing].")] = None,
    setting: Settings = None,
    masks: Masks = 5,
    first_seed: UnseenSeed = 100,
    slices: Slices = None,
    jobs: Jobs = 1,
    out: Out = _OUT,
    data: Data = None,
) -> None:
    """Rows of `undertow bench tracker` with and without: once as given, then once for every replacement.

    Example: undertow bench ablation --rows student,walks --method cp --set preset=fast --replace robust=false
    """
    from undertow.lab.models import DEFAULT
    from undertow.lab.studies.entries import settings_of, variants

    entries = variants(method or DEFAULT, settings_of(setting or ()), replace or ())
    _criteria(rows, entries, masks, first_seed, slices, jobs, False, out, data)


@bench.command()
def fidelity(
    methods: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "online_cp,online_sgd,olstec,brtf,undertow_paper,undertow_paper_converged",
    seeds: Seeds = 5,
    out: Out = _OUT,
) -> None:
    """Baselines and the paper's preset beside the published codes; exit code 1 if a baseline is off by over a fifth."""
    from undertow.lab.names import separated
    from undertow.lab.studies.fidelity import LIMIT, within
    from undertow.lab.studies.fidelity import fidelity as study

    records: list[dict[str, Any]] = []

    def tables(bars: Any) -> list[StudyTable]:
        table, found = study(range(seeds), separated(methods) or [], bars)
        records.extend(found)
        return [table]

    _with_bars(tables)
    _write_numbers(out, "fidelity", records)
    near, compared = within(records)
    typer.echo(f"{near} of {compared} within {LIMIT:.0%} of the original")
    if near < compared:
        raise typer.Exit(1)


@bench.command()
def fleet(
    members: Annotated[int, typer.Option(min=1, help="Streams in the fleet.")] = 256,
    slices: Annotated[int, typer.Option(min=1, help="Timed, after the windows have been filled.")] = 10,
    shape: Shape = "12x12",
    window: int = 20,
    max_rank: int = 5,
    singles: Annotated[int, typer.Option(min=0, help="Members that the loop steps; 0: no loop.")] = 16,
) -> None:
    """Slices a second of a fleet, against a Python loop over single models."""
    from undertow.lab.studies.fleet import fleet as study

    study(members, slices, _sizes(shape), window, max_rank, singles, typer.echo)


@bench.command()
def video(
    shape: Shape = "144x176",
    slices: Annotated[int, typer.Option(min=1, help="Timed, after the window has been filled.")] = 40,
    observed: Annotated[float, typer.Option(min=0, max=1, help="Fraction of the pixels.")] = 0.5,
    plain: Annotated[bool, typer.Option("--plain", help="No outliers, robust=False, noise='shared'.")] = False,
) -> None:
    """A warm step on generated video, and frames a second."""
    from undertow.lab.studies.video import video as study

    study(_sizes(shape), slices, observed, plain, typer.echo)


@bench.command(name="run")
def run_overhead(
    frames: Annotated[int, typer.Option(min=2, help="Of the video.")] = 80,
    rounds: Annotated[int, typer.Option(min=1, help="How often both are timed.")] = 5,
    preset: str = "default",
) -> None:
    """What a whole run costs over bare update calls."""
    from undertow.lab.studies.run_overhead import run_overhead as study

    study(frames, rounds, preset, typer.echo)


def _criteria(
    rows: str | None,
    entries: list[Entry],
    masks: int,
    first_seed: int,
    slices: int | None,
    jobs: int,
    show: bool,
    out: Path,
    data: Path | None,
) -> None:
    """A table of criteria, reached beside asked."""
    from undertow.lab.criteria.registry import chosen
    from undertow.lab.names import separated
    from undertow.lab.studies.tracker import table, tracker

    wanted, seeds, lines = chosen(separated(rows)), range(first_seed, first_seed + masks), out / "tracker.jsonl"
    if show:
        _with_bars(lambda bars: [table(wanted, (), ())])
        return
    _with_bars(lambda bars: [tracker(wanted, entries, seeds, bars, lines, jobs, slices, data)[0]])
    Console().print(f"Trials: [bold]{escape(str(lines))}[/]")


def _study(name: str, out: Path, fresh: bool, study: Callable[[ResultStore, Any], tuple[StudyTable, Any]]) -> None:
    """A study whose results are kept: an interrupted one goes on where it stopped."""
    from undertow.lab.store import ResultStore

    store = ResultStore(out / "results", fresh)

    def tables(bars: Any) -> list[StudyTable]:
        table, numbers = study(store, bars)
        _write_numbers(out, name, numbers)
        return [table]

    _with_bars(tables)


def _write_numbers(out: Path, name: str, numbers: Any) -> None:
    from undertow.lab.store import write_json

    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{name}.json", numbers)
    Console().print(f"Numbers: [bold]{escape(str(out / f'{name}.json'))}[/]")


def _with_bars(tables: Callable[[Any], list[StudyTable]]) -> None:
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


def _sizes(shape: str) -> tuple[int, int]:
    """ "144x176" as two numbers."""
    try:
        rows, columns = (int(size) for size in shape.split("x"))
    except ValueError:
        raise ValueError(f"shape must be two numbers with an x between them, got {shape!r}: use 144x176") from None
    return rows, columns


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
