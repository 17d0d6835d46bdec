"""A curve over time as SVG: sharp at any size, light or dark with the page, values under the pointer."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 560, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 26
_MOST_POINTS = 700  # more than pixels: a long stream is thinned, its peaks are kept


@dataclass(frozen=True)
class Curve:
    """One value per slice, and how to draw it."""

    values: Floats
    name: str
    percent: bool = False
    steps: bool = False
    """Whole numbers that stay until they jump."""


def chart(curve: Curve, times: list[str]) -> str:
    """The curve over the slices; ``times`` are their labels."""
    values = np.asarray(curve.values, np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    if not np.isfinite(values).any():
        return '<p class="soft">no values</p>'
    picks = thinned(values)
    scale = _Scale.of(values, curve)
    last = max(len(values) - 1, 1)
    x = _LEFT + (WIDTH - _LEFT - _RIGHT) * picks / last
    y = scale.place(values[picks])
    marks = "".join(_tick(scale, tick, curve) for tick in scale.ticks)
    data = {
        "x": [round(float(place), 1) for place in x],
        "y": [None if math.isnan(place) else round(float(place), 1) for place in y],
        "label": [times[pick] for pick in picks],
        "value": ["–" if math.isnan(value) else shown(value, curve.percent) for value in values[picks]],
    }
    path = _path(x, y, curve.steps)
    area = f"{path} L{x[-1]:.1f},{HEIGHT - _BOTTOM} L{x[0]:.1f},{HEIGHT - _BOTTOM} Z" if "M" not in path[1:] else ""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(curve.name)} over time" '
        f"data-points='{escape(json.dumps(data), quote=True)}'>{marks}"
        f'<path class="area" d="{area}"/><path class="line" d="{path}"/>{_time_axis(times)}'
        f'<g class="cursor"><line y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/><circle r="3.5"/></g></svg>'
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
class _Scale:
    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Floats, curve: Curve) -> _Scale:
        known = values[np.isfinite(values)]
        low, high = float(known.min()), float(known.max())
        if not curve.percent and not curve.steps and low > 0 and high > 50 * low:
            begin, end = math.floor(math.log10(low)), math.ceil(math.log10(high))
            powers = range(begin, end + 1, max(1, (end - begin) // 4))
            return cls(10.0**begin, 10.0**end, True, tuple(10.0**power for power in powers))
        low = min(low, 0.0)  # from 0, so that a flat curve looks flat
        high = high if high > low else low + 1.0
        stride = _round_stride((high - low) / 4, whole=curve.steps)
        first, last = math.floor(low / stride), math.ceil(high / stride - 1e-9)
        ticks = tuple(stride * number for number in range(first, last + 1))
        return cls(ticks[0], ticks[-1], False, ticks)

    def place(self, values: Any) -> Floats:
        """Height in the picture."""
        height = HEIGHT - _TOP - _BOTTOM
        if self.logarithmic:
            share = np.log(np.asarray(values) / self.low) / math.log(self.high / self.low)
        else:
            share = (np.asarray(values) - self.low) / (self.high - self.low)
        return np.asarray(HEIGHT - _BOTTOM - height * share, np.float64)


def _round_stride(rough: float, whole: bool) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    stride = next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= rough * (1 - 1e-9))
    return max(1.0, math.ceil(stride)) if whole else stride


def _tick(scale: _Scale, tick: float, curve: Curve) -> str:
    y = float(scale.place(tick))
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 3.5:.1f}" text-anchor="end">{escape(shown(tick, curve.percent))}</text>'
    )


def _path(x: Floats, y: Floats, steps: bool) -> str:
    pieces: list[str] = []
    pen_down = False
    for place, height in zip(x, y, strict=True):
        if math.isnan(height):
            pen_down = False
            continue
        if pen_down:
            pieces.append(f"H{place:.1f}V{height:.1f}" if steps else f"L{place:.1f},{height:.1f}")
        else:
            pieces.append(f"M{place:.1f},{height:.1f}")
        pen_down = True
    return "".join(pieces)


def _time_axis(times: list[str]) -> str:
    places = [(0, "start", _LEFT), (len(times) // 2, "middle", (WIDTH + _LEFT - _RIGHT) / 2)]
    places.append((len(times) - 1, "end", WIDTH - _RIGHT))
    wanted = places if len(times) > 2 and max(map(len, times[:1] + times[-1:])) < 24 else [places[0], places[-1]]
    return "".join(
        f'<text x="{x}" y="{HEIGHT - 7}" text-anchor="{anchor}">{escape(times[index])}</text>'
        for index, anchor, x in wanted
    )
