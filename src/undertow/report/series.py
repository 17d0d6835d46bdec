"""One entry over time as SVG: its data, its band, its flags."""

from __future__ import annotations

import json

import numpy as np

from undertow.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Curve, Scale, shown, thinned, tick, time_axis
from undertow.runs.store.reader import StoredRun
from undertow.view.html import element, heading, joined
from undertow.view.series import Series, selected


def the_series(run: StoredRun, position: tuple[int, ...], times: list[str]) -> str:
    """The history of an entry; nothing where mean and error bars were not kept."""
    if run.mean_name is None or "std" not in run.kept:
        return ""
    labels = {
        dim: run.per_slice(dim)[index] if dim in run.dataset.coords else index
        for dim, index in zip(run.dims, position, strict=True)
    }
    where = dict(zip(run.dims, position, strict=True))
    for name in (run.mean_name, *run.kept):
        if set(run.dims) <= set(run.dataset[name].dims):
            run.loaded(run.dataset[name].isel(where))  # damage is called damage before the plot meets it
    found = selected(run.dataset, labels, run.threshold)
    if not np.isfinite(found.mean).any():
        return ""
    return joined(
        heading(2, "One entry over time", f"{found.title}: the one flagged most"),
        element("section", heading(3, "", "", element("output")), _drawn(found, times), class_="wide"),
    )


def _drawn(found: Series, times: list[str]) -> str:
    mean, width = np.asarray(found.mean, np.float64), 1.96 * np.asarray(found.std, np.float64)
    data = mean if found.data is None else np.asarray(found.data, np.float64)
    inside = np.concatenate([mean - width, mean + width, data])
    curve = Curve(mean, found.title, from_zero=False)
    scale = Scale.of(inside[np.isfinite(inside)], curve)
    picks = np.union1d(thinned(mean), np.flatnonzero(found.flagged)[:2000])
    x = LEFT + (WIDTH - LEFT - RIGHT) * picks / max(len(mean) - 1, 1)
    low, high = (scale.height(np.maximum(edge, scale.low))[picks] for edge in (mean - width, mean + width))
    known = np.isfinite(low) & np.isfinite(high)
    forth = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known], high[known], strict=True))
    back = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known][::-1], low[known][::-1], strict=True))
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known], scale.height(mean)[picks][known], strict=True))
    dots = (
        element("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=3.2 if flag else 1.4, class_="flag" if flag else "dot")
        for a, b, flag in zip(x, scale.height(data)[picks], found.flagged[picks], strict=True)
        if np.isfinite(b) and found.data is not None
    )
    points = {
        "x": [round(float(place), 1) for place in x],
        "y": [None if np.isnan(y) else round(float(y), 1) for y in scale.height(mean)[picks]],
        "label": [times[pick] for pick in picks],
        "value": [_told(data[pick], mean[pick], width[pick], bool(found.flagged[pick])) for pick in picks],
    }
    floor = HEIGHT - BOTTOM
    return element(
        "svg",
        (tick(scale, mark, curve) for mark in scale.ticks),
        element("polygon", class_="area", points=f"{forth} {back}"),
        element("polyline", class_="line", points=line),
        dots,
        time_axis(times),
        element("g", element("line", y1=0, y2=floor), element("circle", r=3.5), class_="cursor"),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{found.title} over time, with its band and flags",
        data_points=json.dumps(points),
    )


def _told(value: float, mean: float, width: float, flagged: bool) -> str:
    seen = "not observed" if np.isnan(value) else shown(float(value))
    return f"{seen}{', flagged' if flagged else ''}; should be {shown(float(mean))} ± {shown(float(width))}"
