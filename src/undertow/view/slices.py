"""A slice as a picture: as it came, as it should be, how sure that is, and how far off every entry is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.drawing import ACCENT, DEEP, INK, blank, label_axis, limits, plain, plane, written
from undertow.view.names import Names

Floats = NDArray[np.floating[Any]]
FAR = 6.0
"""Standard deviations at which the colours of distances end, unless all are nearer."""
_PANEL = 150
"""Width of a heat map in points, about."""


@dataclass(frozen=True)
class SliceView:
    """What is shown of a slice; arrays have its shape.

    Attributes:
        names: Of modes and rows.
        title: One line.
        mean: What every entry should be.
        std: Of an observation around it.
        probability: That it is an outlier.
        outliers: What was added, expected.
        data: As it came, NaN where nothing was observed; None where it is not at hand.
        bounds: Between which 95 % of clean observations lie; None for 1.96 std around the mean.
    """

    names: Names
    title: str
    mean: Floats
    std: Floats
    probability: Floats
    outliers: Floats
    data: Floats | None = None
    bounds: tuple[Floats, Floats] | None = None

    @property
    def distance(self) -> Floats:
        """How far every entry is off, in standard deviations; NaN where nothing was observed."""
        added = self.outliers if self.data is None else self.data - self.mean
        return np.asarray(added, np.float64) / np.maximum(self.std, np.finfo(np.float64).tiny)


def draw(view: SliceView, threshold: float = 0.5) -> Any:
    """A figure: heat maps side by side, or curves where there is a single mode."""
    return _curves(view, threshold) if view.mean.ndim == 1 else _maps(view, threshold)


def _maps(view: SliceView, threshold: float) -> Any:
    distance, flagged = view.distance, view.probability >= threshold
    arrays = {"mean": view.mean, "std": view.std, "distance": distance, "flagged": flagged.astype(float)}
    if view.data is not None:
        arrays = {"data": view.data, **arrays}
    drawn, fixed = plane(arrays, view.probability)
    shown = [mode for mode in range(view.mean.ndim) if mode not in fixed]
    where = "".join(f", {view.names.row(mode, index)}" for mode, index in fixed.items())
    low, high = limits(drawn["mean"])
    far = float(min(FAR, np.nanmax(np.abs(drawn["distance"]), initial=1.0)))
    panels = [
        ("data", "viridis", low, high),
        ("mean", "viridis", low, high),
        ("std", "cividis", 0.0, limits(drawn["std"])[1]),
        ("distance", "RdBu_r", -far, far),
    ]
    panels = [panel for panel in panels if panel[0] in drawn]
    picture = blank(3.3 * len(panels), 3.4, view.title + where)
    for place, (name, colours, least, most) in enumerate(panels):
        axes = picture.add_subplot(1, len(panels), place + 1)
        title = {"distance": "off by, standard deviations", "std": "standard deviation"}.get(name, name)
        image = axes.imshow(drawn[name], cmap=colours, vmin=least, vmax=most, aspect="auto", interpolation="nearest")
        axes.set_facecolor("#d8dcdf")
        written(axes, title)
        for axis, mode in ((axes.yaxis, shown[0]), (axes.xaxis, shown[1])):
            label_axis(axis, view.names, mode)
        bar = picture.colorbar(image, ax=axes, location="bottom", shrink=0.9, pad=0.02, aspect=30)
        bar.ax.tick_params(labelsize=8)
        if name == "distance":
            rows, columns = np.nonzero(drawn["flagged"] > 0)
            size = float(np.clip(_PANEL / max(drawn[name].shape), 3, 11)) ** 2
            for colour, width in (("white", 2.4), (INK, 1.1)):  # seen on light cells and on dark ones
                axes.scatter(columns, rows, s=size, facecolors="none", edgecolors=colour, linewidths=width)
    return picture


def _curves(view: SliceView, threshold: float) -> Any:
    picture = blank(9, 3.2, view.title)
    axes, place = plain(picture.add_subplot()), np.arange(view.mean.size)
    band = 1.96 * np.asarray(view.std, np.float64)
    bounds = view.bounds or (view.mean - band, view.mean + band)
    axes.fill_between(place, *bounds, color=DEEP, alpha=0.15, label="95 % of clean data")
    axes.plot(place, view.mean, color=DEEP, linewidth=1.6, label="mean")
    data = view.mean + view.outliers if view.data is None else view.data
    flagged = view.probability >= threshold
    axes.plot(place[~flagged], data[~flagged], ".", color=INK, markersize=4, label="data")
    axes.plot(place[flagged], data[flagged], "o", color=ACCENT, markersize=6, label="flagged")
    label_axis(axes.xaxis, view.names, 0)
    axes.legend(frameon=False, fontsize=8, ncols=4, loc="upper left", bbox_to_anchor=(0, 1.12))
    return picture
