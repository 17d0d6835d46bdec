"""One entry over time: its data, its band, its flags."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.report.chart import drawn, numbers, reduced
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
            run.loaded(run.dataset[name].isel(where))  # damage is called damage before it is plotted
    found = selected(run.dataset, labels, run.threshold)
    if not np.isfinite(found.mean).any():
        return ""
    return joined(
        heading(2, "One entry over time", f"{found.title}{f', in {found.unit}' if found.unit else ''}: flagged most"),
        element("section", _drawn(found, times), class_="wide"),
    )


def _drawn(found: Series, times: list[str]) -> str:
    mean, width = np.asarray(found.mean, np.float64), 1.96 * np.asarray(found.std, np.float64)
    picks = np.union1d(reduced(mean), np.flatnonzero(found.flagged)[:2000])
    lines: list[dict[str, Any]] = [{"name": "should be, with 95 % band", "values": numbers(mean[picks])}]
    if found.data is not None:
        data, flagged = np.asarray(found.data, np.float64)[picks], found.flagged[picks]
        clean, off = np.where(flagged, np.nan, data), np.where(flagged, data, np.nan)
        lines.append({"name": "observed", "values": numbers(clean), "dots": 1.6, "colour": "--soft"})
        lines.append({"name": "flagged", "values": numbers(off), "dots": 3.2, "colour": "--bad", "far": True})
    band = {"low": numbers((mean - width)[picks]), "high": numbers((mean + width)[picks])}
    return drawn(f"{found.title} over time, with its band and flags", picks, lines, times, band=band)
