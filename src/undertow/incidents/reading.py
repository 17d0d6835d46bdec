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
        expected: What the model says that each entry should be.
        amount: Distance from that, in units of the data.
        values: What was observed, NaN where nothing was; None where that is not at hand.
        changed: Entries whose change is believed to last.
        dead: Entries that give the same number for ever.
        off: Root mean square, in standard deviations, of a slice that is wrong as a whole; else 0.
        off_fraction: Fraction of its entries that lie farther off than two standard deviations.
        repeats: Whether the slice is the one before it again, which says nothing of how slices are.
    """

    innovation: Floats
    expected: Floats
    amount: Floats
    values: Floats | None
    changed: Bools
    dead: Bools
    off: float
    off_fraction: float
    repeats: bool = False

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
    off, fraction, flagged = 0.0, 0.0, probability > 0.5
    if getattr(events, "slice_off", False) and flagged.any():
        ratio = np.minimum(np.abs(np.divide(amount, std, out=np.zeros(shape), where=std > 0)[flagged]), 1e8)
        off, fraction = max(float(np.sqrt(np.mean(ratio**2))), 1.0), float((ratio > 2).mean())
    flat = None if values is None else given.ravel()
    innovation = np.clip(innovation, -1e8, 1e8).ravel()
    repeats = "REPEATED" in getattr(getattr(result, "status", None), "codes", ())
    return Seen(innovation, mean.ravel(), amount.ravel(), flat, changed.ravel(), dead.ravel(), off, fraction, repeats)


def _mask(positions: Any, shape: tuple[int, ...]) -> Bools:
    made = np.zeros(shape, bool)
    if len(positions):
        made[tuple(positions)] = True
    return made
