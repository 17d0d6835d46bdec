"""Of a tracker: weights of its predictors over time, and what was wrong beyond single entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, time_axis
from undertow.runs.store.events import Chronicle
from undertow.runs.store.layout import EVENTS, WEIGHTS
from undertow.runs.store.reader import StoredRun
from undertow.view.html import element, heading, joined, table

_COLUMNS = 240  # of the picture of the weights: a longer stream is averaged
_MOST_EVENTS = 30
_FLOOR = HEIGHT - BOTTOM


def the_weights(run: StoredRun, times: list[str]) -> str:
    """How much each predictor counted, stacked over time."""
    if not run.predictors:
        return ""
    weights = _averaged(np.nan_to_num(run.per_slice(WEIGHTS).astype(np.float64)))
    edges = LEFT + (WIDTH - LEFT - RIGHT) * np.arange(len(weights) + 1) / len(weights)
    tops = np.cumsum(weights, axis=1)
    areas = (
        element("path", class_=f"share share-{number}", d=_area(edges, top - weights[:, number], top))
        for number, top in enumerate(tops.T)
    )
    means = np.nan_to_num(run.per_slice(WEIGHTS).astype(np.float64)).mean(axis=0)
    key = (
        element("span", element("i", class_=f"share share-{number}"), f"{name.replace('_', ' ')} {means[number]:.0%}")
        for number, name in enumerate(run.predictors)
    )
    ticks = (
        element("text", f"{share:.0%}", x=LEFT - 8, y=f"{_height(share) + 3.5:.1f}", text_anchor="end")
        for share in (0.0, 0.5, 1.0)
    )
    drawn = element(
        "svg",
        ticks,
        areas,
        time_axis(times),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label="weights of the predictors over time",
    )
    return joined(
        heading(2, "Who answered", "weight of every predictor, and its mean"),
        element("section", drawn, element("p", key, class_="shares"), class_="wide"),
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


def _averaged(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most as many rows as the picture has columns."""
    if len(weights) <= _COLUMNS:
        return weights
    return np.stack([part.mean(axis=0) for part in np.array_split(weights, _COLUMNS)])


def _height(share: float) -> float:
    return _FLOOR - (_FLOOR - TOP) * share


def _area(edges: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> str:
    """Steps from the left to the right along the top, and back along the bottom."""
    forth = "".join(f"V{_height(top):.1f}H{x:.1f}" for top, x in zip(high, edges[1:], strict=True))
    back = "".join(f"V{_height(bottom):.1f}H{x:.1f}" for bottom, x in zip(low[::-1], edges[-2::-1], strict=True))
    return f"M{edges[0]:.1f},{_height(low[0]):.1f}{forth}{back}Z"
