"""Slices as small pictures inside the page."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.report.chart import shown
from undertow.view.html import Html, element, void

Floats = NDArray[np.floating[Any]]

_MOST_PIXELS = 320
_MOST_LABELS = 16  # beside a picture
_MOST_VALUES = 4096  # under the pointer
_GAP = (0.55, 0.55, 0.55, 0.35)  # where there is nothing to show


@dataclass(frozen=True)
class Sides:
    """What the rows and columns of a picture are called: names of the two modes, and labels along each."""

    rows: str
    columns: str
    row_labels: tuple[str, ...] | None = None
    column_labels: tuple[str, ...] | None = None


def picture(title: str, values: Floats, low: float, high: float, colours: str, sides: Sides | None = None) -> Html:
    """Draw ``values`` from ``low`` to ``high`` in a colour map of matplotlib, with its key below.

    With ``sides`` it carries their labels where there is room for them, and says the entry under the pointer; its value
    too unless there are very many.
    """
    from matplotlib import colormaps

    small = shrunk(values)
    fraction = np.clip((small - low) / (high - low), 0, 1) if high > low else np.zeros_like(small)
    coloured = colormaps[colours](np.nan_to_num(fraction))
    coloured[np.isnan(small)] = _GAP
    png = _png((255 * coloured).round().astype(np.uint8))
    key = element(
        "span",
        element("i", shown(low)),
        element("s", style=f"background:linear-gradient(90deg,{_gradient(colours)})"),
        element("i", shown(high)),
        class_="key",
    )
    hover = None if sides is None else json.dumps(_under_the_pointer(sides, values, small))
    image = void("img", alt=title, src=f"data:image/png;base64,{png}", data_cells=hover)
    axes = "" if sides is None else f"{sides.rows} ↓ {sides.columns} →" if values.shape[0] > 1 else f"{sides.columns} →"
    caption = element("figcaption", title, element("small", axes), element("output"), key)
    return element("figure", _with_labels(image, sides, values.shape), caption)


def _with_labels(image: Html, sides: Sides | None, shape: tuple[int, ...]) -> Html:
    """The picture between the labels of its sides, as many of them as can be read."""
    if sides is None or (sides.row_labels is None and sides.column_labels is None):
        return image
    rows = element("div", _few(sides.row_labels, shape[0]), class_="rows")
    columns = element("div", _few(sides.column_labels, shape[1]), class_="columns")
    return element("div", rows, image, element("div"), columns, class_="labelled")


def _few(labels: tuple[str, ...] | None, size: int) -> list[Html]:
    if labels is None:
        return []
    stride = -(-size // _MOST_LABELS)
    return [element("i", labels[index]) for index in range(0, size, stride)]


def _under_the_pointer(sides: Sides, values: Floats, small: Floats) -> dict[str, Any]:
    """What the script of the page shows: labels of rows and columns, and values where they are few."""
    found: dict[str, Any] = {"names": [sides.rows, sides.columns], "shape": list(small.shape)}
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


def _gradient(colours: str) -> str:
    """The colour map as a CSS gradient."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return ", ".join(to_hex(colormaps[colours](fraction)) for fraction in np.linspace(0, 1, 9))


def _png(pixels: NDArray[np.uint8]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    image: Any = Image.fromarray(pixels, "RGBA")
    image.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
