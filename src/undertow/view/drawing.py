"""One look for all pictures, made without pyplot, so that neither a display nor global state is touched."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.names import Names

FONT = ("DejaVu Sans", "sans-serif")
"""Type face of figures; pages name it too (`report.css`, `page.css`)."""
INK, SOFT, DEEP, ACCENT = "#17212b", "#5b6b7a", "#0f4c5c", "#c8553d"
SHARES = ("#0f4c5c", "#2c7a7b", "#7cb6a6", "#d9c27a", "#e09f5a", "#c8553d", "#7d3c52", "#8a94a0", "#3f5fa3")
"""Colours of predictors and components, as in the report."""
_MOST_TICKS = 24
_LONG = 14

Floats = NDArray[np.floating[Any]]


def matplotlib(name: str) -> Any:
    """A module of matplotlib; its absence is one sentence."""
    try:
        return import_module(f"matplotlib.{name}")
    except ImportError:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'undertow[plot]'") from None


@cache
def _picture_class() -> Any:
    agg, figure = matplotlib("backends.backend_agg"), matplotlib("figure").Figure

    class Picture(figure):  # type: ignore[misc, valid-type]
        """A figure that notebooks show; `savefig` writes it."""

        def _repr_png_(self) -> bytes:
            import io

            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    def made(**options: Any) -> Any:
        picture = Picture(**options)
        agg.FigureCanvasAgg(picture)
        return picture

    return made


def blank(width: float, height: float, title: str = "") -> Any:
    """An empty figure, inches."""
    picture = _picture_class()(figsize=(width, height), layout="constrained")
    if title:
        picture.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK, family=FONT)
    return picture


def plain(axes: Any, title: str = "", unit: str = "", along: str = "") -> Any:
    """Nothing but the data, and a grid so faint that it does not count as something."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.18, linewidth=0.7)
    return written(axes, title, unit, along)


def written(axes: Any, title: str = "", unit: str = "", along: str = "") -> Any:
    """Its texts in one type face: title, and what is up and along."""
    axes.set_title(title, loc="left", fontsize=10, color=INK, family=FONT)
    axes.set_ylabel(unit, fontsize=9, color=SOFT, family=FONT)
    axes.set_xlabel(along, fontsize=9, color=SOFT, family=FONT)
    axes.tick_params(labelsize=8, colors=SOFT)
    return axes


def label_axis(axis: Any, names: Names, mode: int) -> None:
    """Labels of the rows of a mode along an axis of a heat map, as many as can be read."""
    size = names.shape[mode]
    axis.set_label_text(names.dims[mode], fontsize=9, color=SOFT, family=FONT)
    if names.coords[mode] is None:
        return
    stride = -(-size // _MOST_TICKS)
    places = list(range(0, size, stride))
    texts = [short(str(names.label(mode, place))) for place in places]
    rotated = axis.axis_name == "x" and max(map(len, texts)) > 3
    axis.set_ticks(places, texts, fontsize=7, family=FONT, rotation=90 if rotated else 0)


def short(text: str) -> str:
    """A label that fits beside a picture."""
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


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
