"""Forecasts of recorded streams, a slice, most of a day and a day ahead: the tracker beside simple methods and SOFIA.

Error: mean over the forecast slices of ‖X − X̂‖ / ‖X‖ on what was recorded. Everybody is given the recording as it is,
and begins to be judged after four days. Coverage: recorded entries within ±1.96 std.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from undertow.lab.baselines import cp, holt_winters, sofia
from undertow.lab.names import pick
from undertow.lab.recordings import abilene, chicago, hangzhou, radar
from undertow.lab.recordings.files import Folder
from undertow.lab.recordings.recording import Recording
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.tracker.estimator import Tracker


@dataclass(frozen=True)
class ForecastRow:
    """A recording.

    Attributes:
        name: As the command names it.
        load: Reads it.
        slices: How many of them are used.
        day: How many a day has.
        every: Slices between forecasts that are judged; it divides no day, so that all hours are.
    """

    name: str
    load: Callable[..., Recording]
    slices: int
    day: int
    every: int


ROWS = {
    row.name: row
    for row in (
        ForecastRow("hangzhou", hangzhou.load, 1080, 108, 5),
        ForecastRow("abilene", abilene.load, 2016, 288, 7),
        ForecastRow("chicago", chicago.load, 504, 24, 5),
        ForecastRow("radar", radar.load, 720, 24, 1),
    )
}
AHEAD: dict[str, Callable[[int], int]] = {
    "One slice ahead": lambda day: 1,
    "Seven eighths of a day ahead": lambda day: 7 * day // 8,
    "One day ahead": lambda day: day,
}
"""Horizons by the slices of a day. An eighth less than a day, what was an hour of it ago is of no use."""
DAYS_BEFORE = 4
"""Days after which forecasts are judged."""
SOFIA_RANK = 5

Slices = np.ndarray[Any, np.dtype[np.float64]]
Ahead = Callable[[int], Any]
"""The slice at a horizon, 1 being the next."""


def forecasts(
    names: Sequence[str] | None,
    reporter: Reporter,
    folder: Folder = None,
    days: int | None = None,
    methods: Sequence[str] | None = None,
) -> list[StudyTable]:
    """A table for each horizon; recordings whose file is missing are left out.

    Args:
        names: Of the recordings; None for all.
        reporter: Shows how far it is.
        folder: Of the files.
        days: Of each recording at most; None for as many as are usual here.
        methods: Their names; None for all.
    """
    wanted = pick("recording", names, ROWS)
    asked = {name: METHODS[name] for name in pick("method", methods, {name: name for name in METHODS})}
    headings = ("recording", *asked, *(["covered"] if next(iter(asked)) == TRACKER else []))
    tables = [StudyTable(title, headings) for title in AHEAD]
    reporter.begin(len(wanted) * len(asked))
    for row in wanted:
        try:
            values = row.load(folder).values[: min(row.slices, (days or row.slices) * row.day)]
        except FileNotFoundError as missing:
            reporter.say(str(missing))
            continue
        found = []
        for method, follow in asked.items():
            reporter.start(f"{row.name}, {method}", len(values))
            found.append(_judged(follow(values, row.day), values, row, reporter))
            reporter.done()
            reporter.say(f"{row.name}, {method}: {', '.join(f'{error:.3f}' for error, _ in found[-1])}")
        for position, table in enumerate(tables):
            errors = [f"{one[position][0]:.3f}" for one in found]
            covered = [f"{100 * found[0][position][1]:.0f} %"] * (len(headings) - len(errors) - 1)
            table.rows.append((row.name, *errors, *covered))
    return tables


def _judged(ahead: Iterator[Ahead], values: Slices, row: ForecastRow, reporter: Reporter) -> list[tuple[float, float]]:
    """Mean error and coverage at each horizon."""
    errors: list[list[tuple[float, float]]] = [[] for _ in AHEAD]
    for now, look in enumerate(ahead):
        reporter.tick()
        if now < DAYS_BEFORE * row.day or now % row.every:
            continue
        for scores, slices in zip(errors, AHEAD.values(), strict=True):
            horizon = slices(row.day)
            if now + horizon < len(values):
                scores.append(_score(look(horizon), values[now + horizon]))
    return [(float(np.mean([e for e, _ in one])), float(np.mean([c for _, c in one]))) for one in errors]


def _score(said: Any, truth: Slices) -> tuple[float, float]:
    mean, std = said if isinstance(said, tuple) else (said, np.full(truth.shape, np.nan))
    known = ~np.isnan(truth)
    size = np.linalg.norm(truth[known])
    if not size:
        return 0.0, 1.0
    within = (np.abs(truth - mean) <= 1.96 * std)[known]
    return float(np.linalg.norm((truth - mean)[known]) / size), float(within.mean())


def tracker(values: Slices, period: int) -> Iterator[Ahead]:
    """By default: the period is found."""
    model = Tracker()
    for x in values:
        model.update(x)

        def look(horizon: int) -> Any:
            made = model.forecast(horizon)
            return made.mean[-1], made.std[-1]

        yield look


def last_value(values: Slices, period: int) -> Iterator[Ahead]:
    """What every entry was when it was last observed."""
    for filled in _filled(values):
        yield lambda horizon, filled=filled: filled  # type: ignore[misc]


def seasonal(values: Slices, period: int) -> Iterator[Ahead]:
    """What every entry was one period earlier."""
    past: list[Slices] = []
    for filled in _filled(values):
        past.append(filled)
        yield lambda horizon: past[max(len(past) - 1 + horizon - period, 0)]


def smoothing(values: Slices, period: int) -> Iterator[Ahead]:
    """Additive Holt–Winters per entry, fitted to the first three days; the period is given."""
    start, rows = 3 * period, [filled.ravel() for filled in _filled(values)]
    level, trend, season, factors = holt_winters.fit(np.array(rows[:start]), period)
    shape = values.shape[1:]
    for now, row in enumerate(rows):
        if now >= start:
            level, trend, season = (np.asarray(one) for one in holt_winters.advance(row, level, trend, season, factors))
        yield _holt_winters(level, trend, season, lambda found: found.reshape(shape))


def with_sofia(values: Slices, period: int) -> Iterator[Ahead]:
    """SOFIA in units of the mean, which it needs; the period is given."""
    unit = float(np.nanmean(np.abs(values[: 3 * period]))) or 1.0
    state = sofia.init(sofia.Config(rank=SOFIA_RANK, period=period), values.shape[1:])
    for x in values:
        state, _ = sofia.step(state, np.nan_to_num(x / unit), ~np.isnan(x))

        def slice_of(row: Any, factors: Any = state.factors) -> Any:
            with jax.enable_x64(True):
                return unit * np.asarray(cp.compose(factors, row))

        yield _holt_winters(state.level, state.trend, state.season, slice_of)


def _holt_winters(level: Any, trend: Any, season: Any, slice_of: Callable[[Any], Any]) -> Ahead:
    return lambda horizon: slice_of(level + horizon * trend + season[(horizon - 1) % len(season)])


def _filled(values: Slices) -> Iterator[Slices]:
    """With the last value where nothing was observed; 0 before the first."""
    last = np.zeros(values.shape[1:])
    for x in values:
        last = np.where(np.isnan(x), last, x)
        yield last


TRACKER = "tracker"
METHODS: dict[str, Callable[[Slices, int], Iterator[Ahead]]] = {
    TRACKER: tracker,
    "last value": last_value,
    "seasonal naive": seasonal,
    "Holt–Winters": smoothing,
    "SOFIA": with_sofia,
}
