"""Incidents: false ones on clean streams beside what was asked for, planted ones found, and a labelled recording.

Clean streams of 12×12, a tenth of them hidden, five minutes a slice: normal noise, Student's t with three degrees of
freedom, counts, counts with a daily pattern, and a daily pattern with normal noise. The same streams with a spike, a
router that fails (a row and a column), a block, a slice, a change of level and a dead sensor planted. Then the server
recording, if it is there. Beside it a rule per entry: three standard deviations from the mean of the same model; slices
in a row in which it fires are one alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import Incident, Incidents
from undertow.lab.recordings import smd
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.lab.synthetic.counts import poisson
from undertow.lab.synthetic.dynamics import autoregressive, seasonal
from undertow.lab.synthetic.noises import heavy_tailed

SHAPE, OBSERVED = (12, 12), 0.9
STEP, DAY = 300.0, 288
"""Seconds between slices, and slices in a day."""
ASKED = "1/day"
FIRST, APART = 300, 70
"""The slice in which the first fault is planted, and slices between faults."""
TRAINED = 1000
"""Slices of the recording before its labelled part, to begin with."""
Floats = NDArray[np.float64]


def gaussian(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Factors with AR(1) rows and normal noise; values, and the size of a fault: 12 σ."""
    made = autoregressive(SHAPE, slices=slices, observed=observed, seed=seed)
    return made.values, 0.6


