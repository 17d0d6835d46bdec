"""Figures of pictures: the original, what was shown of it, and what every method made of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.evaluate import unpack
from undertow.lab.figures.figure import PaperFigure
from undertow.lab.pages.drawing import blank, save
from undertow.lab.recordings.files import Folder
from undertow.lab.scores import SCORES

if TYPE_CHECKING:
    from undertow.lab.figures.make import PanelResult

_SECTIONS = (1, 3)  # of a volume


def draw(figure: PaperFigure, results: list[PanelResult], quick: bool, folder: Folder, path: Path) -> None:
    """One row of pictures and one of their errors for every frame (every cross section of a volume)."""
    (result,) = results
    panel = result.panel
    data = panel.case(0, quick, folder).data
    shown = [method for method in panel.drawn if method.name in result.results]
    frames = panel.frames_of(quick)
    views = [(t, section) for t in frames for section in (_SECTIONS if len(data.shape) == 3 else (None,))]
    complete = bool(data.shown.all())
    titles = ["original"] + ([] if complete else ["shown"]) + [method.label for method in shown]
    height, width = data.shape[:2]
    tile = 1.75
    sheet = blank(tile * len(titles), 2 * len(views) * (tile * height / width + 0.2) + 0.3)
    grid = sheet.subplots(2 * len(views), len(titles), squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for row, (t, section) in enumerate(views):
        truth = _view(data.truth[t], section)
        low, high = np.quantile(truth, [0.005, 0.995])
        upper, lower = grid[2 * row], grid[2 * row + 1]
        columns = [truth] if complete else [truth, _view(data.values[t], section)]
        columns += [_view(unpack(result.results[method.name][0]["frames"][str(t)]), section) for method in shown]
        for axes, title, picture in zip(upper, titles, columns, strict=True):
            axes.imshow(_on_white(picture, low, high), interpolation="nearest")
            if row == 0:
                axes.set_title(title, fontsize=9)
        where = f"frame {t + 1}" + (f", section {section + 1}" if section is not None else "")
        upper[0].text(-0.06, 0.5, where, transform=upper[0].transAxes, rotation=90, va="center", ha="right", fontsize=9)
        for axes, method, picture in zip(lower[-len(shown) :], shown, columns[-len(shown) :], strict=True):
            axes.imshow(np.abs(picture - truth), cmap="magma", vmin=0, vmax=0.4 * (high - low), interpolation="nearest")
            error = result.results[method.name][0]["curves"][panel.shows][t]
            if error is not None:
                axes.text(0.5, -0.04, f"{error:.3f}", transform=axes.transAxes, va="top", ha="center", fontsize=9)
        note = f"|original − low rank|\nnumber: {SCORES[panel.shows].title}"
        lower[0].text(0.5, 0.5, note, transform=lower[0].transAxes, va="center", ha="center", fontsize=7)
    save(sheet, path)


def _view(picture: NDArray[Any], section: int | None) -> NDArray[np.float64]:
    return np.asarray(picture if section is None else picture[..., section], dtype=np.float64)


def _on_white(picture: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Grey, with what was not shown in a pale blue that no grey can be mistaken for."""
    grey = np.clip((picture - low) / (high - low), 0, 1)[..., None] * np.ones(3)
    return np.where(np.isnan(picture)[..., None], np.array([0.82, 0.88, 0.93]), grey)
