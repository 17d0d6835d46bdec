"""``undertow report``: one self-contained page about a store, to read or to send to a colleague."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from undertow.diagnostics import Flags, Status
from undertow.report.chart import Curve, chart, shown
from undertow.report.findings import Alerts, grouped_alerts, outlier_frequency
from undertow.report.incidents import the_incidents
from undertow.report.series import the_series
from undertow.report.slices import short, the_worst_slices, where_the_outliers_are
from undertow.report.tracker import the_events, the_weights
from undertow.report.verdict import verdict
from undertow.runs.errors import StoreError
from undertow.runs.store.folder import replace_file
from undertow.runs.store.reader import StoredRun, open_store
from undertow.view.html import Html, element, heading, joined, page, table, void

_BRAND = "Undertow report"
"""On every report: by this one is told from other pages."""


def write_report(store: Path, path: Path | None = None) -> Path:
    """Write the page about a store.

    Args:
        store: what `undertow.run` wrote.
        path: the page; beside the store if left out.

    Returns:
        The path of the page.

    Raises:
        StoreError: the store cannot be read, or there is a file of that name which is no report.
    """
    run = open_store(store, filled=True)
    target = path or store.with_name(f"{store.name.removesuffix('.zarr')}-report.html")
    if target.is_file() and (content := target.read_bytes()) and _BRAND.encode() not in content:
        raise StoreError(f"{target} is there already and is no report: move it away, or name another file with --out")
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, render(run).encode())
    return target


def render(run: StoredRun) -> str:
    """The page as text."""
    times = time_labels(run.times)
    alerts = grouped_alerts(run)
    frequency = outlier_frequency(run)
    size = f" of {'×'.join(map(str, run.shape))} ({' × '.join(run.dims)})" if run.shape else ""
    numbered = times[0] == "0" and times[-1] == str(run.length - 1)  # a source without times
    zone = run.dataset.attrs.get("time_zone")
    span = "" if numbered else f"{times[0]} – {times[-1]}{f' UTC (the source has {zone})' if zone else ''}"
    header = (
        element("p", _BRAND, class_="brand"),
        element("h1", run.source),
        element("p", f"{run.length:,} slices{size}", void("br"), span),
    )
    sections = (
        verdict(run).html(),
        _tiles(run, alerts),
        _diagnostics(run),
        the_incidents(run),
        the_events(run, times),
        _curves(run, times),
        the_weights(run, times),
        where_the_outliers_are(run, frequency),
        _most_flagged(run, frequency, times),
        the_worst_slices(run, times),
        _alerts(run, alerts),
        _settings(run),
    )
    return page(
        f"Undertow: {run.source}",
        header,
        sections,
        style=asset("undertow.view", "parts", "parts.css") + asset("undertow.report", "assets", "report.css"),
        script=_script(),
        footer=f"Made by undertow {run.dataset.attrs.get('undertow', '')} from {run.folder.name}.",
    )


def time_labels(times: np.ndarray[Any, Any]) -> list[str]:
    """Times as people write them, no finer than they differ."""
    if times.dtype.kind == "M":
        units = (times.astype(f"datetime64[{unit}]") for unit in ("D", "m", "s", "ms"))
        coarsest = next((rounded for rounded in units if (rounded == times).all()), times)
        return [str(time).replace("T", " ") for time in coarsest]
    if times.dtype.kind == "f":
        return [shown(float(time)) if np.isfinite(time) else "–" for time in times]
    return [str(time) for time in times]


def _tiles(run: StoredRun, alerts: Alerts) -> Html:
    rank, observed, error = (run.per_slice(name) for name in ("rank", "observed", "fit_error"))
    rate = float(np.average(run.per_slice("outlier_rate"), weights=observed)) if observed.sum() > 0 else 0.0
    units = str(run.dataset.attrs.get("units", ""))
    flagged = sum(not _harmless(str(text)) for text in run.per_slice("status"))
    tiles = [
        ("slices", f"{run.length:,}", ""),
        ("observed", f"{observed.mean():.1%}", "of all entries"),
        ("rank", f"{rank[-1]}", f"at the end, {rank.min()}–{rank.max()} before" if np.ptp(rank) else "all the time"),
        ("noise", f"{shown(float(run.per_slice('noise_std')[-1]))} {units}", "standard deviation at the end"),
        ("relative error", shown(float(np.nanmedian(error))) if np.isfinite(error).any() else "–", "median"),
        (
            "outliers",
            f"{rate:.2%}",
            f"of observed entries, {alerts.total:,} alert{'s' if alerts.total > 1 else ''}"
            if alerts.total
            else "of observed entries",
        ),
        ("slices with a status", f"{flagged:,}", f"{flagged / run.length:.1%} of all"),
    ]
    return element(
        "div",
        (
            element("div", element("span", name), element("b", value), element("small", note), class_="tile")
            for name, value, note in tiles
        ),
        class_="tiles",
    )


def _diagnostics(run: StoredRun) -> str:
    counts = Counter(code for text in map(str, run.per_slice("status")) if text != "ok" for code in text.split())
    if not counts:
        return ""
    rows = (
        element("li", element("b", f"{count:,}"), f" {'slice' if count == 1 else 'slices'}: {_advice(code)}")
        for code, count in counts.most_common()
    )
    return element("section", heading(2, "Diagnostics"), element("ul", rows), class_="noticed")


def _curves(run: StoredRun, times: list[str]) -> Html:
    curves = [
        ("Rank", "active components", Curve(run.per_slice("rank"), "rank", steps=True)),
        ("Noise", "standard deviation, in the unit of the data", Curve(run.per_slice("noise_std"), "noise")),
        ("Error", "‖data − mean‖ / ‖data‖, outliers left out", Curve(run.per_slice("fit_error"), "error")),
        ("Outliers", "of the observed entries", Curve(run.per_slice("outlier_rate"), "outliers", percent=True)),
    ]
    drawn = (element("section", heading(3, title, note), chart(curve, times)) for title, note, curve in curves)
    return joined(heading(2, "Over time"), element("div", drawn, class_="grid two"))


def _most_flagged(run: StoredRun, frequency: Any, times: list[str]) -> str:
    """The history of the entry that was flagged most."""
    if frequency is None or not frequency[0].any():
        return ""
    position = np.unravel_index(int(frequency[0].argmax()), run.shape)
    return the_series(run, tuple(int(index) for index in position), times)


def _alerts(run: StoredRun, alerts: Alerts) -> str:
    if run.dataset.attrs.get("alerts", "none") == "none":
        return ""
    if not alerts.groups:
        note = f"No entry reached the threshold of {run.threshold:g}."
        return joined(heading(2, "Alerts"), element("p", note, class_="soft"))
    head = (*run.dims, "alerts", "first", "last", "value", "expected", "off by, std")
    rows = [
        [
            *map(short, group.entry),
            f"{group.count:,}",
            _time(group.first),
            _time(group.last),
            *(shown(float(group.worst[name])) for name in ("value", "expected")),
            element("b", f"{group.distance:.1f}"),
        ]
        for group in alerts.groups
    ]
    count = f"{alerts.total:,} alerts of {alerts.entries:,} entries"
    count += f", the {len(rows)} entries farthest from what was expected" if len(rows) < alerts.entries else ""
    return joined(
        heading(2, "Alerts", f"{count}; outlier probability ≥ {run.threshold:g}; value and expected of the worst"),
        element("section", table(head, rows, (*head[-4:], "alerts")), class_="scroll"),
    )


def _time(text: str) -> str:
    return short(text.replace("T", " "))


def _settings(run: StoredRun) -> Html:
    rows = {
        **({"model": run.dataset.attrs["kind"]} if "kind" in run.dataset.attrs else {}),
        **run.settings,
        **({"false_alarms": run.dataset.attrs["false_alarms"]} if "false_alarms" in run.dataset.attrs else {}),
        "threshold": run.threshold,
        "kept": ", ".join(run.kept) or "values per slice only",
    }
    cells = (element("div", element("dt", name), element("dd", str(value))) for name, value in rows.items())
    shown_first = ", ".join(f'ds["{name}"]' for name in (run.kept or ("rank", "noise_std"))[:4])
    code = f'import xarray as xr\n\nds = xr.open_zarr("{run.folder.name}")\n{shown_first}'
    source = f"Source {run.dataset.attrs.get('fingerprint', '')}"
    return joined(
        heading(2, "Settings"),
        element("section", element("dl", cells)),
        heading(2, "Continue from here"),
        element("section", element("pre", code), element("p", source, class_="soft")),
    )


def _advice(code: str) -> str:
    return str(Status(Flags[code])) if code in Flags.__members__ else code


def _harmless(text: str) -> bool:
    return all(Status(Flags[code]).ok for code in text.split() if code in Flags.__members__)


def _script() -> str:
    """The parts that it shares with the live page, and its own, as one script: a page in a file has no modules."""
    parts = [asset("undertow.view", "parts", name) for name in ("colors.js", "chart.js", "heatmap.js")]
    whole = "\n".join([*parts, asset("undertow.report", "assets", "report.js")])
    return re.sub(r"^(import .*\n|export )", "", whole, flags=re.MULTILINE)


def asset(package: str, folder: str, name: str) -> str:
    """A file that comes with the package."""
    return (files(package) / folder / name).read_text(encoding="utf-8")
