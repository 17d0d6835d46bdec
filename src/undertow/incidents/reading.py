"""What incidents need of a result, from any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Seen:
    """One slice, flat (n,).

    Attributes:
        innovation: In standard deviations; NaN where nothing was observed.
        amount: Distance from what was expected, in units of the data.
        changed: Entries whose change is believed to last.
        dead: Entries that give the same number for ever.
        off: Root mean square, in standard deviations, of a slice that is wrong as a whole; else 0.
    """

    innovation: Floats
    amount: Floats
    changed: Bools
    dead: Bools
    off: float

    @property
    def observed(self) -> Bools:
        """Where something was observed."""
        return ~np.isnan(self.innovation)


def read(result: Any, shape: tuple[int, ...], values: Any = None) -> Seen:
    """Take from a result what incidents go by; nothing is changed.

    Args:
        result: Of a model for one slice.
        shape: That slices have.
        values: The slice itself, if it is at hand: the size of what is wrong is exact then.

    Raises:
        ValueError: It is a result of slices of another shape, or of a fleet.
    """
    mean = np.asarray(result.mean, np.float64)
    if mean.shape != shape:
        raise ValueError(f"result must be of one slice of shape {shape}, got one of shape {mean.shape}")
    probability, outliers = (
        np.asarray(getattr(result, one), np.float64) for one in ("outlier_probability", "outliers")
    )
    std = np.asarray(result.std, np.float64)
    amount = np.divide(outliers, probability, out=np.zeros(shape), where=probability > 1e-12)
    if values is not None:
        given = np.asarray(values, np.float64)
        if given.shape != shape:
            raise ValueError(f"values must have the shape of the slice, {shape}, got {given.shape}")
        amount = np.where(np.isfinite(given), given - mean, 0.0)
    innovation = np.asarray(getattr(result, "innovations", np.full(shape, np.nan)), np.float64)
    if np.isnan(innovation).all() and (values is not None or probability.any()):
        # A model that does not predict: what it says of the slice after it has learned it.
        innovation = np.divide(amount, std, out=np.zeros(shape), where=std > 0)
        if values is not None:
            innovation = np.where(np.isfinite(given), innovation, np.nan)
    events = getattr(result, "events", None)
    changed, dead = (_mask(getattr(events, name, ()), shape) for name in ("changed", "dead"))
    off = 0.0
    if getattr(events, "slice_off", False):
        ratio = np.divide(amount, std, out=np.zeros(shape), where=(std > 0) & (probability > 0.5))
        off = max(float(np.sqrt(np.mean(ratio[probability > 0.5] ** 2))) if (probability > 0.5).any() else 1.0, 1.0)
    innovation = np.clip(innovation, -1e8, 1e8)
    return Seen(innovation.ravel(), amount.ravel(), changed.ravel(), dead.ravel(), off)


def _mask(positions: Any, shape: tuple[int, ...]) -> Bools:
    made = np.zeros(shape, bool)
    if len(positions):
        made[tuple(positions)] = True
    return made
