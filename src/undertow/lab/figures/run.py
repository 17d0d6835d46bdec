"""Run figures: every cell found or computed, numbers and picture written, the page put together at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undertow
from undertow.lab.accuracy.cells import CellStore, write_json
from undertow.lab.accuracy.contest import Cell, run_cell
from undertow.lab.accuracy.reporter import Reporter
from undertow.lab.figures import curves, pictures
from undertow.lab.figures.plan import Panel, PaperFigure
from undertow.lab.recordings.files import Folder


@dataclass(frozen=True)
class PanelResult:
    """A panel and, for every method that ran, its cells over the seeds."""

    panel: Panel
    cells: dict[str, list[Cell]]


def run(
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
    store = CellStore(out / "cells", fresh)
    times = {figure.name: seeds or (1 if quick else figure.seeds) for figure in figures}
    reporter.begin(sum(times[figure.name] * len(panel.contenders) for figure in figures for panel in figure.panels))
    made = []
    for figure in figures:
        results = [_panel(panel, store, reporter, quick, times[figure.name], folder) for panel in figure.panels]
        if not any(result.cells for result in results):
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


def _panel(panel: Panel, store: CellStore, reporter: Reporter, quick: bool, seeds: int, folder: Folder) -> PanelResult:
    contests = [panel.contest(seed, quick, folder) for seed in range(seeds)]
    cells: dict[str, list[Cell]] = {}
    for contender in panel.contenders:
        ran = [
            run_cell(contest, contender, panel.settings(contest, contender), store, reporter, panel.frames_of(quick))
            for contest in contests
        ]
        good = [cell for cell in ran if cell["status"] == "ok"]
        if good:
            cells[contender.name] = good
    return PanelResult(panel, cells)


def _numbers(figure: PaperFigure, results: list[PanelResult], quick: bool, seeds: int) -> dict[str, Any]:
    panels = []
    for result in results:
        methods = {}
        for contender in result.panel.contenders:
            cells = result.cells.get(contender.name)
            if cells is None:
                continue
            names = list(cells[0]["scores"])
            by_name = {
                name: [value for cell in cells if (value := cell["scores"].get(name)) is not None] for name in names
            }
            methods[contender.name] = {
                "label": contender.label,
                "family": contender.family,
                "settings": {name: value for name, value in cells[0]["settings"].items() if name != "seed"},
                "scores": {name: float(np.mean(values)) if values else None for name, values in by_name.items()},
                "seeds": [cell["scores"] for cell in cells],
                "curve": curves.middle(cells, result.panel.shows),
            }
        some = next(iter(result.cells.values()), [None])[0]
        panels.append(
            {
                "title": result.panel.title,
                "stream": result.panel.stream,
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
