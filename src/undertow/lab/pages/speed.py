"""The page on speed: workloads, baselines, growth and trend, in one file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from undertow.lab.pages import speed_pictures as pictures
from undertow.lab.pages import speed_tables as tables
from undertow.lab.pages.page import bullets, image, page
from undertow.lab.speed.device import in_words
from undertow.lab.speed.history import Record
from undertow.lab.store import write_text

_RULES = (
    "Only warm steps count: everything is compiled and the window is full. Every slice is timed several times from "
    "the same state, one pass over the slices after the other; the minimum of each counts, and their mean is shown.",
    "A step begins with a slice in the host's memory and ends when its results are there: transfers are part of it.",
    "The plain product is (W·ΠI / I × I) by (I × P) in full single precision, I the biggest mode and P = R(R+1)/2, "
    "timed before and after the steps. A sweep needs 2·W·ΠI·(4P + 3R) operations in matrix products; the ratio is the "
    "time of a step over the time of as many operations in plain products. Whatever else a step does makes it larger "
    "than 1. For a baseline it is its time over that of the products in one step of Undertow.",
    "Baselines get the same slices and the true rank; those that refit a window from scratch get Undertow's. "
    "What counts is the time of their step alone.",
    "The error is the median over the timed slices of ‖low rank − truth‖ / ‖truth‖: all entries of a generated stream, "
    "the hidden ones of a recording.",
    "Memory is what the compiler plans for one step: arguments, results and temporary arrays.",
    "The time of a sweep is that of steps of nine sweeps less that of steps of three, over six: what happens once in a "
    "step drops out. Growth is about that.",
)


def write_page(record: Record, earlier: list[Record], out: Path) -> Path:
    """Write speed.html about a run; `earlier` are runs on the same device."""
    parts = [
        "<h2>Workloads</h2><p class='lead'>One step of Undertow, warm. The last columns say how far it is from "
        "the plain matrix product of the same size.</p>"
        f"<section class='wide'><div class='scroll'>{tables.workloads(record)}</div></section>"
    ]
    with TemporaryDirectory() as folder:
        for workload in record["workloads"]:
            parts.append(_baselines(workload, Path(folder)))
        if record["growth"]:
            parts.append(_growth(record["growth"], Path(folder)))
        if earlier:
            parts.append(_trend([*earlier, record], Path(folder)))
    parts.append(_skipped(record))
    parts.append(bullets("How it is measured", _RULES))
    used = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    threads = record["device"].get("blas_threads")
    products = f" Products in NumPy use {threads} thread{'s' * (threads != '1')}." if threads else ""
    parts.append(f"<footer>{escape(used)}.{products} All figures are in history.jsonl beside this page.</footer>")
    short = " A quick run: fewer slices and repetitions." if record["quick"] else ""
    lead = f"{in_words(record['device'])}, {record['date'][:16].replace('T', ' ')} UTC.{short}"
    target = out / "speed.html"
    write_text(target, page("Speed", lead, "".join(parts)))
    return target


def _baselines(workload: dict[str, Any], folder: Path) -> str:
    """The table and the picture of one workload; nothing where no baseline was timed."""
    if not any(baseline["reason"] is None for baseline in workload["baselines"]):
        return ""
    path = folder / f"{workload['name']}.png"
    pictures.draw_trade(workload, path)
    picture = image(path, f"error against time of every method on {workload['name']}")
    return (
        f"<h2>{escape(workload['name'])}<span class='aside'>{escape(tables.about(workload))}</span></h2>"
        f"<p class='lead'>{escape(workload['shows'][:1].upper() + workload['shows'][1:])}.</p>"
        f'<section class="two"><div class="scroll">{tables.compared(workload)}</div><div>{picture}</div></section>'
    )


def _growth(growth: list[dict[str, Any]], folder: Path) -> str:
    path = folder / "growth.png"
    pictures.draw_growth(growth, path)
    return (
        "<h2>Growth</h2><p class='lead'>Time of one sweep and memory of one step as one quantity grows and the others "
        "stay. Dashed is the growth that counting operations and arrays predicts, laid through the largest size.</p>"
        f"<section>{image(path, 'time and memory against size, on logarithmic axes')}{tables.growth(growth)}</section>"
    )


def _trend(records: list[Record], folder: Path) -> str:
    path = folder / "trend.png"
    pictures.draw_trend(records, path)
    return (
        f"<h2>Trend<span class='aside'>{len(records)} runs on this device</span></h2>"
        f"<section>{image(path, 'time per step of every workload over the runs')}</section>"
    )


def _skipped(record: Record) -> str:
    reasons = [f"{entry['workload']}: {entry['reason']}" for entry in record["skipped"]]
    reasons += [
        f"{baseline['label']} on {workload['name']}: {baseline['reason']}"
        for workload in record["workloads"]
        for baseline in workload["baselines"]
        if baseline["reason"] is not None
    ]
    return bullets("Left out", reasons)