def heavy(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Noise of Student's t with three degrees of freedom; a fault is 120 of its scales, once in ten days by chance."""
    made = heavy_tailed(SHAPE, slices=slices, observed=observed, seed=seed)
    return made.values, 12.0


def counts(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Poisson counts around 5."""
    return poisson(5.0, SHAPE, slices=slices, observed=observed, seed=seed).values, 12 * 5**0.5


def daily_counts(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """Poisson counts whose rates follow the day, every entry with an hour of its own."""
    draw = np.random.default_rng([seed, 11])
    rates = 20 * np.exp(0.5 * draw.standard_normal(SHAPE))
    angle = 2 * np.pi * (np.arange(slices)[:, None, None] / DAY + draw.random(SHAPE))
    values = draw.poisson(rates * (1 + 0.8 * np.sin(angle))).astype(np.float64)
    return np.where(draw.random(values.shape) < observed, values, np.nan), 12 * 20**0.5


def daily(slices: int, seed: int, observed: float) -> tuple[Floats, float]:
    """A season of a day, and normal noise."""
    return seasonal(SHAPE, slices=slices, period=DAY, observed=observed, seed=seed).values, 0.6


STREAMS: dict[str, Callable[[int, int, float], tuple[Floats, float]]] = {
    "normal noise": gaussian,
    "Student's t, 3": heavy,
    "counts": counts,
    "counts, daily pattern": daily_counts,
    "daily pattern": daily,
}


@dataclass(frozen=True)
class Planted:
    """A fault: its kinds in words of incidents, its slices, and the entries that it touches."""

    name: str
    kinds: tuple[str, ...]
    first: int
    last: int
    entries: NDArray[np.bool_]


@dataclass(frozen=True)
class Followed:
    """What was found in a stream: incidents, and slices in which the rule per entry fired."""

    incidents: tuple[Incident, ...]
    three_sigma: NDArray[np.bool_]


def incidents(
    seeds: Sequence[int], slices: int, reporter: Reporter, folder: Folder = None
) -> tuple[list[StudyTable], list[dict[str, Any]]]:
    """The tables, and the numbers behind them; without the recording where it is missing."""
    reporter.begin(2 * len(STREAMS) * len(seeds) + 1)
    records = []
    for name, make in STREAMS.items():
        for seed in seeds:
            found = follow(make(slices, seed, OBSERVED)[0], reporter, f"{name}, seed {seed}", step=STEP)
            records.append({"stream": name, "seed": seed, "slices": slices, **_false(found)})
            changed, faults = planted(*make(FIRST + 7 * APART, seed + 1000, 1.0))
            found = follow(changed, reporter, f"{name} with faults, seed {seed}", step=STEP)
            records += [{"stream": name, "seed": seed, **_met(one, found)} for one in faults]
    tables = [_false_table(records), _found_table(records)]
    try:
        record = recording(reporter, folder)
    except FileNotFoundError as missing:
        reporter.say(str(missing))
        return tables, records
    return [*tables, _recording_table(record)], [*records, record]


def follow(values: Iterable[Floats], reporter: Reporter, name: str, step: float, false_alarms: str = ASKED) -> Followed:
    """A stream through a tracker, its results into incidents."""
    from undertow.tracker.estimator import Tracker

    slices = list(values)
    reporter.start(name, len(slices))
    model, watch = Tracker(), Incidents(slices[0].shape, false_alarms=false_alarms, step=step)
    told: dict[int, Incident] = {}
    fired = np.zeros(len(slices), bool)
    for t, x in enumerate(slices):
        result = model.update(x)
        told |= {change.incident.id: change.incident for change in watch.update(result, values=x)}
        fired[t] = bool((np.abs(x - result.mean) > 3 * result.std).any())
        reporter.tick()
    told |= {one.id: one for one in watch.open}
    reporter.done()
    return Followed(tuple(told.values()), fired)


def planted(values: Floats, size: float) -> tuple[Floats, list[Planted]]:
    """The stream with one fault of each kind, of this size and far apart."""
    made = values.copy()
    faults: list[Planted] = []

    def fault(name: str, kinds: tuple[str, ...], lasts: int, where: Any, change: Callable[[Floats], Floats]) -> None:
        first = FIRST + APART * len(faults)
        entries = np.zeros(SHAPE, bool)
        entries[where] = True
        part = made[first : first + lasts]
        made[first : first + lasts] = np.where(entries, change(part), part)
        faults.append(Planted(name, kinds, first, first + lasts - 1, entries))

    both = np.zeros(SHAPE, bool)
    both[5], both[:, 5] = True, True
    everywhere = np.ones(SHAPE, bool)
    fault("spike", ("entry",), 1, (3, 4), lambda part: part + size)
    fault("router, row and column", ("row", "change"), 10, both, lambda part: part + size)
    fault("block", ("block",), 3, np.ix_([2, 3, 4], [7, 8, 9]), lambda part: part + size)
    fault("slice", ("slice",), 1, everywhere, lambda part: 3 * part + size)
    fault("dead sensor", ("dead",), 60, (8, 8), lambda part: np.broadcast_to(part[0], part.shape))
    fault("level", ("change",), len(made), (1, 10), lambda part: part + size)
    return made, faults


def recording(reporter: Reporter, folder: Folder = None) -> dict[str, Any]:
    """Labelled faults of the server recording that are found, and false incidents a day."""
    held = smd.load(folder)
    values = np.concatenate([held.train[-TRAINED:], held.values])
    found = follow(values, reporter, "server recording", step=60.0)
    return {"stream": "server recording", **judged(found, held.faulty, TRAINED)}


def judged(found: Followed, faulty: NDArray[np.bool_], first: int) -> dict[str, Any]:
    """How many labelled faults were met, and alarms that met none, of slices from ``first`` on; a minute each."""
    faults = runs(faulty)
    days = len(faulty) / 1440
    spans = [(one.since - first, (one.last if one.until is None else one.until) - first) for one in found.incidents]
    spans = [span for span in spans if span[1] >= 0]
    numbers = {}
    for name, alarms in (("incidents", spans), ("three sigma", runs(found.three_sigma[first:]))):
        met = [any(a <= last and b >= begin for a, b in alarms) for begin, last in faults]
        false = [not any(a <= last and b >= begin for begin, last in faults) for a, b in alarms]
        numbers[name] = {
            "found": sum(met),
            "faults": len(faults),
            "alarms": len(alarms),
            "false a day": sum(false) / days,
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


def _overlap(one: Incident, fault: Planted) -> bool:
    return one.kind in ("slice", "scene") or any(fault.entries[position] for position in one.entries)


def _false_table(records: Sequence[dict[str, Any]]) -> StudyTable:
    made = StudyTable(
        "False incidents a day on clean streams", ("stream", "asked", "reached", "three sigma, per entry")
    )
    for name in STREAMS:
        mine = [one for one in records if one["stream"] == name and "false a day" in one]
        reached, rule = ([one[key] for one in mine] for key in ("false a day", "three sigma a day"))
        each = np.std(reached, ddof=1) / len(reached) ** 0.5 if len(reached) > 1 else np.nan
        made.rows.append((name, "1", f"{np.mean(reached):.2f} ± {each:.2f}", f"{np.mean(rule):.0f}"))
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


def _recording_table(record: dict[str, Any]) -> StudyTable:
    made = StudyTable("Server recording (SMD 2-2)", ("rule", "faults found", "alarms", "false a day"))
    for name, label in (("incidents", f"incidents, {ASKED} asked"), ("three sigma", "three sigma, per entry")):
        one = record[name]
        made.rows.append((label, f"{one['found']} of {one['faults']}", str(one["alarms"]), f"{one['false a day']:.1f}"))
    return made
