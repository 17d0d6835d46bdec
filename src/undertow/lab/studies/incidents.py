"""Incidents: false ones on clean streams beside what was asked for, planted ones found, and a labelled recording.

Clean streams of 12×12, a tenth of them hidden, five minutes a slice: normal noise, Student's t with three degrees of
freedom, counts, counts with a daily pattern, and a daily pattern with normal noise. The same streams with a spike, a
router that fails (a row and a column), a column alone, a block, a slice, a dead sensor, a silent one, a change of
level and another scene planted: at the rate per day, and at a false-discovery rate. Then the server recording, if it is
there. Beside it a rule per entry: three standard deviations from the mean of the same model; slices in a row in which
it fires are one alarm.

Each stream is a job of its own, and finished ones are kept. The tracker takes nearly all the time: with a folder
for its results what comes after them can be tried again in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import Incident, Incidents
from undertow.lab.provenance import digest, sources
from undertow.lab.recordings import smd
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.store import ResultStore
from undertow.lab.studies.kept_results import Results, kept
from undertow.lab.studies.planted import APART, DAY, LENGTH, OBSERVED, STREAMS, TITLES, Floats, Planted, planted
from undertow.lab.studies.table import StudyTable
from undertow.lab.workers import performed

STEP = 300.0
"""Seconds between slices."""
ASKED, FDR = "1/day", "fdr 10%"
TRAINED = 1000
"""Slices of the recording before its labelled part, to begin with."""
RECORDING = "recording"
ROWS = {name: name for name in (*STREAMS, RECORDING)}


@dataclass(frozen=True)
class Job:
    """One stream as a worker process gets it.

    Attributes:
        row: Of `ROWS`.
        seed: Of the stream.
        slices: Of a clean one.
        faults: Whether faults are planted.
        folder: Of the recordings.
        results: Folder of the tracker's results; None to keep none.
    """

    row: str
    seed: int
    slices: int
    faults: bool
    folder: Folder
    results: Path | None

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.row}, seed {self.seed}{', with faults' if self.faults else ''}"

    def key(self) -> dict[str, Any]:
        """What determines its records."""
        return {"study": "incidents", "row": self.row, "seed": self.seed, "slices": self.slices, "faults": self.faults}


@dataclass(frozen=True)
class Followed:
    """What was found in a stream: incidents, those at the false-discovery rate, and where the rule per entry fired."""

    incidents: tuple[Incident, ...]
    three_sigma: NDArray[np.bool_]
    discoveries: tuple[Incident, ...] = ()


def incidents(
    rows: Sequence[str],
    seeds: Sequence[int],
    slices: int,
    store: ResultStore,
    reporter: Reporter,
    jobs: int = 1,
    folder: Folder = None,
    results: Path | None = None,
) -> tuple[list[StudyTable], list[dict[str, Any]]]:
    """The tables, and the numbers behind them; without the recording where it is missing.

    Args:
        rows: Of `ROWS`.
        seeds: Of the streams.
        slices: Of each clean stream.
        store: Of records: what it holds of the same code is not done again.
        reporter: Shows progress.
        jobs: Worker processes.
        folder: Of the recordings.
        results: Folder of the tracker's results, which are kept there and used again as they are.
    """
    work = [
        Job(row, seed, slices, faults, folder, results)
        for row in rows
        if row != RECORDING
        for seed in seeds
        for faults in (False, True)
    ]
    if RECORDING in rows:
        try:
            smd.load(folder)
            work.append(Job(RECORDING, 0, 0, False, folder, results))
        except FileNotFoundError as missing:
            reporter.say(str(missing))
    reporter.begin(len(work))
    known = {job: store.get({**job.key(), "code": _code()}) for job in work}
    records = [record for found in known.values() if found is not None for record in found["records"]]
    for job, made in performed(perform, [job for job in work if known[job] is None], jobs, reporter):
        store.put({**job.key(), "code": _code()}, {"records": made})
        records += made
        reporter.done()
    return tables(records), records


@cache
def _code() -> str:
    """Records of other code are not used."""
    return digest(sources([__name__]))


def perform(job: Job, reporter: Reporter) -> tuple[Job, list[dict[str, Any]]]:
    """One stream, and what was found in it."""
    where = {"row": job.row, "seed": job.seed}
    if job.row == RECORDING:
        held = smd.load(job.folder)
        found = follow(np.concatenate([held.train[-TRAINED:], held.values]), job, reporter, step=60.0)
        return job, [{**where, **judged(found, held.faulty, TRAINED)}]
    if job.faults:
        changed, faults = planted(*STREAMS[job.row](LENGTH, job.seed + 1000, 1.0))
        found = follow(changed, job, reporter, step=STEP)
        return job, [{**where, **_met(one, found)} for one in faults] + [{**where, **_discovered(found, faults)}]
    found = follow(STREAMS[job.row](job.slices, job.seed, OBSERVED)[0], job, reporter, step=STEP)
    return job, [{**where, "slices": job.slices, **_false(found)}, {**where, **_discovered(found, ())}]


def follow(values: Floats, job: Job, reporter: Reporter, step: float) -> Followed:
    """A stream through a tracker, its results into incidents."""
    reporter.start(job.name, len(values))
    watches = [Incidents(values.shape[1:], false_alarms=asked, step=step) for asked in (ASKED, FDR)]
    known: list[dict[int, Incident]] = [{} for _ in watches]
    fired = np.zeros(len(values), bool)
    file = f"{job.row}-{job.seed}-{len(values)}{'-faults' if job.faults else ''}.npz"
    results = _tracked(values) if job.results is None else kept(job.results / file, lambda: _tracked(values))
    for t, (x, result) in enumerate(zip(values, results, strict=True)):
        for watch, found in zip(watches, known, strict=True):
            found |= {change.incident.id: change.incident for change in watch.update(result, values=x)}
        fired[t] = bool((np.abs(x - result.mean) > 3 * result.std).any())
        reporter.tick()
    for watch, found in zip(watches, known, strict=True):
        found |= {one.id: one for one in watch.open}
    return Followed(tuple(known[0].values()), fired, tuple(known[1].values()))


def _tracked(values: Floats) -> Results:
    from undertow.tracker.estimator import Tracker

    model = Tracker()
    return (model.update(x) for x in values)


def judged(found: Followed, faulty: NDArray[np.bool_], first: int) -> dict[str, Any]:
    """How many labelled faults were met, and alarms that met none, of slices from ``first`` on; a minute each."""
    faults = runs(faulty)
    days = len(faulty) / 1440
    spans = [(one.since - first, (one.last if one.until is None else one.until) - first) for one in found.incidents]
    spans = [span for span in spans if span[1] >= 0]
    numbers = {}
    for name, alarms in (("incidents", spans), ("three sigma", runs(found.three_sigma[first:]))):
        met = [any(a <= last and b >= begin for a, b in alarms) for begin, last in faults]
        false = [a for a, b in alarms if not any(a <= last and b >= begin for begin, last in faults)]
        numbers[name] = {
            "found": sum(met),
            "faults": len(faults),
            "alarms": len(alarms),
            "false a day": len(false) / days,
            "false since": false,
        }
    return numbers


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(last) - 1) for first, last in edges.reshape(-1, 2)]


def _false(found: Followed) -> dict[str, Any]:
    days = len(found.three_sigma) / DAY
    return {
        "false a day": len(found.incidents) / days,
        "kinds": sorted(one.kind for one in found.incidents),
        "three sigma a day": len(runs(found.three_sigma)) / days,
    }


def _met(fault: Planted, found: Followed) -> dict[str, Any]:
    """Whether a fault was found: by how many incidents, under which name, how soon."""
    until = min(fault.last, fault.first + APART - 2)
    mine = [one for one in found.incidents if fault.first <= one.since <= until and _overlap(one, fault)]
    around = [one for one in found.incidents if fault.first <= one.since <= until]
    return {
        "fault": fault.name,
        "found": bool(mine),
        "incidents": len(around),
        "named": bool(mine) and mine[0].kind in fault.kinds,
        "kind": mine[0].kind if mine else "",
        "delay": mine[0].since - fault.first if mine else None,
        "three sigma": bool(found.three_sigma[fault.first : until + 1].any()),
    }


def _discovered(found: Followed, faults: Sequence[Planted]) -> dict[str, Any]:
    """At the false-discovery rate: how many faults were found, how many incidents there were, how many met no fault."""
    began = [[_begins(one, fault) for fault in faults] for one in found.discoveries]
    met = sum(any(one[number] for one in began) for number in range(len(faults)))
    false = sum(not any(one) for one in began)
    return {"discoveries": len(began), "false discoveries": false, "of": len(faults), "met": met}


def _begins(one: Incident, fault: Planted) -> bool:
    return fault.first <= one.since <= min(fault.last, fault.first + APART - 2) and _overlap(one, fault)


def _overlap(one: Incident, fault: Planted) -> bool:
    return one.kind in ("slice", "scene") or any(fault.entries[position] for position in one.entries)


def tables(records: Sequence[dict[str, Any]]) -> list[StudyTable]:
    """What was counted, as tables; those for which there is nothing are left out."""
    recorded = [one for one in records if one["row"] == RECORDING]
    return [
        *([_false_table(records)] if any("false a day" in one for one in records) else []),
        *([_found_table(records)] if any("fault" in one for one in records) else []),
        *([_discovery_table(records)] if any("discoveries" in one for one in records) else []),
        *([_recording_table(recorded[0])] if recorded else []),
    ]


def _false_table(records: Sequence[dict[str, Any]]) -> StudyTable:
    made = StudyTable(
        "False incidents a day on clean streams", ("stream", "asked", "reached", "three sigma, per entry")
    )
    for name, title in TITLES.items():
        mine = [one for one in records if one["row"] == name and "false a day" in one]
        if not mine:
            continue
        reached, rule = ([one[key] for one in mine] for key in ("false a day", "three sigma a day"))
        each = np.std(reached, ddof=1) / len(reached) ** 0.5 if len(reached) > 1 else np.nan
        made.rows.append((title, "1", f"{np.mean(reached):.2f} ± {each:.2f}", f"{np.mean(rule):.0f}"))
    return made


def _found_table(records: Sequence[dict[str, Any]]) -> StudyTable:
    headings = ("planted", "found", "incidents each", "named", "slices until it began")
    made = StudyTable("Planted faults, all streams", headings)
    for name in dict.fromkeys(one["fault"] for one in records if "fault" in one):
        mine = [one for one in records if one.get("fault") == name]
        met = [one for one in mine if one["found"]]
        named, delays = sum(one["named"] for one in met), [one["delay"] for one in met]
        each = f"{np.mean([one['incidents'] for one in met]):.2f}" if met else "–"
        delay = f"{np.median(delays):.0f}" if met else "–"
        made.rows.append((name, f"{len(met)} of {len(mine)}", each, f"{named} of {len(met)}", delay))
    return made


def _discovery_table(records: Sequence[dict[str, Any]]) -> StudyTable:
    headings = ("streams", "faults found", "incidents", "false ones")
    made = StudyTable(f"At a false-discovery rate ({FDR} asked)", headings)
    for title, with_faults in (("with faults", True), ("clean", False)):
        mine = [one for one in records if "discoveries" in one and bool(one["of"]) == with_faults]
        if not mine:
            continue
        met, of, count, false = (
            sum(one[key] for one in mine) for key in ("met", "of", "discoveries", "false discoveries")
        )
        found = f"{met} of {of}" if with_faults else "–"
        made.rows.append((f"{len(mine)} {title}", found, str(count), str(false)))
    return made


def _recording_table(record: dict[str, Any]) -> StudyTable:
    made = StudyTable("Server recording (SMD 2-2)", ("rule", "faults found", "alarms", "false a day"))
    for name, label in (("incidents", f"incidents, {ASKED} asked"), ("three sigma", "three sigma, per entry")):
        one = record[name]
        made.rows.append((label, f"{one['found']} of {one['faults']}", str(one["alarms"]), f"{one['false a day']:.1f}"))
    return made
