"""``undertow bench tracker`` and ``undertow bench ablation``: everything asked of a model as one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from undertow.cli.bench_tables import OUT, Data, Out, show_tables
from undertow.cli.terminal import show_file

if TYPE_CHECKING:
    from undertow.lab.studies.entries import Entry
    from undertow.lab.studies.table import StudyTable

Rows = Annotated[str | None, typer.Option(help="Names, separated by commas; one that ends in - begins several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, name=value, of one method only method.name=value.")
]
Masks = Annotated[int, typer.Option(min=1, help="How many masks or seeds; some rows have their own number.")]
UnseenSeed = Annotated[int, typer.Option(min=0, help="The first of them; settings were chosen on 0 to 4.")]
Slices = Annotated[int | None, typer.Option(min=25, help="No stream is longer: for a quick look.")]
Jobs = Annotated[int, typer.Option(min=1, help="Worker processes.")]


def tracker(
    rows: Rows = None,
    method: Annotated[
        str | None, typer.Option(help="Names, separated by commas; without any, what a user gets who sets nothing.")
    ] = None,
    setting: Settings = None,
    masks: Masks = 5,
    first_seed: UnseenSeed = 100,
    slices: Slices = None,
    jobs: Jobs = 1,
    show: Annotated[bool, typer.Option("--list", help="Show the rows and do nothing.")] = False,
    out: Out = OUT,
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


def ablation(
    replace: Annotated[
        list[str] | None,
        typer.Option(help="A setting to replace, name=value, several at a time joined by +; again for another column."),
    ] = None,
    rows: Rows = None,
    method: Annotated[str | None, typer.Option(help="One name; without it, what a user gets who sets nothing.")] = None,
    setting: Settings = None,
    masks: Masks = 5,
    first_seed: UnseenSeed = 100,
    slices: Slices = None,
    jobs: Jobs = 1,
    out: Out = OUT,
    data: Data = None,
) -> None:
    """Rows of `undertow bench tracker` with and without: once as given, then once for every replacement. A table has
    error, F1, rank, coverage and time of each beside those of the model as given.

    A name in capitals is a constant: of the CP model (undertow.model.defaults), or of the module that stands before it.
    Programs are compiled anew for it.

    \b
      undertow bench ablation --rows student,walks --method cp --set preset=fast --replace robust=false
      undertow bench ablation --rows low-rank- --method cp --replace OVER_RELAXATION=0 --replace TOO_WIDE=0
      undertow bench ablation --rows walks --replace tracker.huber.TIGHT=3 --replace tracker.judging.SUSPICIOUS=1e9
    """
    from undertow.lab.models import DEFAULT
    from undertow.lab.studies.entries import entries, variants

    (given,) = entries([method or DEFAULT], setting or ())
    _criteria(rows, variants(given, replace or ()), masks, first_seed, slices, jobs, False, out, data, ablation=True)


def regret(
    rows: Rows = None,
    setting: Settings = None,
    masks: Masks = 5,
    first_seed: UnseenSeed = 100,
    slices: Slices = None,
    jobs: Jobs = 1,
    out: Out = OUT,
    data: Data = None,
) -> None:
    """The tracker's error over that of the best of its predictors in hindsight, on rows of `undertow bench tracker`.

    Examples:

    \b
      undertow bench regret --rows abilene-50,switching --masks 2

    Every trial is a line of regret.jsonl in the folder: the error of the tracker and of each predictor alone.
    """
    from undertow.lab.models import DEFAULT
    from undertow.lab.names import separated
    from undertow.lab.studies import regret as study
    from undertow.lab.studies.entries import entries
    from undertow.lab.studies.tracker import tracker

    wanted, lines = study.rows(separated(rows)), out / "regret.jsonl"

    def tables(bars: Any) -> list[StudyTable]:
        seeds, columns = range(first_seed, first_seed + masks), entries([DEFAULT], setting or ())
        _, records = tracker(wanted, columns, seeds, bars, lines, jobs, slices, data, study.errors)
        return [study.table(wanted, records)]

    show_tables(tables)
    show_file(Console(), "Trials", lines)


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
    ablation: bool = False,
) -> None:
    """A table of criteria, reached beside asked; of an ablation, without beside with."""
    from undertow.lab.criteria.registry import chosen
    from undertow.lab.names import separated
    from undertow.lab.studies.ablation import table as without
    from undertow.lab.studies.tracker import regret, table, tracker

    wanted, seeds, lines = chosen(separated(rows)), range(first_seed, first_seed + masks), out / "tracker.jsonl"
    if show:
        show_tables(lambda bars: [table(wanted, (), ())])
        return

    def tables(bars: Any) -> list[StudyTable]:
        made, records = tracker(wanted, entries, seeds, bars, lines, jobs, slices, data)
        compared = without(wanted, entries, records) if ablation else regret(wanted, entries, records)
        return [made, compared] if compared.rows else [made]

    show_tables(tables)
    show_file(Console(), "Trials", lines)
