"""Simple methods at their best in hindsight: what a row is measured beside. NumPy, whole streams at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from undertow.lab.baselines import METHODS
from undertow.lab.models import BaselineModel, follow
from undertow.lab.track import Floats

Error = Callable[[Floats], float]
"""Judges estimates of a whole stream, (T, *shape)."""

PACES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Variance of a step over variance of the noise, of the level."""
WINDOWS = (3, 5, 9, 15, 21, 41, 81)
"""Slices of the running median."""


def local_level(values: Floats, pace: float) -> Floats:
    """A Kalman filter for every entry: x_t = x_{t−1} + N(0, pace · σ²), y_t = x_t + N(0, σ²), from nothing known.

    The first value seen is taken as it is; an entry never seen so far gets the mean of the others. At pace 0 it is the
    mean of all values seen.

    Args:
        values: (T, *shape), NaN where hidden.
        pace: variance of a step over that of the noise.

    Returns:
        (T, *shape), every slice as it is known once it has been seen.
    """
    estimate, variance = np.zeros(values.shape[1:]), np.full(values.shape[1:], np.inf)
    filtered = np.empty(values.shape)
    for t, slice_values in enumerate(values):
        shown = ~np.isnan(slice_values)
        variance = variance + pace
        unknown = np.isinf(variance)
        gain = np.where(unknown, 1.0, variance / (1 + np.where(unknown, 0.0, variance)))
        estimate = np.where(shown, estimate + gain * (np.where(shown, slice_values, 0.0) - estimate), estimate)
        variance = np.where(shown, gain, variance)  # P / (P + 1), in units of σ²
        known = np.isfinite(variance)
        filtered[t] = np.where(known, estimate, estimate[known].mean() if known.any() else 0.0)
    return filtered


def best_level(values: Floats, error: Error, paces: Iterable[float] = PACES) -> float:
    """The smallest error of `local_level` over paces."""
    return min(error(local_level(values, pace)) for pace in paces)


def best_median(values: Floats, error: Error, windows: Iterable[int] = WINDOWS) -> float:
    """The smallest error of the running median over windows."""
    models = (BaselineModel(METHODS["running_median"], window=window) for window in windows)
    return min(error(follow(model, values).low_rank) for model in models)
