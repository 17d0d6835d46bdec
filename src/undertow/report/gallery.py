"""The pictures of the page: where outliers are, and the slices that went worst."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from undertow.report.chart import shown
from undertow.report.findings import WorstSlice, how_often, worst_slices
from undertow.report.pictures import Picture, limits, picture, plane
from undertow.runs.store.reader import StoredRun

_LONG_LABEL = 40
_MOST_FLAGGED = 10


def where_the_outliers_are(run: StoredRun) -> str:
    """How often every entry was flagged, as a map, with the entries that were flagged most."""
    found = how_often(run)
    if found is None or not found[0].any():
        return ""
    shares, looked_at = found
    flat = shares.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:_MOST_FLAGGED]
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(label)}</td>' for label in _labels(run, int(entry)))}"
        f'<td class="number">{flat[entry]:.1%}</td></tr>'
        for entry in order
        if flat[entry] > 0
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in run.dims)
    drawn, fixed = plane({"share": shares}, shares)
    sampled = f", {looked_at:,} of {run.length:,} slices looked at" if looked_at < run.length else ""
    high = float(drawn["share"].max()) or 1.0
    panel = _panel(picture(f"share of the slices{_at(run, fixed)}", drawn["share"], 0.0, high, "magma"))
    return (
        f'<h2>Where the outliers are<span class="aside">how often every entry was flagged{sampled}</span></h2>'
        f'<section class="where"><div>{panel}</div><div class="scroll"><table><thead><tr>{head}'
        f'<th class="number">flagged</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def the_worst_slices(run: StoredRun, times: list[str]) -> str:
    """Data, low rank, outliers and error bars of a few slices, side by side."""
    if not {"low_rank", "outliers"} <= set(run.kept):
        return (
            '<h2>The worst slices</h2><p class="soft">No pictures: this store was made without low_rank and outliers '
            "(option --keep).</p>"
        )
    found = worst_slices(run)
    if not found:
        return ""
    body = "".join(_one_slice(run, worst, times) for worst in found)
    hint = "" if "data" in run.kept else " The data were not kept (--keep data): low rank + outliers stand for them."
    return f'<h2>The worst slices</h2><p class="soft">Grey: nothing was observed.{hint}</p>{body}'


def _one_slice(run: StoredRun, worst: WorstSlice, times: list[str]) -> str:
    names = [name for name in ("data", "low_rank", "outliers", "std") if name in run.kept]
    arrays: dict[str, Any] = {name: run.slice(name, worst.index) for name in names}
    arrays.setdefault("data", arrays["low_rank"] + arrays["outliers"])
    arrays, fixed = plane(arrays, np.abs(arrays["outliers"]))
    low, high = limits(arrays["low_rank"])  # not the data: one large outlier would leave everything else dark
    panels = [
        picture("data" if "data" in run.kept else "low rank + outliers", arrays["data"], low, high, "viridis"),
        picture("low rank", arrays["low_rank"], low, high, "viridis"),
        picture("outliers", arrays["outliers"], *limits(arrays["outliers"], around_zero=True), "RdBu_r"),
    ]
    if "std" in arrays:  # from 0: error bars that are all alike should look alike
        panels.append(picture("standard deviation", arrays["std"], 0.0, limits(arrays["std"])[1], "cividis"))
    height, width = arrays["low_rank"].shape
    title, why = f"slice {worst.index:,}", worst.why + _at(run, fixed)
    if times[worst.index] != str(worst.index):
        title, why = times[worst.index], f"{title}: {why}"
    return (
        f'<section><h3>{escape(title)}<span class="aside">{escape(why)}</span></h3>'
        f'<div class="panels{" flat" if width > 3 * height else ""}">{"".join(map(_panel, panels))}</div></section>'
    )


def _panel(one: Picture) -> str:
    return (
        f'<figure><img alt="{escape(one.title)}" src="data:image/png;base64,{one.png}">'
        f'<figcaption>{escape(one.title)}<span class="key"><i>{escape(shown(one.low))}</i>'
        f'<s style="background:linear-gradient(90deg,{one.map})"></s><i>{escape(shown(one.high))}</i></span>'
        "</figcaption></figure>"
    )


def short(text: str) -> str:
    """A label that fits into a table."""
    return text if len(text) <= _LONG_LABEL else f"{text[: _LONG_LABEL - 1]}…"


def _at(run: StoredRun, fixed: dict[int, int]) -> str:
    """Which plane of a slice with more than two modes is shown."""
    return "".join(f", {run.dims[mode]} {_label(run, mode, index)}" for mode, index in fixed.items())


def _labels(run: StoredRun, entry: int) -> list[str]:
    place = np.unravel_index(entry, run.shape)
    return [_label(run, mode, int(index)) for mode, index in enumerate(place)]


def _label(run: StoredRun, mode: int, index: int) -> str:
    name = run.dims[mode]
    return short(str(run.dataset[name].values[index])) if name in run.dataset.coords else str(index)
