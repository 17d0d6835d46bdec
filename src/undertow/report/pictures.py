"""Slices as maps: what `view/parts/heatmap.js` draws, which draws those of the live page too."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.report.chart import shown
from undertow.view.html import Html, element

Floats = NDArray[np.floating[Any]]

_MOST_PIXELS = 320
_MOST_VALUES = 4096  # under the pointer
_LEVELS, _NOTHING = 254, 255  # of colours; where there is nothing to show


@dataclass(frozen=True)
class Sides:
    """What the rows and columns of a picture are called: names of the two modes, and labels along each."""

    rows: str
    columns: str
    row_labels: tuple[str, ...] | None = None
    column_labels: tuple[str, ...] | None = None


def picture(title: str, values: Floats, low: float, high: float, colours: str, sides: Sides | None = None) -> Html:
    """A place for a map of ``values`` from ``low`` to ``high``; ``colours`` is one of `colors.js`.

    With ``sides`` it carries their labels where there is room for them, and says the entry under the pointer; its value
    too unless there are very many.
    """
    small = shrunk(values)
    fraction = np.clip((small - low) / (high - low), 0, 1) if high > low else np.zeros_like(small)
    levels = np.where(np.isnan(small), _NOTHING, np.round(_LEVELS * np.nan_to_num(fraction))).astype(np.uint8)
    content = {
        "title": title,
        "colours": colours,
        "ends": [low, high],
        "shape": list(small.shape),
        "levels": base64.b64encode(zlib.compress(levels.tobytes(), 9)).decode("ascii"),
        **({} if sides is None else _under_the_pointer(sides, values, small)),
    }
    return element("div", data_map=json.dumps(content))


def _under_the_pointer(sides: Sides, values: Floats, small: Floats) -> dict[str, Any]:
    """What the script of the page shows: labels of rows and columns, and values where they are few."""
    labelled = [sides.row_labels is not None, sides.column_labels is not None]
    found: dict[str, Any] = {"names": [sides.rows, sides.columns], "labelled": labelled}
    for axis, labels in enumerate((sides.row_labels, sides.column_labels)):
        factor = -(-values.shape[axis] // _MOST_PIXELS)
        every = range(0, values.shape[axis], factor)
        found["rows" if axis == 0 else "columns"] = [str(index) if labels is None else labels[index] for index in every]
    if small.size <= _MOST_VALUES:
        found["values"] = ["" if np.isnan(value) else shown(float(value)) for value in small.ravel()]
    return found


def shrunk(values: Floats) -> Floats:
    """At most 320 pixels a side: of every block the value farthest from the median, so that no outlier is lost."""
    for axis in range(2):
        factor = -(-values.shape[axis] // _MOST_PIXELS)
        if factor > 1:
            short = -values.shape[axis] % factor
            padding = [(0, short if other == axis else 0) for other in range(2)]
            blocks = np.moveaxis(np.pad(values, padding, constant_values=np.nan), axis, 0)
            blocks = blocks.reshape(-1, factor, blocks.shape[1])
            distance = np.abs(blocks - np.nanmedian(values)) if np.isfinite(values).any() else blocks
            best = np.nan_to_num(distance, nan=-1.0).argmax(axis=1)
            values = np.moveaxis(np.take_along_axis(blocks, best[:, np.newaxis], axis=1)[:, 0], 0, axis)
    return values
