"""Figures of pictures: the original, what was shown of it, and what every method made of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.accuracy.contest import unpack
from undertow.lab.accuracy.judge import FIGURES
from undertow.lab.figures.plan import PaperFigure
from undertow.lab.pages.drawing import blank, save
from undertow.lab.recordings.files import Folder

if TYPE_CHECKING:
    from undertow.lab.figures.run import PanelResult

_SECTIONS = (1, 3)  # of a volume


def draw(figure: PaperFigure, results: list[PanelResult], quick: bool, folder: Folder, path: Path) -> None:
    """One row of pictures and one of their errors for every frame (every cross section of a volume)."""
    (result,) = results
    panel = result.panel
    case = panel.contest(0, quick, folder).case
    shown = [contender for contender in panel.contenders if contender.name in result.cells]
    frames = panel.frames_of(quick)
    views = [(t, section) for t in frames for section in (_SECTIONS if len(case.shape) == 3 else (None,))]
    complete = bool(case.shown.all())
    titles = ["original"] + ([] if complete else ["shown"]) + [contender.label for contender in shown]
    height, width = case.shape[:2]
    tile = 1.75
    sheet = blank(tile * len(titles), 2 * len(views) * (tile * height / width + 0.2) + 0.3)
    grid = sheet.subplots(2 * len(views), len(titles), squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for place, (t, section) in enumerate(views):
        truth = _view(case.truth[t], section)
        low, high = np.quantile(truth, [0.005, 0.995])
        upper, lower = grid[2 * place], grid[2 * place + 1]
        columns = [truth] if complete else [truth, _view(case.values[t], section)]
        columns += [_view(unpack(result.cells[contender.name][0]["frames"][str(t)]), section) for contender in shown]
        for axes, title, picture in zip(upper, titles, columns, strict=True):
            axes.imshow(_on_white(picture, low, high), interpolation="nearest")
            if place == 0:
                axes.set_title(title, fontsize=9)
        where = f"frame {t + 1}" + (f", section {section + 1}" if section is not None else "")
        upper[0].text(-0.06, 0.5, where, transform=upper[0].transAxes, rotation=90, va="center", ha="right", fontsize=9)
        for axes, contender, picture in zip(lower[-len(shown) :], shown, columns[-len(shown) :], strict=True):
            axes.imshow(np.abs(picture - truth), cmap="magma", vmin=0, vmax=0.4 * (high - low), interpolation="nearest")
            error = result.cells[contender.name][0]["curves"][panel.shows][t]
            if error is not None:
                axes.text(0.5, -0.04, f"{error:.3f}", transform=axes.transAxes, va="top", ha="center", fontsize=9)
        note = f"|original − low rank|\nnumber: {FIGURES[panel.shows].title}"
        lower[0].text(0.5, 0.5, note, transform=lower[0].transAxes, va="center", ha="center", fontsize=7)
    save(sheet, path)


def _view(picture: NDArray[Any], section: int | None) -> NDArray[np.float64]:
    return np.asarray(picture if section is None else picture[..., section], dtype=np.float64)


def _on_white(picture: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Grey, with what was not shown in a pale blue that no grey can be mistaken for."""
    grey = np.clip((picture - low) / (high - low), 0, 1)[..., None] * np.ones(3)
    return np.where(np.isnan(picture)[..., None], np.array([0.82, 0.88, 0.93]), grey)
