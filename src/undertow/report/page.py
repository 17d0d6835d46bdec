"""``undertow report``: one self-contained page about a store, to read or to send to a colleague."""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from undertow.diagnostics import Flags, Status
from undertow.report.chart import Curve, chart, shown
from undertow.report.findings import TopAlerts, surprise, top_alerts
from undertow.report.gallery import short, the_worst_slices, where_the_outliers_are
from undertow.runs.errors import StoreError
from undertow.runs.store.folder import replace_file
from undertow.runs.store.reader import StoredRun, open_filled


def write_report(store: Path, path: Path | None = None) -> Path:
    """Write the page about a store; beside it unless ``path`` says where."""
    if find_spec("matplotlib") is None:
        raise StoreError("the report needs matplotlib: pip install 'undertow[cli]'")
    run = open_filled(store)
    target = path or store.with_name(f"{store.name.removesuffix('.zarr')}-report.html")
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, render(run).encode())
    return target


def render(run: StoredRun) -> str:
    """The whole page."""
    times = time_labels(run.times)
    alerts = top_alerts(run)
    size = f"{'×'.join(map(str, run.shape))} " if run.shape else ""
    modes = f" ({' × '.join(run.dims)})" if run.dims else ""
    lead = f"{run.length:,} slices {'of ' if size else ''}{size.strip()}{modes}"
    numbered = times[0] == "0" and times[-1] == str(run.length - 1)  # a source without times
    span = "" if numbered else f"{times[0]} – {times[-1]}"
    sections = [
        _figures(run, alerts),
        _noticed(run),
        _curves(run, times),
        where_the_outliers_are(run),
        the_worst_slices(run, times),
        _alerts(run, alerts),
        _settings(run),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Undertow: {escape(run.source)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_asset('report.css')}</style></head><body>"
        f'<header><div class="inner"><p class="brand">Undertow report</p><h1>{escape(run.source)}</h1>'
        f"<p>{escape(lead)}<br>{escape(span)}</p></div></header>"
        f"<main>{''.join(sections)}</main><footer>{_footer(run)}</footer>"
        f"<script>{_asset('report.js')}</script></body></html>\n"
    )


def time_labels(times: np.ndarray[Any, Any]) -> list[str]:
    """Times as people write them, no finer than they differ."""
    if times.dtype.kind == "M":
        for unit in ("D", "m", "s", "ms"):
            if (times.astype(f"datetime64[{unit}]") == times).all():
                return [str(time).replace("T", " ") for time in times.astype(f"datetime64[{unit}]")]
        return [str(time).replace("T", " ") for time in times]
    if times.dtype.kind == "f":
        return [shown(float(time)) if np.isfinite(time) else "–" for time in times]
    return [str(time) for time in times]


def _figures(run: StoredRun, alerts: TopAlerts) -> str:
    steps = run.dataset
    rank = np.asarray(steps["rank"].values)
    observed = np.asarray(steps["observed"].values, np.float64)
    rate = float(np.average(steps["outlier_rate"].values, weights=observed)) if observed.sum() > 0 else 0.0
    error = np.asarray(steps["fit_error"].values, np.float64)
    noise = float(steps["noise_std"].values[-1])
    troubled = sum(not _harmless(text) for text in map(str, steps["status"].values))
    tiles = [
        ("slices", f"{run.length:,}", ""),
        ("observed", f"{observed.mean():.1%}", "of all entries"),
        (
            "rank",
            f"{rank[-1]}",
            f"at the end, {rank.min()}–{rank.max()} on the way" if np.ptp(rank) else "all the time",
        ),
        ("noise", shown(noise), "standard deviation at the end"),
        ("relative error", shown(float(np.nanmedian(error))) if np.isfinite(error).any() else "–", "median"),
        (
            "outliers",
            f"{rate:.2%}",
            f"of the observed entries, {alerts.total:,} alerts" if alerts.total else "of those",
        ),
        ("slices with trouble", f"{troubled:,}", f"{troubled / run.length:.1%} of all"),
    ]
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><span>{escape(name)}</span><b>{escape(value)}</b><small>{escape(note)}</small></div>'
            for name, value, note in tiles
        )
        + "</div>"
    )


