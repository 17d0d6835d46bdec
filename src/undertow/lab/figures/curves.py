"""Figures over time: one curve per method, with the range over seeds."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.cases.registry import DATASETS
from undertow.lab.evaluate import CaseResult
from undertow.lab.figures.figure import PaperFigure
from undertow.lab.pages.drawing import blank, line_style, plain, save
from undertow.lab.scores import SCORES

if TYPE_CHECKING:
    from undertow.lab.figures.make import PanelResult


def draw(figure: PaperFigure, results: list[PanelResult], path: Path) -> None:
    """All panels of a figure, two in a row."""
    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    sheet = blank(6.9 * columns, 3.7 * rows + 0.5)
    grid = sheet.subplots(rows, columns, squeeze=False)
    for axes, result in zip(grid.ravel(), results, strict=False):
        _draw_panel(axes, result)
    seen: dict[str, Any] = {}
    for axes in grid.ravel():
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            seen.setdefault(label, handle)
    sheet.legend(
        seen.values(), seen.keys(), loc="outside lower center", ncols=min(8, len(seen)), fontsize=9, frameon=False
    )
    save(sheet, path)


def _draw_panel(axes: Any, result: PanelResult) -> None:
    plain(axes)
    panel = result.panel
    ranks = panel.shows == "rank"
    dataset = DATASETS[panel.dataset]
    for method in panel.drawn:
        found = result.results.get(method.name)
        if found is None or (ranks and method.family == "naive"):
            continue
        first = found[0]["burn_in"] if dataset.recorded else 0
        every = _stack(found, panel.shows)[:, first:]
        if np.isnan(every).all():
            continue
        slices = np.arange(first, first + every.shape[1]) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the first slice of a prediction has none
            middle, low, high = np.nanmean(every, 0), np.nanmin(every, 0), np.nanmax(every, 0)
        style = line_style(method)
        axes.plot(slices, middle, **style, drawstyle="steps-mid" if ranks else "default")
        if len(found) > 1:
            axes.fill_between(slices, low, high, color=style["color"], alpha=0.12, linewidth=0)
    if ranks:
        axes.axhline(dataset.rank, color="#17212b", linewidth=1, linestyle=(0, (1, 3)))
        axes.set_ylim(bottom=0)
    elif not dataset.recorded:
        axes.set_yscale("log")
        axes.set_ylim(top=min(axes.get_ylim()[1], 10))
    else:
        axes.set_ylim(0, min(axes.get_ylim()[1], 2.0))
    axes.set_title(panel.title, fontsize=11)
    axes.set_xlabel("slice", fontsize=9)
    axes.set_ylabel("components" if ranks else SCORES[panel.shows].title, fontsize=9)


def mean_curve(results: list[CaseResult], shows: str) -> list[float | None]:
    """The mean over seeds of a curve, as JSON holds it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = np.nanmean(_stack(results, shows), axis=0)
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in mean]


def _stack(results: list[CaseResult], shows: str) -> NDArray[np.float64]:
    return np.array([[np.nan if value is None else value for value in result["curves"][shows]] for result in results])
