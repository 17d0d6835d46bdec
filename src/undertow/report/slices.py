"""The pictures of the page: where outliers are, and the slices that went worst."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.report.findings import WorstSlice, worst_slices
from undertow.report.pictures import Sides, picture
from undertow.runs.store.reader import StoredRun
from undertow.view.drawing import limits, plane
from undertow.view.html import Html, element, heading, joined, table
from undertow.view.slices import FAR

_LONG_LABEL = 40
_MOST_FLAGGED = 10


def where_the_outliers_are(run: StoredRun, found: tuple[Any, int] | None) -> str:
    """How often every entry was flagged (`outlier_frequency`), as a map, with the entries that were flagged most."""
    if found is None or not found[0].any():
        return ""
    fractions, sampled = found
    flat = fractions.reshape(-1)
    most = [int(entry) for entry in np.argsort(-flat, kind="stable")[:_MOST_FLAGGED] if flat[entry] > 0]
    rows = [(*_labels(run, entry), f"{flat[entry]:.1%}") for entry in most]
    drawn, fixed = plane({"fraction": fractions}, fractions)
    values = drawn["fraction"]
    panel = picture(
        f"fraction of the slices{_at(run, fixed)}",
        values,
        0.0,
        float(values.max()) or 1.0,
        "cividis",
        sides_of(run, fixed),
    )
    note = f", {sampled:,} of {run.length:,} slices sampled" if sampled < run.length else ""
    return joined(
        heading(2, "Where the outliers are", f"how often every entry was flagged{note}"),
        element(
            "section",
            element("div", panel),
            element("div", table((*run.dims, "flagged"), rows, ["flagged"]), class_="scroll"),
            class_="where",
        ),
    )


def the_worst_slices(run: StoredRun, times: list[str]) -> str:
    """Data, mean, outliers and error bars of a few slices, side by side."""
    if run.mean_name is None or "outliers" not in run.kept:
        note = "No pictures: this store was made without mean and outliers (option --keep)."
        return joined(heading(2, "The worst slices"), element("p", note, class_="soft"))
    found = worst_slices(run)
    if not found:
        return ""
    hint = "" if "data" in run.kept else " The data were not kept (--keep data): mean + outliers stand for them."
    return joined(
        heading(2, "The worst slices"),
        element("p", f"Hatched: nothing was observed.{hint}", class_="soft"),
        (_one_slice(run, worst, times) for worst in found),
    )


def _one_slice(run: StoredRun, worst: WorstSlice, times: list[str]) -> Html:
    names = [name for name in ("data", "outliers", "std") if name in run.kept]
    arrays: dict[str, Any] = {name: run.slice(name, worst.index) for name in names}
    arrays["mean"] = run.slice(run.mean_name or "mean", worst.index)
    arrays.setdefault("data", arrays["mean"] + arrays["outliers"])
    arrays, fixed = plane(arrays, np.abs(arrays["outliers"]))
    sides = sides_of(run, fixed)
    low, high = limits(arrays["mean"])  # not the data: one large outlier would leave everything else dark
    panels = [
        picture("data" if "data" in run.kept else "mean + outliers", arrays["data"], low, high, "viridis", sides),
        picture("mean", arrays["mean"], low, high, "viridis", sides),
    ]
    if "std" in arrays:
        away = (arrays["data"] - arrays["mean"]) / np.maximum(arrays["std"], np.finfo(np.float64).tiny)
        panels.append(picture("off by, standard deviations", away, -FAR, FAR, "diverging", sides))
        # from 0: equal error bars should look equal
        panels.append(picture("standard deviation", arrays["std"], 0.0, limits(arrays["std"])[1], "cividis", sides))
    else:
        around = limits(arrays["outliers"], around_zero=True)
        panels.append(picture("outliers", arrays["outliers"], *around, "diverging", sides))
    height, width = arrays["mean"].shape
    title, why = f"slice {worst.index:,}", worst.why + _at(run, fixed)
    if times[worst.index] != str(worst.index):
        title, why = times[worst.index], f"{title}: {why}"
    style = "panels flat" if width > 3 * height else "panels"
    return element("section", heading(3, title, why), element("div", panels, class_=style))


def short(text: str) -> str:
    """A label that fits into a table."""
    return text if len(text) <= _LONG_LABEL else f"{text[: _LONG_LABEL - 1]}…"


def _at(run: StoredRun, fixed: dict[int, int]) -> str:
    """Which plane of a slice with more than two modes is shown."""
    return "".join(f", {run.dims[mode]} {_label(run, mode, index)}" for mode, index in fixed.items())


def sides_of(run: StoredRun, fixed: dict[int, int]) -> Sides:
    """What the rows and columns of a picture are called."""
    shown = [mode for mode in range(len(run.dims)) if mode not in fixed]
    labels = [
        tuple(short(str(label)) for label in run.per_slice(run.dims[mode]))
        if run.dims[mode] in run.dataset.coords
        else None
        for mode in shown
    ]
    if len(shown) == 1:
        return Sides("", run.dims[shown[0]], None, labels[0])
    return Sides(run.dims[shown[0]], run.dims[shown[1]], labels[0], labels[1])


def _labels(run: StoredRun, entry: int) -> list[str]:
    position = np.unravel_index(entry, run.shape)
    return [_label(run, mode, int(index)) for mode, index in enumerate(position)]


def _label(run: StoredRun, mode: int, index: int) -> str:
    name = run.dims[mode]
    return short(str(run.per_slice(name)[index])) if name in run.dataset.coords else str(index)
