"""Make figures: every result found or computed, numbers and picture written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undertow
from undertow.lab.evaluate import CaseResult, evaluate
from undertow.lab.figures import curves, pictures
from undertow.lab.figures.figure import Panel, PaperFigure
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.store import ResultStore, write_json


@dataclass(frozen=True)
class PanelResult:
    """A panel and, for every method that ran, its results over the seeds."""

    panel: Panel
    results: dict[str, list[CaseResult]]


def make_figures(
    figures: Sequence[PaperFigure],
    out: Path,
    reporter: Reporter,
    *,
    quick: bool = False,
    seeds: int | None = None,
    folder: Folder = None,
    fresh: bool = False,
) -> list[dict[str, Any]]:
    """All figures asked for; one that lacks its data is left out with a sentence, and the rest still runs."""
    store = ResultStore(out / "results", fresh)
    times = {figure.name: seeds or (1 if quick else figure.seeds) for figure in figures}
    reporter.begin(sum(times[figure.name] * len(panel.drawn) for figure in figures for panel in figure.panels))
    made = []
    for figure in figures:
        results = [_panel(panel, store, reporter, quick, times[figure.name], folder) for panel in figure.panels]
        if not any(result.results for result in results):
            continue
        picture = out / f"{figure.name}.png"
        if figure.kind == "curves":
            curves.draw(figure, results, picture)
        else:
            try:
                pictures.draw(figure, results, quick, folder, picture)
            except OSError as error:  # the numbers are from an earlier run, and the recording is gone since
                reporter.say(str(error))
                continue
        numbers = _numbers(figure, results, quick, times[figure.name])
        write_json(out / f"{figure.name}.json", numbers)
        made.append(numbers)
    return made


def _panel(
    panel: Panel, store: ResultStore, reporter: Reporter, quick: bool, seeds: int, folder: Folder
) -> PanelResult:
    cases = [panel.case(seed, quick, folder) for seed in range(seeds)]
    results: dict[str, list[CaseResult]] = {}
    for method in panel.drawn:
        found = [
            evaluate(case, method, panel.settings(case, method), store, reporter, panel.frames_of(quick))
            for case in cases
        ]
        good = [result for result in found if result["status"] == "ok"]
        if good:
            results[method.name] = good
    return PanelResult(panel, results)


def _numbers(figure: PaperFigure, results: list[PanelResult], quick: bool, seeds: int) -> dict[str, Any]:
    panels = []
    for result in results:
        methods = {}
        for method in result.panel.drawn:
            found = result.results.get(method.name)
            if found is None:
                continue
            by_name = {
                name: [value for one in found if (value := one["scores"].get(name)) is not None]
                for name in found[0]["scores"]
            }
            methods[method.name] = {
                "label": method.label,
                "family": method.family,
                "settings": {name: value for name, value in found[0]["settings"].items() if name != "seed"},
                "scores": {name: float(np.mean(values)) if values else None for name, values in by_name.items()},
                "seeds": [one["scores"] for one in found],
                "curve": curves.mean_curve(found, result.panel.shows),
            }
        some = next(iter(result.results.values()), [None])[0]
        panels.append(
            {
                "title": result.panel.title,
                "dataset": result.panel.dataset,
                "condition": result.panel.condition.name,
                "shape": some["shape"] if some else None,
                "shows": result.panel.shows,
                "methods": methods,
            }
        )
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "differs": figure.differs,
        "version": undertow.__version__,
        "quick": quick,
        "shortened": figure.shortened if quick else "",
        "seeds": seeds,
        "panels": panels,
    }
