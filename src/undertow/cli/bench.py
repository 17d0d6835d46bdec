"""``undertow bench``: studies of accuracy and speed, one command each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from undertow.cli.bench_cluster import capacity, engines, sharded
from undertow.cli.bench_criteria import Jobs, UnseenSeed, ablation, regret, tracker
from undertow.cli.bench_tables import OUT, Data, Out, show_tables
from undertow.cli.bench_times import compilation, cost, film, fleet, layouts, run_overhead, speed, start, video
from undertow.cli.terminal import show_file

if TYPE_CHECKING:
    from undertow.lab.store import ResultStore
    from undertow.lab.studies.table import StudyTable

bench = typer.Typer(no_args_is_help=True, help="Measure accuracy and speed: every number that the documentation names.")

Seeds = Annotated[int, typer.Option(min=1, help="How many seeds.")]
FirstSeed = Annotated[int, typer.Option(min=0, help="The first of them; settings were chosen on 0 to 4.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do not use results of earlier runs.")]

bench.command()(speed)


@bench.command()
def accuracy(seeds: Seeds = 5, first_seed: FirstSeed = 0, out: Out = OUT, fresh: Fresh = False) -> None:
    """Error on generated streams: default settings, settings tuned per row, the other presets, naive methods."""
    from undertow.lab.studies.accuracy import accuracy as study

    _study("accuracy", out, fresh, lambda store, bars: study(range(first_seed, first_seed + seeds), store, bars))


@bench.command()
def recorded(
    seeds: Seeds = 5,
    first_seed: FirstSeed = 0,
    rows: Annotated[str, typer.Option(help="Only rows whose name holds this.")] = "",
    published: Annotated[
        bool, typer.Option("--published", help="Baselines as published only, not at their best in hindsight.")
    ] = False,
    out: Out = OUT,
    data: Data = None,
    fresh: Fresh = False,
) -> None:
    """Error on hidden entries of recorded streams: default settings beside baselines and naive methods.

    Baselines are shown as published and at the rank, scale and settings of a small grid that turn out best on the
    hidden entries themselves: in hindsight, which no user could choose.
    """
    from undertow.lab.studies.recorded import chosen
    from undertow.lab.studies.recorded import recorded as study

    wanted, which = chosen(rows), range(first_seed, first_seed + seeds)
    _study("recorded", out, fresh, lambda store, bars: study(wanted, which, store, bars, data, published))


@bench.command()
def changes(seeds: Seeds = 5, first_seed: FirstSeed = 0) -> None:
    """Streams that change: how soon the error is back after new factors, and which rank is found."""
    from undertow.lab.studies.changes import changes as study

    show_tables(lambda bars: [study(range(first_seed, first_seed + seeds), bars)])


@bench.command()
def faults(seeds: Seeds = 5, first_seed: FirstSeed = 0, data: Data = None) -> None:
    """What is plainly wrong: whether first spikes and impossible sensor values are flagged."""
    from undertow.lab.studies.faults import faults as study

    show_tables(lambda bars: study(range(first_seed, first_seed + seeds), bars, data))


@bench.command()
def incidents(
    rows: Annotated[
        str | None,
        typer.Option(help="Separated by commas: normal, student, counts, daily-counts, daily, recording; all of them."),
    ] = None,
    seeds: Seeds = 3,
    first_seed: UnseenSeed = 100,
    slices: Annotated[int, typer.Option(min=100, help="Of each clean stream, five minutes each.")] = 864,
    jobs: Jobs = 1,
    results: Annotated[
        Path | None, typer.Option(help="Folder where the tracker's results are kept and used again, whatever the code.")
    ] = None,
    out: Out = OUT,
    data: Data = None,
    fresh: Fresh = False,
) -> None:
    """False incidents a day on clean streams beside what was asked for; planted faults and a labelled recording.

    Finished streams are kept in the folder and not done again as long as the code is the same.
    """
    from undertow.lab.names import pick, separated
    from undertow.lab.store import ResultStore
    from undertow.lab.studies.incidents import ROWS
    from undertow.lab.studies.incidents import incidents as study

    wanted, store, records = pick("row", separated(rows), ROWS), ResultStore(out / "results", fresh), []

    def tables(bars: Any) -> list[StudyTable]:
        made, found = study(wanted, range(first_seed, first_seed + seeds), slices, store, bars, jobs, data, results)
        records.extend(found)
        return made

    show_tables(tables)
    _write_numbers(out, "incidents", records)


@bench.command()
def forecast(
    rows: Annotated[
        str, typer.Option(help="Recordings, separated by commas: hangzhou, abilene, chicago, radar.")
    ] = "hangzhou,abilene,chicago,radar",
    days: Annotated[
        int | None, typer.Option(min=6, help="Of each recording at most; 10, 7, 21 and 30 by default.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Separated by commas; all by default.")] = None,
    data: Data = None,
) -> None:
    """Forecasts of recordings, from a slice to a day ahead, beside simple methods, Holt–Winters and SOFIA."""
    from undertow.lab.names import separated
    from undertow.lab.studies.forecast import forecasts

    show_tables(
        lambda bars: forecasts(separated(rows), bars, data, days, None if methods is None else separated(methods))
    )


@bench.command()
def smooth(
    rows: Annotated[
        str, typer.Option(help="Recordings, separated by commas: hangzhou, abilene, chicago, radar.")
    ] = "abilene,hangzhou,radar",
    slices: Annotated[int, typer.Option(min=40, help="Of each.")] = 400,
    seed: Annotated[int, typer.Option(help="Of what is hidden.")] = 0,
    data: Data = None,
) -> None:
    """What slices that came later add: ut.clean with and without smooth, half of the entries hidden."""
    from undertow.lab.names import separated
    from undertow.lab.studies.smoothing import smoothing

    show_tables(lambda bars: [smoothing(separated(rows), slices, seed, bars, data)])


bench.command()(tracker)
bench.command()(ablation)
bench.command()(regret)
bench.command()(sharded)
bench.command()(capacity)
bench.command()(engines)


@bench.command()
def fidelity(
    methods: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "online_cp,online_sgd,olstec,brtf,undertow_paper,undertow_paper_converged",
    seeds: Seeds = 5,
    out: Out = OUT,
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

    show_tables(tables)
    _write_numbers(out, "fidelity", records)
    near, compared = within(records)
    typer.echo(f"{near} of {compared} within {LIMIT:.0%} of the original")
    if near < compared:
        raise typer.Exit(1)


bench.command()(fleet)
bench.command()(video)


@bench.command()
def foreground(
    data: Data = None,
    drift: Annotated[list[float] | None, typer.Option(help="Of the light of generated scenes; 0.3 and 1.")] = None,
    recording: Annotated[bool, typer.Option(help="The Lobby recording too.")] = True,
) -> None:
    """Masks of what moves: the tracker beside OpenCV's MOG2, on the Lobby recording and on generated scenes."""
    from undertow.lab.studies.foreground import foreground as study
    from undertow.lab.studies.foreground import generated, recorded

    scenes = [generated(drift=one) for one in drift or (0.3, 1.0)] + ([recorded(data)] if recording else [])
    show_tables(lambda bars: [study(scenes, say=bars.say)])


bench.command()(cost)
bench.command()(film)
bench.command()(start)
bench.command()(layouts)
bench.command(name="compile")(compilation)
bench.command(name="run")(run_overhead)


def _study(name: str, out: Path, fresh: bool, study: Callable[[ResultStore, Any], tuple[StudyTable, Any]]) -> None:
    """A study whose results are kept: an interrupted one goes on where it stopped."""
    from undertow.lab.store import ResultStore

    store = ResultStore(out / "results", fresh)

    def tables(bars: Any) -> list[StudyTable]:
        table, numbers = study(store, bars)
        _write_numbers(out, name, numbers)
        return [table]

    show_tables(tables)


def _write_numbers(out: Path, name: str, numbers: Any) -> None:
    from undertow.lab.store import write_json

    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{name}.json", numbers)
    show_file(Console(), "Numbers", out / f"{name}.json")
