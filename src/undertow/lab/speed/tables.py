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


def sizes(case: dict[str, Any]) -> str:
    """The shape of a slice."""
    return "×".join(map(str, case["shape"]))


def about(case: dict[str, Any]) -> str:
    """What was timed, one line."""
    own = "".join(f", {name} {value}" for name, value in case["settings"].items())
    return f"{sizes(case)}, {case['observed']:.0%} observed, W {case['window']}, R {case['max_rank']}{own}"


CASE_HEADINGS = (
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


def case_cells(case: dict[str, Any]) -> list[str]:
    """One row of the table of cases, by `CASE_HEADINGS`."""
    return [
        sizes(case),
        case["kind"] + (f" {case['observed']:.0%}" if case["observed"] < 1 else ""),
        str(case["window"]),
        str(case["max_rank"]),
        scaled(case["seconds"], 1e3),
        "–" if case["iterations"] is None else f"{case['iterations']:.1f}",
        scaled(case["sweep_seconds"], 1e3),
        figures(case["slices_per_second"]),
        figures(case["error"]),
        scaled(case["bytes"], 2**-20),
        scaled(case["flops"], 1e-9),
        scaled(case["flops_per_second"], 1e-9),
        scaled(case["plain_flops_per_second"], 1e-9),
        figures(case["times_plain"]),
        figures(case["sweep_times_plain"]),
    ]


RIVAL_HEADINGS = ("ms per slice", "× Undertow", "× plain product", "error")


def rival_cells(method: dict[str, Any]) -> list[str]:
    """One row of the table of methods, by `RIVAL_HEADINGS`; an error of None means that the method failed."""
    return [
        scaled(method["seconds"], 1e3),
        figures(method["times_ours"]),
        figures(method["times_plain"]),
        "failed" if method["error"] is None else figures(method["error"]),
    ]


def methods(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours first, then the rivals that were timed, the quickest first."""
    ours = {**case, "label": "Undertow", "family": "ours", "times_ours": 1.0}
    timed = [rival for rival in case["rivals"] if rival["reason"] is None]
    return [ours, *sorted(timed, key=lambda rival: float(rival["seconds"]))]


def cases(record: Record) -> str:
    """The table of all cases."""
    rows = [("", [case["name"], *case_cells(case)]) for case in record["cases"]]
    return _table(("case", *CASE_HEADINGS), rows, text=3)


def rivals(case: dict[str, Any]) -> str:
    """The table of all methods on one case."""
    rows = [(method["family"], [method["label"], *rival_cells(method)]) for method in methods(case)]
    return _table(("method", *RIVAL_HEADINGS), rows)


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
