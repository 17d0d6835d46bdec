"""One table of everything asked of a tracker: reached beside asked, for any methods, every number from a fresh run.

Each trial, one method on one criterion from one seed, is a job of its own; with more than one job they run in worker
processes. Finished trials are written as they come, one line of JSON each, so that an interrupted run is not lost.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undertow.lab.constants import apart, replaced
from undertow.lab.criteria.criterion import Asked, Criterion, Numbers, Trial
from undertow.lab.criteria.measures import ratio
from undertow.lab.criteria.registry import CRITERIA
from undertow.lab.models import maker
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.studies.entries import Entry
from undertow.lab.studies.table import StudyTable
from undertow.lab.track import Track
from undertow.lab.workers import performed

Record = dict[str, Any]
Measure = Callable[[Criterion, Trial], Numbers]
ERROR = "error"
"""The number that is compared between entries."""


def as_asked(criterion: Criterion, trial: Trial) -> Numbers:
    """The numbers of the criterion itself."""
    return criterion.measure(trial)


@dataclass(frozen=True)
class Job:
    """One trial as a worker process gets it: names and numbers, and a function that has a name."""

    criterion: str
    seed: int
    entry: Entry
    slices: int
    folder: Folder
    measure: Measure = as_asked


def tracker(
    criteria: Sequence[Criterion],
    entries: Sequence[Entry],
    seeds: Sequence[int],
    reporter: Reporter,
    out: Path,
    jobs: int = 1,
    slices: int | None = None,
    folder: Folder = None,
    measure: Measure = as_asked,
) -> tuple[StudyTable, list[Record]]:
    """Every entry on every criterion.

    Args:
        criteria: which rows.
        entries: which columns.
        seeds: of the trials; a criterion that wants more goes on counting from the first of them.
        reporter: shows progress.
        out: the file that finished trials are appended to, one line of JSON each.
        jobs: worker processes; 1 for none.
        slices: no stream is longer than that; None for the length of each.
        folder: of the data files.
        measure: what is measured of a trial.

    Returns:
        The table, and the records behind it.
    """
    for entry in entries:
        maker(entry.method, apart(entry.settings)[0])  # an unknown name is said before anything runs
    work = [
        Job(one.name, seed, entry, one.slices if slices is None else min(slices, one.slices), folder, measure)
        for one in criteria
        for seed in _seeds(one, seeds)
        for entry in entries
    ]
    reporter.begin(len(work))
    records = []
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as lines:
        for record in performed(perform, work, jobs, reporter):
            records.append(record)
            lines.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            lines.flush()
            if record["reason"]:
                reporter.say(f"{record['row']}, {record['method']}: {record['reason']}")
            reporter.done()
    return table(criteria, entries, records), records


def table(criteria: Iterable[Criterion], entries: Sequence[Entry], records: Sequence[Record]) -> StudyTable:
    """Reached beside asked: a line for every number, ✓ where it is within its limits; a dash where there is none."""
    made = StudyTable("Reached and asked", ("stream", "number", "asked", *(entry.label for entry in entries)))
    for criterion in criteria:
        for position, (name, asked) in enumerate(criterion.asked.items()):
            cells = [_cell(asked, _values(criterion.name, name, entry, records)) for entry in entries]
            title = f"{criterion.title} ({criterion.name})" if position == 0 else ""
            made.rows.append((title, name + (", worst" if asked.over == "worst" else ""), str(asked), *cells))
    return made


def regret(criteria: Iterable[Criterion], entries: Sequence[Entry], records: Sequence[Record]) -> StudyTable:
    """The error of the first entry over the smallest of the others, the best of them in hindsight, row by row.

    Where the others are the parts that the first is put together from, this is its regret.
    """
    first, *others = entries
    made = StudyTable("Error over the best of the others", ("stream", first.label, "best of the others", "over it"))
    for criterion in criteria:
        if ERROR in criterion.asked:
            error, *rest = (
                criterion.asked[ERROR].combine(_values(criterion.name, ERROR, entry, records)) for entry in entries
            )
            known = [(value, entry.label) for value, entry in zip(rest, others, strict=True) if not math.isnan(value)]
            if known and not math.isnan(error):
                best, label = min(known)
                made.rows.append((criterion.title, f"{error:.4g}", f"{best:.4g} {label}", f"{ratio(error, best):.3f}"))
    return made


def perform(job: Job, reporter: Reporter) -> Record:
    """Run one trial; what goes wrong is part of the record and stops no other trial."""
    record: Record = {
        "row": job.criterion,
        "seed": job.seed,
        "method": job.entry.method,
        "settings": dict(job.entry.settings),
        "slices": job.slices,
    }
    begin, numbers, milliseconds, reason = time.perf_counter(), {}, None, ""
    try:
        settings, constants = apart(job.entry.settings)
        make, label = maker(job.entry.method, settings), f"{job.criterion}: {job.entry.label}"
        trial = Trial(make, job.seed, job.slices, job.folder, reporter, label)
        with replaced(constants):
            numbers = job.measure(CRITERIA[job.criterion], trial)
        rank, milliseconds = beside(trial.tracks)
        numbers = {**rank, **numbers}
    except Exception as error:  # whatever stops one method, the others still run
        reason = " ".join(str(error).split()) or type(error).__name__
    kept = {name: float(f"{value:.6g}") if math.isfinite(value) else None for name, value in numbers.items()}
    seconds = round(time.perf_counter() - begin, 3)
    return {**record, "numbers": kept, "reason": reason, "seconds": seconds, "milliseconds": milliseconds}


def beside(tracks: Sequence[Track]) -> tuple[Numbers, float | None]:
    """Rank, and milliseconds of a slice: medians of the second half of the first track; nothing without any."""
    if not tracks:
        return {}, None
    rank, seconds = (float(np.median(part[len(part) // 2 :])) for part in (tracks[0].rank, tracks[0].seconds))
    return {"rank": rank}, round(1e3 * seconds, 3)


def _seeds(criterion: Criterion, seeds: Sequence[int]) -> Sequence[int]:
    return seeds if criterion.seeds is None else range(seeds[0], seeds[0] + criterion.seeds)


def _values(row: str, name: str, entry: Entry, records: Sequence[Record]) -> list[float]:
    mine = (one for one in records if (one["row"], one["method"]) == (row, entry.method))
    found = [one["numbers"].get(name) for one in mine if one["settings"] == dict(entry.settings)]
    return [math.nan if value is None else value for value in found]


def _cell(asked: Asked, values: Sequence[float]) -> str:
    value = asked.combine(values)
    if math.isnan(value):
        return "–"
    mark = {None: "", True: " ✓", False: " ✗"}[asked.reached(value)]
    return f"{value:.4g}{mark}"
