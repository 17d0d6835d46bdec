"""What `Tracker.forecast` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.names import Labels
from undertow.view import notebook

Floats = NDArray[np.floating[Any]]
AHEAD = "ahead"
"""Name of the first dimension: 1 is the next slice."""


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Slices that are to come, in the units of the data; the next one first.

    Attributes:
        mean: What every entry should be (slices, *shape).
        std: Of an observation: about 95 % fall within ±1.96 std of `mean` (slices, *shape).
        labels: Names of the modes and labels of their rows, if the stream has any.
        times: Of these slices (slices,): dates (UTC where the times of the stream have a zone) or numbers; None where
            the stream has none.

    Examples:
        >>> made = Forecast(np.zeros((3, 6, 5)), np.ones((3, 6, 5)))
        >>> made
        Forecast(3 slices of 6×5)
    """

    mean: Floats
    std: Floats
    labels: Labels | None = None
    times: NDArray[Any] | None = None

    def __repr__(self) -> str:
        when = "" if self.times is None else f", {self.times[0]} to {self.times[-1]}"
        return f"Forecast({len(self.mean)} slices of {'×'.join(map(str, self.mean.shape[1:]))}{when})"

    def _repr_html_(self) -> str:
        first, last = (1.96 * float(np.nanmedian(self.std[slice_])) for slice_ in (0, -1))
        pairs = [
            ("means", f"{np.nanmin(self.mean):.4g} to {np.nanmax(self.mean):.4g}"),
            ("95 % of entries within, next slice", f"± {first:.3g}"),
            ("last slice", f"± {last:.3g}"),
        ]
        return notebook.box(repr(self), notebook.facts(pairs))

    def to_xarray(self) -> Any:
        """As an `xarray.Dataset` with the labels of the stream, along `ahead`: 1, 2, 3, …

        Returns:
            `mean` and `std`.

        Raises:
            ImportError: xarray is not installed.
        """
        try:
            import xarray
        except ModuleNotFoundError:
            raise ImportError("to_xarray needs xarray: pip install 'undertow[store]'") from None
        count = len(self.mean)
        labels = self.labels or Labels(
            tuple(f"mode_{mode}" for mode in range(1, self.mean.ndim)), (None,) * (self.mean.ndim - 1)
        )
        pairs = zip(labels.dims, labels.coords, strict=True)
        coords: dict[str, Any] = {dim: list(rows) for dim, rows in pairs if rows is not None}
        coords[AHEAD] = np.arange(1, count + 1)
        if self.times is not None:
            coords["time"] = AHEAD, self.times
        dims = (AHEAD, *labels.dims)
        return xarray.Dataset({"mean": (dims, self.mean), "std": (dims, self.std)}, coords)
