"""Slices as small pictures inside the page."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.report.chart import shown
from undertow.report.html import Html, element, void

Floats = NDArray[np.float64]

_MOST_PIXELS = 320
_GAP = (0.55, 0.55, 0.55, 0.35)  # where there is nothing to show


def plane(arrays: dict[str, Floats], interest: Floats) -> tuple[dict[str, Floats], dict[int, int]]:
    """Two modes to show, and for every other mode the index where ``interest`` is largest.

    The two modes are the largest, in their own order; a stream with one mode becomes a single row.
    """
    modes = interest.ndim
    if modes == 1:
        return {name: array[np.newaxis, :] for name, array in arrays.items()}, {}
    chosen = sorted(sorted(range(modes), key=lambda mode: -interest.shape[mode])[:2])
    others = [mode for mode in range(modes) if mode not in chosen]
    mass = np.nan_to_num(interest).sum(axis=tuple(chosen))
    best = np.unravel_index(int(mass.argmax()), mass.shape) if others else ()
    fixed = {mode: int(index) for mode, index in zip(others, best, strict=True)}
    where = tuple(fixed.get(mode, slice(None)) for mode in range(modes))
    return {name: array[where] for name, array in arrays.items()}, fixed


def picture(title: str, values: Floats, low: float, high: float, colours: str) -> Html:
    """Draw ``values`` from ``low`` to ``high`` in a colour map of matplotlib, with its key below."""
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
    image = void("img", alt=title, src=f"data:image/png;base64,{png}")
    return element("figure", image, element("figcaption", title, key))


def limits(*arrays: Floats, around_zero: bool = False) -> tuple[float, float]:
    """A range that shows nearly everything, not stretched by the few largest."""
    known = np.concatenate([array[np.isfinite(array)] for array in arrays])
    if not known.size:
        return 0.0, 1.0
    if around_zero:
        size = float(np.quantile(np.abs(known), 0.999)) or float(np.abs(known).max()) or 1.0
        return -size, size
    low, high = (float(edge) for edge in np.quantile(known, [0.01, 0.99]))
    return (low, high) if high > low else (float(known.min()), float(known.max()))


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