def _noticed(run: StoredRun) -> str:
    counts = Counter(code for text in map(str, run.dataset["status"].values) if text != "ok" for code in text.split())
    if not counts:
        return ""
    rows = "".join(
        f"<li><b>{count:,}</b> {'slice' if count == 1 else 'slices'}: {escape(_advice(code))}</li>"
        for code, count in counts.most_common()
    )
    return f'<section class="noticed"><h2>What the model noticed</h2><ul>{rows}</ul></section>'


def _curves(run: StoredRun, times: list[str]) -> str:
    steps = run.dataset
    curves = [
        ("Rank", "components in use", Curve(steps["rank"].values, "rank", steps=True)),
        ("Noise", "standard deviation, in the unit of the data", Curve(steps["noise_std"].values, "noise")),
        ("Error", "‖data − low rank‖ / ‖data‖, outliers left out", Curve(steps["fit_error"].values, "error")),
        ("Outliers", "share of the observed entries", Curve(steps["outlier_rate"].values, "outliers", percent=True)),
    ]
    return (
        "<h2>Over time</h2>"
        + '<div class="grid two">'
        + "".join(
            f'<section><h3>{title}<span class="aside">{escape(note)}</span><output></output></h3>'
            f"{chart(curve, times)}</section>"
            for title, note, curve in curves
        )
        + "</div>"
    )


def _alerts(run: StoredRun, alerts: TopAlerts) -> str:
    if run.dataset.attrs.get("alerts", "none") == "none":
        return ""
    if not alerts.rows:
        return f'<h2>Alerts</h2><p class="soft">No entry reached the threshold of {run.threshold:g}.</p>'
    numbers = {"value", "expected", "std", "probability"}
    names = list(alerts.rows[0])
    head = "".join(f'<th class="{"number" if name in numbers else ""}">{escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{escape(_number(name, row[name]))}</td>'
            if name in numbers
            else f"<td>{escape(short(str(row[name]).replace('T', ' ')))}</td>"
            for name in names
        )
        + f'<td class="number"><b>{surprise(row):.1f}</b></td></tr>'
        for row in alerts.rows
    )
    count = f"the {len(alerts.rows)} farthest from what was expected, of {alerts.total:,}"
    return (
        f'<h2>Alerts<span class="aside">{count}; outlier probability ≥ {run.threshold:g}</span></h2>'
        f'<section class="scroll"><table><thead><tr>{head}<th class="number">|value − expected| / std</th></tr></thead>'
        f"<tbody>{body}</tbody></table></section>"
    )


def _settings(run: StoredRun) -> str:
    attributes = run.dataset.attrs
    rows = {**run.settings, "threshold": run.threshold, "kept": ", ".join(run.kept) or "values per step only"}
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in rows.items())
    where = escape(str(run.folder.name))
    code = f'import xarray as xr\n\nds = xr.open_zarr("{where}")\nds.low_rank, ds.std, ds.outlier_probability'
    return (
        f"<h2>Settings</h2><section><dl>{cells}</dl></section><h2>Go on from here</h2><section><pre>{code}</pre>"
        f'<p class="soft">Source {escape(str(attributes.get("fingerprint", "")))}</p></section>'
    )


def _footer(run: StoredRun) -> str:
    return f"Made by undertow {escape(str(run.dataset.attrs.get('undertow', '')))} from {escape(run.folder.name)}."


def _number(name: str, value: Any) -> str:
    return f"{float(value):.3f}" if name == "probability" else shown(float(value))


def _advice(code: str) -> str:
    return str(Status(Flags[code])) if code in Flags.__members__ else code


def _harmless(text: str) -> bool:
    codes = [code for code in text.split() if code in Flags.__members__]
    return all(Status(Flags[code]).ok for code in codes)


def _asset(name: str) -> str:
    return (files("undertow.report") / "assets" / name).read_text(encoding="utf-8")
