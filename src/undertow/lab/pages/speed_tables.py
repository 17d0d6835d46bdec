"""Tables of a run as HTML, and numbers as people read them."""

from __future__ import annotations

from html import escape
from typing import Any

from undertow.lab.speed.history import Record

Row = tuple[str, list[str]]


def figures(value: float | None, unit: str = "") -> str:
    """Three significant digits, no exponents; a dash for what is not known."""
    if value is None:
        return "–"
    if value >= 999.5:
        return f"{value:,.0f}".replace(",", " ") + unit
    if value < 0.001:
        return f"{value:.1g}{unit}" if value > 0 else f"0{unit}"
    return f"{value:#.3g}".rstrip(".") + unit


def scaled(value: float | None, factor: float, unit: str = "") -> str:
    """A figure in another unit."""
    return figures(None if value is None else value * factor, unit)


def sizes(workload: dict[str, Any]) -> str:
    """The shape of a slice."""
    return "×".join(map(str, workload["shape"]))


def about(workload: dict[str, Any]) -> str:
    """What was timed, one line."""
    own = "".join(f", {name} {value}" for name, value in workload["settings"].items())
    return (
        f"{sizes(workload)}, {workload['observed']:.0%} observed, W {workload['window']}, R {workload['max_rank']}{own}"
    )


WORKLOAD_HEADINGS = (
    "slice",
    "stream",
    "W",
    "R",
    "ms per step",
    "sweeps",
    "ms per sweep",
    "slices/s",
    "error",
    "memory, MiB",
    "GFLOP per step",
    "GFLOP/s",
    "plain GFLOP/s",
    "× plain product",
    "a sweep",
)


def workload_row(workload: dict[str, Any]) -> list[str]:
    """One row of the table of workloads, by `WORKLOAD_HEADINGS`."""
    return [
        sizes(workload),
        workload["kind"] + (f" {workload['observed']:.0%}" if workload["observed"] < 1 else ""),
        str(workload["window"]),
        str(workload["max_rank"]),
        scaled(workload["seconds"], 1e3),
        "–" if workload["iterations"] is None else f"{workload['iterations']:.1f}",
        scaled(workload["sweep_seconds"], 1e3),
        figures(workload["slices_per_second"]),
        figures(workload["error"]),
        scaled(workload["bytes"], 2**-20),
        scaled(workload["flops"], 1e-9),
        scaled(workload["flops_per_second"], 1e-9),
        scaled(workload["plain_flops_per_second"], 1e-9),
        figures(workload["times_plain"]),
        figures(workload["sweep_times_plain"]),
    ]


METHOD_HEADINGS = ("ms per slice", "× Undertow", "× plain product", "error")


def method_row(method: dict[str, Any]) -> list[str]:
    """One row of the table of methods, by `METHOD_HEADINGS`; an error of None means that the method failed."""
    return [
        scaled(method["seconds"], 1e3),
        figures(method["times_undertow"]),
        figures(method["times_plain"]),
        "failed" if method["error"] is None else figures(method["error"]),
    ]


def methods(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Undertow first, then the baselines that were timed, the quickest first."""
    first = {**workload, "label": "Undertow", "family": "undertow", "times_undertow": 1.0}
    timed = [baseline for baseline in workload["baselines"] if baseline["reason"] is None]
    return [first, *sorted(timed, key=lambda baseline: float(baseline["seconds"]))]


def workloads(record: Record) -> str:
    """The table of all workloads."""
    rows = [("", [workload["name"], *workload_row(workload)]) for workload in record["workloads"]]
    return _table(("workload", *WORKLOAD_HEADINGS), rows, text=3)


def compared(workload: dict[str, Any]) -> str:
    """The table of all methods on one workload."""
    rows = [(method["family"], [method["label"], *method_row(method)]) for method in methods(workload)]
    return _table(("method", *METHOD_HEADINGS), rows)


def growth(records: list[dict[str, Any]]) -> str:
    """Fitted slopes beside those of the formula."""
    headings = ("grows", "from", "to", "time: slope", "of the last doubling", "formula", "memory: slope", "formula")
    rows = []
    for one in records:
        memory = [one.get("bytes_slope"), one.get("bytes_slope_formula")]
        slopes = [one["time_slope"], one["time_slope_end"], one["time_slope_formula"], *memory]
        ends = [f"{one['sizes'][0]:g}", f"{one['sizes'][-1]:g}"]
        rows.append(("", [one["title"], *ends, *("–" if value is None else f"{value:.2f}" for value in slopes)]))
    return f"<div class='scroll'>{_table(headings, rows)}</div>"


def _table(headings: tuple[str, ...], rows: list[Row], text: int = 1) -> str:
    """The first `text` columns are words, the others numbers."""
    kinds = [""] * text + [' class="number"'] * (len(headings) - text)
    head = "".join(f"<th{kind}>{escape(word)}</th>" for word, kind in zip(headings, kinds, strict=True))
    lines = [
        f'<tr class="{name}">'
        + "".join(f"<td{kind}>{_unbroken(cell)}</td>" for cell, kind in zip(cells, kinds, strict=True))
        + "</tr>"
        for name, cells in rows
    ]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _unbroken(cell: str) -> str:
    """In one line: a name in two is hard to find."""
    return escape(cell).replace(" ", "&nbsp;").replace("-", "&#8209;")
