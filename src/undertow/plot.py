"""`ut.plot`: pictures of results over time, from a store or from a Dataset."""

from __future__ import annotations

from typing import Any

from undertow.runs.explaining import recording
from undertow.view import series
from undertow.view.series import selected

__all__ = ["entry"]


def entry(source: Any, /, *, ax: Any = None, threshold: float = 0.5, **labels: Any) -> Any:
    """The history of one entry: its data, what it should be with the band of clean data, and its flags.

    Args:
        source: A store that `undertow run` wrote, or a Dataset with `mean` and `std` over time, as `ut.clean` gives it.
        ax: Axes of matplotlib to draw on; those of a new figure if left out.
        threshold: Outlier probability from which on an observation is flagged.
        **labels: Of the entry, one for each mode by its name: `src="A", dst="B"`; numbers where a mode has no labels.

    Returns:
        The axes; `axes.figure.savefig("entry.png")` writes the figure, which notebooks show.

    Raises:
        ImportError: Matplotlib is not installed.
        ValueError: There is no such entry.

    Examples:
        >>> import undertow as ut
        >>> ut.plot.entry("flows-undertow.zarr", src="A", dst="B")  # doctest: +SKIP
    """
    return series.draw(selected(recording(source), labels, threshold), ax)
