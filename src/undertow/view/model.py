"""A model as a picture: its components, who answers, rank and noise over time, whether its error bars are right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.components import Components
from undertow.view.drawing import ACCENT, DEEP, SHARES, SOFT, blank, label_axis, plain, short
from undertow.view.history import Moment
from undertow.view.names import Names

Floats = NDArray[np.floating[Any]]
MOST_COMPONENTS = 6
_BARS = 40  # rows of a mode up to which loadings are bars


@dataclass(frozen=True)
class ModelView:
    """What is shown of a model.

    Attributes:
        title: One line.
        names: Of modes and rows.
        components: Of its CP model.
        predictors: Their names; none of `RobustCP`.
        moments: The last slices, oldest first.
        calibration: Of distances in standard deviations: their limits (B,), and the fraction of clean observations
            below each; None where that is not known.
    """

    title: str
    names: Names
    components: Components
    predictors: tuple[str, ...] = ()
    moments: list[Moment] = field(default_factory=list)
    calibration: tuple[Floats, Floats] | None = None


def draw(view: ModelView) -> Any:
    """A figure: components above, the last slices below."""
    below = _panels(view)
    count = min(view.components.count, MOST_COMPONENTS)
    modes = len(view.names.shape)
    picture = blank(11, 0.5 + 1.25 * max(count, 1) + (2.4 if below else 0), view.title)
    upper, lower = picture, None
    if below:
        upper, lower = picture.subfigures(2, 1, height_ratios=[1.25 * max(count, 1), 2.4])
    if count:
        _components(upper.subplots(count, modes + 1, squeeze=False), view, count)
    else:
        upper.text(0.02, 0.5, "no component yet: nothing of low rank was found", color=SOFT, fontsize=9)
    if lower is not None:
        for axes, panel in zip(lower.subplots(1, len(below), squeeze=False)[0], below, strict=True):
            panel(axes, view)
    return picture


def _components(grid: Any, view: ModelView, count: int) -> None:
    found = view.components
    for number in range(count):
        last, share = number == count - 1, f"component {number + 1}, {found.shares[number]:.0%}"
        for mode, matrix in enumerate(found.loadings):
            axes = grid[number, mode]
            title = share if mode == 0 else ""
            _loadings(plain(axes, title), matrix[:, number])
            axes.margins(x=0.01)
            if last:
                label_axis(axes.xaxis, view.names, mode)
            else:
                axes.tick_params(labelbottom=False)
        title, along = "over the window" if number == 0 else "", "slices before the newest" if last else ""
        axes, size = plain(grid[number, -1], title, along=along), found.temporal[:, number]
        axes.plot(np.arange(-len(size) + 1, 1), size, color=ACCENT, linewidth=1.5)
        axes.locator_params(axis="x", integer=True, nbins=6)
        axes.tick_params(labelbottom=last)


def _loadings(axes: Any, column: Floats) -> None:
    place = np.arange(column.size)
    if column.size <= _BARS:
        axes.bar(place, column, color=DEEP, width=0.8)
    else:
        axes.fill_between(place, column, color=DEEP, alpha=0.5, linewidth=0)
    axes.axhline(0, color=SOFT, linewidth=0.5)


def _panels(view: ModelView) -> list[Any]:
    if len(view.moments) < 2:
        return [] if view.calibration is None else [_calibration]
    panels: list[Any] = [_weights] if view.predictors else []
    panels += [_rank_and_noise]
    return panels if view.calibration is None else [*panels, _calibration]


def _weights(axes: Any, view: ModelView) -> None:
    index = [moment.index for moment in view.moments]
    weights = np.array([moment.weights for moment in view.moments]).T
    now = zip(view.predictors, weights[:, -1], strict=True)
    names = [f"{short(name.replace('_', ' '))} {share:.0%}" for name, share in now]
    areas = axes.stackplot(index, weights, labels=names, colors=SHARES[: len(names)], linewidth=0)
    plain(axes, "weights of the predictors", along="slice").set_ylim(0, 1)
    # Beside the areas, in their order from above: they leave no room of their own.
    axes.legend(areas[::-1], names[::-1], fontsize=6.5, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


def _rank_and_noise(axes: Any, view: ModelView) -> None:
    index = [moment.index for moment in view.moments]
    axes.plot(index, [moment.noise for moment in view.moments], color=DEEP, linewidth=1.4)
    plain(axes, "noise (line) and rank (steps)", "standard deviation", "slice")
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.step(index, [moment.rank for moment in view.moments], color=ACCENT, linewidth=1.2, where="post")
    other.spines[["top"]].set_visible(False)
    other.tick_params(labelsize=8, colors=ACCENT)
    other.set_ylim(0, max(moment.rank for moment in view.moments) + 1)


def _calibration(axes: Any, view: ModelView) -> None:
    assert view.calibration is not None
    limits, below = view.calibration
    nominal = [_within(limit) for limit in limits]
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle=":")
    axes.plot(nominal, below, color=DEEP, linewidth=1.6)
    plain(axes, "calibration: share observed within", along="should be within").set(xlim=(0, 1), ylim=(0, 1))


def _within(limit: float) -> float:
    """Of a normal law within ± this many standard deviations."""
    from math import erf, sqrt

    return erf(limit / sqrt(2))
