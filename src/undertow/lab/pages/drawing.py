"""Pictures: one look for all, made without pyplot, so that no display and no global state is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from undertow.lab.methods import Method

COLOURS = {"undertow": "#0f4c5c", "baseline": "#8fa3ad", "naive": "#c9a227"}
"""Of a family of methods."""
_FIXED = {
    "undertow": ("#0f4c5c", 2.6, "-"),
    "undertow_fast": ("#e39c37", 2.0, "-"),
    "undertow_paper": ("#c8553d", 2.0, "-"),
    "online_cp": ("#6a4c93", 1.3, "-"),
    "online_sgd": ("#3a7d44", 1.3, "-"),
    "olstec": ("#2f77c4", 1.3, "-"),
    "brtf": ("#d4a017", 1.8, "-"),
    "grasta": ("#b5838d", 1.3, "-"),
    "last_value": ("#8d99ae", 1.1, ":"),
    "moving_mean": ("#8d99ae", 1.1, "--"),
    "running_median": ("#8d99ae", 1.1, "-."),
}


def canvas(width: float, height: float) -> tuple[Any, Any]:
    """A figure with one pair of axes."""
    figure = blank(width, height)
    axes = figure.subplots()
    plain(axes)
    return figure, axes


def blank(width: float, height: float) -> Any:
    """An empty figure, inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: Any) -> None:
    """Nothing but the data, and a grid so faint that it does not count as something."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.18, linewidth=0.7)
    axes.tick_params(labelsize=9)


def line_style(method: Method) -> dict[str, Any]:
    """Colour, width and dash of a method, the same in every picture."""
    colour, width, dash = _FIXED.get(method.name, ("#444444", 1.2, "-"))
    return {
        "color": colour,
        "linewidth": width,
        "linestyle": dash,
        "label": method.label,
        "zorder": 4 if method.family == "undertow" else 2,
    }


def save(figure: Any, path: Path) -> None:
    """As PNG."""
    figure.savefig(path, dpi=125)
