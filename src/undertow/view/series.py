"""One entry over time: as it came, as it should be with its band, and what was flagged."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.drawing import ACCENT, DEEP, INK, blank, plain
from undertow.view.names import Names

DETAILS = "incident_details"
"""Of a Dataset: each incident as JSON."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Series:
    """An entry over time; arrays are (T,).

    Attributes:
        title: The entry in words.
        times: Of the slices.
        mean: What it should be.
        std: Of an observation around it.
        flagged: Whether it is an outlier.
        data: As it came, NaN where nothing was observed; None where that is not known.
        unit: Of the data.
        time_name: What the times are called.
        position: Of the entry.
        probability: That it is an outlier; 0 where that was not kept.
        in_utc: Whether the source had a time zone: the times are in UTC then.
        incidents: That name the entry, oldest first, as JSON has them.
    """

    title: str
    times: NDArray[Any]
    mean: Floats
    std: Floats
    flagged: NDArray[np.bool_]
    data: Floats | None = None
    unit: str = ""
    time_name: str = "time"
    position: tuple[int, ...] = ()
    probability: Floats = field(default_factory=lambda: np.zeros(0))
    in_utc: bool = False
    incidents: tuple[dict[str, Any], ...] = ()


def draw(series: Series, axes: Any = None) -> Any:
    """The axes that it was drawn on, those of a new figure unless given."""
    if axes is None:
        axes = blank(9, 3).add_subplot()
    times, band = series.times, 1.96 * np.asarray(series.std, np.float64)
    axes.fill_between(
        times, series.mean - band, series.mean + band, color=DEEP, alpha=0.15, linewidth=0, label="95 % of clean data"
    )
    axes.plot(times, series.mean, color=DEEP, linewidth=1.4, label="mean")
    if series.data is not None:
        clean = ~series.flagged
        axes.plot(times[clean], series.data[clean], ".", color=INK, markersize=3, label="data")
        axes.plot(times[~clean], series.data[~clean], "o", color=ACCENT, markersize=5, label="flagged")
    spans = [_span(one, len(times) - 1) for one in series.incidents]
    for number, (begin, end) in enumerate(span for span in spans if span[0] < span[1]):
        known = None if number else "incident"
        axes.axvspan(times[begin], times[end], color=ACCENT, alpha=0.08, linewidth=0, label=known)
    axes.set_ylim(*_shown(series, band))
    plain(axes, series.title, series.unit, f"{series.time_name}{' (UTC)' if series.in_utc else ''}")
    axes.legend(frameon=False, fontsize=8, ncols=5, loc="lower right", bbox_to_anchor=(1, 1.0), borderaxespad=0.2)
    return axes


def _span(incident: dict[str, Any], newest: int) -> tuple[int, int]:
    """Its first slice and its last, of those that there are; an open one goes on."""
    end = newest if incident["until"] is None else int(incident["until"])
    return min(max(int(incident["since"]), 0), newest), min(max(end, 0), newest)


def _shown(series: Series, band: Floats) -> tuple[float, float]:
    """All of the data and of the mean; of the band all but its widest parts, which are the first slices."""
    known = np.concatenate([series.mean, np.zeros(0) if series.data is None else series.data])
    low = min(float(np.nanquantile(series.mean - band, 0.05)), float(np.nanmin(known)))
    high = max(float(np.nanquantile(series.mean + band, 0.95)), float(np.nanmax(known)))
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def selected(dataset: Any, labels: dict[str, Any], threshold: float = 0.5) -> Series:
    """One entry of a Dataset.

    Args:
        dataset: With `mean`, `std`, and `data` or `outliers` (over time and modes).
        labels: By mode.
        threshold: Of the outlier probability.
    """
    arrays = getattr(dataset, "data_vars", {})
    mean = "mean" if "mean" in arrays else "low_rank"
    if mean not in arrays or "std" not in arrays:
        raise ValueError(
            f"source must hold mean and std of every slice, got {', '.join(map(str, arrays)) or 'neither'}."
        )
    time, *dims = map(str, dataset[mean].dims)
    names = Names.of(
        [dataset.sizes[dim] for dim in dims],
        dims=dims,
        coords=[dataset[dim].values.tolist() if dim in dataset.coords else None for dim in dims],
    )
    where = dict(zip(dims, names.position(labels), strict=True))
    one = {str(name): dataset[name].isel(where).values for name in arrays if set(dims) <= set(dataset[name].dims)}
    probability = one.get("outlier_probability", np.zeros(len(one[mean])))
    flagged = probability >= threshold
    data = one.get("data")
    if data is None and "outliers" in one:  # what was flagged is known, the rest was about the mean
        data = np.where(flagged, one[mean] + one["outliers"], np.nan)
    times = dataset[time].values if time in dataset.coords else np.arange(dataset.sizes[time])
    unit = str(dataset.attrs.get("units", dataset[mean].attrs.get("units", "")))
    position = tuple(where.values())
    title = names.entry(position)
    zones = dataset.attrs.get("time_zone"), dataset[time].attrs.get("time_zone") if time in dataset.coords else None
    in_utc = any(zones) and times.dtype.kind == "M"
    known = [json.loads(str(text)) for text in dataset[DETAILS].values] if DETAILS in dataset else []
    own = tuple(incident for incident in known if list(position) in incident["entries"])
    return Series(title, times, one[mean], one["std"], flagged, data, unit, time, position, probability, in_utc, own)
