"""Curves over time: what `view/parts/chart.js` draws, which draws those of the live page too."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.html import Html, element

Floats = NDArray[np.float64]

_MOST_POINTS = 700  # more than pixels: a longer stream loses points, its peaks are kept


@dataclass(frozen=True)
class Curve:
    """One value per slice, and how to draw it; ``steps`` for integers that stay until they jump."""

    values: NDArray[Any]
    name: str
    percent: bool = False
    steps: bool = False


def chart(curve: Curve, times: list[str]) -> Html:
    """The curve over the slices, from 0, so that a flat one looks flat; ``times`` are their labels."""
    values = np.asarray(curve.values, np.float64)
    if not np.isfinite(values).any():
        return element("p", "no values", class_="soft")
    picks = reduced(np.where(np.isfinite(values), values, np.nan))
    kind = {"percent": curve.percent, "whole": curve.steps, "steps": curve.steps}
    wide = not curve.percent and not curve.steps
    lines = [{"values": numbers(values[picks])}]
    return drawn(f"{curve.name} over time", picks, lines, times, **{"from": 0, "wide": wide, **kind})


def drawn(title: str, picks: NDArray[np.int64], lines: Sequence[dict[str, Any]], times: list[str], **how: Any) -> Html:
    """A place for a chart.

    Args:
        title: For those who do not see it.
        picks: Slices of which there are values.
        lines: As `Chart.draw` takes them.
        times: Of all slices, as text.
        **how: Its options.
    """
    content = {
        "title": title,
        "slices": picks.tolist(),
        "lines": lines,
        "how": {**how, "labels": [times[pick] for pick in picks]},
    }
    return element("div", class_="chart", data_chart=json.dumps(content, allow_nan=False))


def numbers(values: Any) -> list[float | None]:
    """As JSON has them, no longer than can be seen; None where there is none."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, np.float64)]


def shown(value: float, percent: bool = False) -> str:
    """A number as people write it."""
    if percent:
        return f"{100 * value:.3g} %"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:.3g}"


def reduced(values: Floats) -> NDArray[np.int64]:
    """Indices worth drawing: all, or the smallest and largest of every stretch."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), _MOST_POINTS // 2 + 1).astype(int)
    picks: set[int] = {0, len(values) - 1}
    for begin, end in itertools.pairwise(edges):
        stretch = values[begin:end]
        if np.isfinite(stretch).any():
            picks.update((begin + int(np.nanargmin(stretch)), begin + int(np.nanargmax(stretch))))
    return np.asarray(sorted(picks))
