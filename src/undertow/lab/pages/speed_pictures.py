"""Pictures of a run: error against time, growth on logarithmic axes, and the trend over runs."""

from __future__ import annotations

from datetime import datetime
from math import log10
from pathlib import Path
from typing import Any

from undertow.lab.pages.drawing import COLOURS, blank, canvas, plain, save
from undertow.lab.speed.history import Record

_LINES = ("#0f4c5c", "#c8553d", "#3a7d44", "#6a4c93", "#2f77c4", "#d4a017", "#8d99ae", "#b5838d")


def draw_trade(workload: dict[str, Any], path: Path) -> None:
    """Error against time per slice of every method on one workload: the lower left is where one wants to be."""
    figure, axes = canvas(5.8, 3.7)
    first = {"label": "Undertow", "family": "undertow", **workload}
    shown = [method for method in (first, *workload["baselines"]) if method.get("error")]
    errors = [method["error"] for method in shown]
    span = log10(max(errors) / min(errors)) if errors else 0.0
    taken: list[tuple[float, float]] = []
    for method in sorted(shown, key=lambda method: -float(method["error"])):
        own = method["family"] == "undertow"
        point = method["seconds"] * 1e3, method["error"]
        # Names of neighbours would run into each other: the lower one goes below its point.
        crowded = any(abs(log10(point[0] / x)) < 1.5 and abs(log10(point[1] / y)) < 0.06 * span for x, y in taken)
        taken.append(point)
        axes.scatter(
            *point, s=190 if own else 60, marker="*" if own else "o", color=COLOURS[method["family"]], zorder=3
        )
        axes.annotate(
            method["label"],
            point,
            xytext=(8, -12 if crowded else -3),
            textcoords="offset points",
            fontsize=8.5,
            weight="bold" if own else "normal",
        )
    axes.set(xscale="log", yscale="log")
    axes.margins(0.2, 0.18)
    _plain_numbers(axes.xaxis, (1.0,))
    _plain_numbers(axes.yaxis, (1.0, 2.0, 5.0))
    axes.set_xlabel("milliseconds per slice", fontsize=9)
    axes.set_ylabel("relative error", fontsize=9)
    save(figure, path)


def draw_growth(growth: list[dict[str, Any]], path: Path) -> None:
    """Time of a sweep and memory of a step along every axis; dashed, the growth that the formula says."""
    figure = blank(3.3 * len(growth), 5.8)
    rows = figure.subplots(2, len(growth), squeeze=False)
    for column, record in enumerate(growth):
        sizes = record["sizes"]
        upper, lower = rows[0][column], rows[1][column]
        _panel(upper, sizes, [seconds * 1e3 for seconds in record["seconds"]], record["work"], record, "time")
        if record["bytes"] is not None:
            _panel(lower, sizes, [size / 2**20 for size in record["bytes"]], record["needed"], record, "bytes")
        lower.set_xlabel(record["title"], fontsize=9.5)
    rows[0][0].set_ylabel("ms per sweep", fontsize=9.5)
    rows[1][0].set_ylabel("MiB per step", fontsize=9.5)
    for row in rows:  # one range for all panels of a row: slopes can be compared by eye
        low, high = min(axes.get_ylim()[0] for axes in row), max(axes.get_ylim()[1] for axes in row)
        for axes in row:
            axes.set_ylim(low, high)
    save(figure, path)


def _panel(
    axes: Any, sizes: list[float], values: list[float], formula: list[float], record: dict[str, Any], figure: str
) -> None:
    plain(axes)
    # The formula has no unit: it is laid through the largest size, where fixed costs weigh least.
    line = [value * values[-1] / formula[-1] for value in formula]
    axes.plot(
        sizes,
        line,
        "--",
        color="#8d99ae",
        linewidth=1.4,
        label=f"formula, slope {record[figure + '_slope_formula']:.2f}",
    )
    axes.plot(
        sizes,
        values,
        "o-",
        color=COLOURS["undertow"],
        linewidth=2,
        markersize=5,
        label=f"measured, slope {record[figure + '_slope']:.2f}",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.legend(fontsize=8, frameon=False, loc="upper left")


def draw_trend(records: list[Record], path: Path) -> None:
    """Milliseconds per step of every workload over the runs on one device."""
    figure, axes = canvas(10.5, 3.8)
    names = list(dict.fromkeys(workload["name"] for record in records for workload in record["workloads"]))
    for name, colour in zip(names, _LINES * len(names), strict=False):
        points = [
            (datetime.fromisoformat(record["date"]), workload["seconds"] * 1e3)
            for record in records
            for workload in record["workloads"]
            if workload["name"] == name
        ]
        axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=4, linewidth=1.6)
        axes.annotate(name, points[-1], xytext=(8, -3), textcoords="offset points", fontsize=9, color=colour)
    axes.set_yscale("log")
    axes.margins(0.09, 0.12)
    axes.set_ylabel("ms per step", fontsize=9.5)
    figure.autofmt_xdate(rotation=20)
    save(figure, path)


def _plain_numbers(axis: Any, steps: tuple[float, ...]) -> None:
    """Ticks at these multiples of powers of ten, written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
