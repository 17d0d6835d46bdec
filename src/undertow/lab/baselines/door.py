"""The door: what comes in is checked and copied once, here, so that the methods need not think about it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from undertow.lab.baselines.result import Array, Mask


def check_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a slice: at least one mode, every mode at least one entry long."""
    modes = tuple(shape)
    if not modes or not all(isinstance(size, (int, np.integer)) and size >= 1 for size in modes):
        raise ValueError(f"shape must hold one positive integer for each mode of a slice, got {shape!r}.")
    return tuple(int(size) for size in modes)


def check_positive(**knobs: float) -> None:
    """Every knob must be a number above zero."""
    for name, value in knobs.items():
        if not np.isfinite(value) or value <= 0:
            raise ValueError(f"{name} must be above zero, got {value!r}.")


def check_not_negative(**knobs: float) -> None:
    """Every knob must be zero or more."""
    for name, value in knobs.items():
        if not np.isfinite(value) or value < 0:
            raise ValueError(f"{name} must be zero or more, got {value!r}.")


def check_share(**knobs: float) -> None:
    """Every knob must lie in (0, 1]."""
    for name, value in knobs.items():
        if not 0 < value <= 1:
            raise ValueError(f"{name} must lie above 0 and at most at 1, got {value!r}.")


def check_whole(**knobs: int) -> None:
    """Every knob must be a whole number of at least one."""
    for name, value in knobs.items():
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")


def observe(values: Any, mask: Any, shape: tuple[int, ...]) -> tuple[Array, Mask]:
    """A fresh copy of the slice with zeros where nothing was observed, and the mask of what was.

    An entry is observed where the mask says so and the value is not NaN; without a mask, wherever it is not NaN.
    What stands at an unobserved entry is never looked at.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "buif":
        raise TypeError(f"values must be real numbers, got the type {given.dtype}.")
    if given.shape != shape:
        raise ValueError(f"values must have the shape {shape} of this stream's slices, got {given.shape}.")
    numbers = np.array(given, dtype=np.float64)
    observed = ~np.isnan(numbers)
    if mask is not None:
        flags = np.asarray(mask)
        if flags.shape != shape:
            raise ValueError(f"mask must have the shape {shape} of the slice, got {flags.shape}.")
        if flags.dtype.kind != "b" and not (flags.dtype.kind in "uif" and bool(np.isin(flags, (0, 1)).all())):
            raise TypeError(f"mask must hold True where an entry is observed and False elsewhere, got {flags.dtype}.")
        observed &= flags.astype(bool)
    numbers[~observed] = 0.0
    if not np.isfinite(numbers).all():
        raise ValueError("values must be finite where they are observed, got an infinity: mask it or make it NaN.")
    return numbers, observed


def observe_all(values: Any, mask: Any, shape: tuple[int, ...], method: str) -> Array:
    """As observe, for a method that knows no missing data."""
    numbers, observed = observe(values, mask, shape)
    if not observed.all():
        missing = int(observed.size - observed.sum())
        raise ValueError(
            f"{method} needs every entry of a slice, got {missing} missing of {observed.size}: "
            "fill them in first or choose a method for incomplete data."
        )
    return numbers


def finite(*trees: Any) -> bool:
    """Is every number in these arrays and tuples of arrays finite? What is not must never enter a state."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(trees))


def filled(values: Array, observed: Mask) -> Array:
    """The slice with its missing entries at the mean of what was observed: an answer while a method still gathers."""
    mean = values.sum() / max(int(observed.sum()), 1)
    return np.where(observed, values, mean)
