"""Of a tracker: weights of its predictors over time, and what was wrong beyond single entries."""

from __future__ import annotations

import numpy as np

from undertow.report.chart import drawn, numbers
from undertow.runs.store.events import Chronicle
from undertow.runs.store.layout import EVENTS, WEIGHTS
from undertow.runs.store.reader import StoredRun
from undertow.view.html import element, heading, joined, table

_COLUMNS = 240  # of the picture of the weights: a longer stream is averaged
_MOST_EVENTS = 30


def the_weights(run: StoredRun, times: list[str]) -> str:
    """How much each predictor counted, stacked over time."""
    if not run.predictors:
        return ""
    weights = np.nan_to_num(run.per_slice(WEIGHTS).astype(np.float64))
    ends = np.linspace(0, len(weights), min(len(weights), _COLUMNS) + 1).astype(np.int64)
    averaged = np.add.reduceat(weights, ends[:-1]) / np.diff(ends)[:, None]
    lines = [
        {"name": f"{name.replace('_', ' ')} {mean:.0%}", "values": numbers(averaged[:, number])}
        for number, (name, mean) in enumerate(zip(run.predictors, weights.mean(axis=0), strict=True))
    ]
    how = {"stacked": True, "percent": True, "from": 0, "to": 1}
    return joined(
        heading(2, "Who answered", "weight of every predictor, and its mean"),
        element("section", drawn("weights of the predictors", ends[:-1], lines, times, **how), class_="wide"),
    )


def the_events(run: StoredRun, times: list[str]) -> str:
    """Slices, rows and sensors that were off, and changes that lasted: what, and since when."""
    if not run.predictors:
        return ""
    found = Chronicle()
    for index, text in enumerate(map(str, run.per_slice(EVENTS))):
        found.add(index, text)
    if not found.events:
        return ""
    rows = [(one.what, times[one.first], times[one.last], str(one.last - one.first + 1)) for one in found.events]
    count = f", the last {_MOST_EVENTS} of {len(rows)}" if len(rows) > _MOST_EVENTS else ""
    return joined(
        heading(2, "Events", f"what was wrong beyond single entries{count}"),
        element("section", table(("what", "from", "to", "slices"), rows[-_MOST_EVENTS:], ["slices"]), class_="scroll"),
    )
