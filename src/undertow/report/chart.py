"""A curve over time as SVG: sharp at any size, light or dark with the page, values under the pointer."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.html import Html, element, joined

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 560, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 26
_MOST_POINTS = 700  # more than pixels: a longer stream is thinned, its peaks are kept


@dataclass(frozen=True)
class Curve:
    """One value per slice, and how to draw it; ``steps`` for integers that stay until they jump.

    From 0, so that a flat curve looks flat, unless ``from_zero`` is False.
    """

    values: NDArray[Any]
    name: str
    percent: bool = False
    steps: bool = False
    from_zero: bool = True


def chart(curve: Curve, times: list[str]) -> Html:
    """The curve over the slices; ``times`` are their labels."""
    values = np.asarray(curve.values, np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    if not np.isfinite(values).any():
        return element("p", "no values", class_="soft")
    picks = thinned(values)
    scale = Scale.of(values, curve)
    x = LEFT + (WIDTH - LEFT - RIGHT) * picks / max(len(values) - 1, 1)
    y = scale.height(values[picks])
    data = {
        "x": [round(float(position), 1) for position in x],
        "y": [None if math.isnan(position) else round(float(position), 1) for position in y],
        "label": [times[pick] for pick in picks],
        "value": ["–" if math.isnan(value) else shown(value, curve.percent) for value in values[picks]],
    }
    path, floor = _path(x, y, curve.steps), HEIGHT - BOTTOM
    area = f"{path} L{x[-1]:.1f},{floor} L{x[0]:.1f},{floor} Z" if not np.isnan(y).any() else ""
    return element(
        "svg",
        (tick(scale, mark, curve) for mark in scale.ticks),
        element("path", class_="area", d=area),
        element("path", class_="line", d=path),
        time_axis(times),
        element("g", element("line", y1=TOP, y2=floor), element("circle", r=3.5), class_="cursor"),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{curve.name} over time",
        data_points=json.dumps(data),
    )


def shown(value: float, percent: bool = False) -> str:
    """A number as people write it."""
    if percent:
        return f"{100 * value:.3g} %"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:.3g}"


def thinned(values: Floats) -> NDArray[np.int64]:
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


@dataclass(frozen=True)
class Scale:
    """From values to heights in the picture."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Floats, curve: Curve) -> Scale:
        """One that holds all values, with round marks."""
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        if curve.from_zero and not curve.percent and not curve.steps and low > 0 and high > 50 * low:
            begin, end = math.floor(math.log10(low)), math.ceil(math.log10(high))
            powers = range(begin, end + 1, max(1, (end - begin) // 4))
            return cls(10.0**begin, 10.0**end, True, tuple(10.0**power for power in powers))
        low = min(low, 0.0) if curve.from_zero else low
        high = high if high > low else low + 1.0
        stride = _round_stride((high - low) / 4, integer=curve.steps)
        first, last = math.floor(low / stride), math.ceil(high / stride - 1e-9)
        ticks = tuple(stride * number for number in range(first, last + 1))
        return cls(ticks[0], ticks[-1], False, ticks)

    def height(self, values: Any) -> Floats:
        """In the picture."""
        if self.logarithmic:
            fraction = np.log(np.asarray(values) / self.low) / math.log(self.high / self.low)
        else:
            fraction = (np.asarray(values) - self.low) / (self.high - self.low)
        return np.asarray(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * fraction, np.float64)


def _round_stride(rough: float, integer: bool) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    stride = next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= rough * (1 - 1e-9))
    return max(1.0, math.ceil(stride)) if integer else stride


def tick(scale: Scale, mark: float, curve: Curve) -> Html:
    """A line across the picture with its number."""
    y = float(scale.height(mark))
    return joined(
        element("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}"),
        element("text", shown(mark, curve.percent), x=LEFT - 8, y=f"{y + 3.5:.1f}", text_anchor="end"),
    )


def _path(x: Floats, y: Floats, steps: bool) -> str:
    pieces: list[str] = []
    pen_down = False
    for position, height in zip(x, y, strict=True):
        if not math.isnan(height):
            command = "M{:.1f},{:.1f}" if not pen_down else "H{:.1f}V{:.1f}" if steps else "L{:.1f},{:.1f}"
            pieces.append(command.format(position, height))
        pen_down = not math.isnan(height)
    return "".join(pieces)


def time_axis(times: list[str]) -> Html:
    """The first, the last and the middle of the times below a picture of this width."""
    ends = [(0, "start", float(LEFT)), (len(times) - 1, "end", float(WIDTH - RIGHT))]
    if len(times) > 2 and max(len(times[0]), len(times[-1])) < 24:
        ends.append((len(times) // 2, "middle", (WIDTH + LEFT - RIGHT) / 2))
    return joined(element("text", times[index], x=x, y=HEIGHT - 7, text_anchor=anchor) for index, anchor, x in ends)
