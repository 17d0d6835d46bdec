"""Which of several arrays in one file is read, which of its axes is time, and where its times are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import shortened

T = TypeVar("T")
TIME_NAMES = ("time", "times", "t", "date", "datetime", "timestamp", "frame", "frames")


def choose(name: str, candidates: Mapping[str, tuple[int, ...]], variable: str | None, others: str = "") -> str:
    """The variable that was asked for, or the only one; otherwise one sentence that lists them."""
    listed = shortened([f"{key} {'×'.join(map(str, shape))}" for key, shape in sorted(candidates.items())], most=20)
    if variable is not None and variable in candidates:
        return variable
    if variable is not None:
        raise StreamError(f"{name} holds no array {variable!r} with a time axis: it holds {listed or others or 'none'}")
    if not candidates:
        raise StreamError(f"{name} holds no array of numbers with two or more axes: it holds {others or 'nothing'}")
    if len(candidates) > 1:
        raise StreamError(f"{name} holds several arrays, {listed}: name one of them with variable=…")
    return next(iter(candidates))


def axis_number(name: str, time_axis: int | str | None, shape: tuple[int, ...], default: int) -> int:
    """The axis of time among plain axes without names."""
    wanted = default if time_axis is None else time_axis
    try:
        number = int(wanted)
    except ValueError:
        raise StreamError(f"time_axis must be a number, got {wanted!r}: the axes of {name} have no names") from None
    if len(shape) < 2:
        raise StreamError(
            f"{name} must have a time axis and at least one more, got shape {shape}: reshape it to (times, 1)"
        )
    if not -len(shape) <= number < len(shape):
        raise StreamError(f"time_axis must be from 0 to {len(shape) - 1} for shape {shape} of {name}, got {number}")
    return number % len(shape)


def without(modes: tuple[T, ...], axis: int) -> tuple[T, ...]:
    """The shape (or the names of the modes) of a slice, without the axis of time."""
    return modes[:axis] + modes[axis + 1 :]


def times_name(name: str, arrays: Iterable[str], wanted: str | None) -> str | None:
    """Which of the arrays in a file holds the times: the one asked for, or one with the name of a time."""
    if wanted is not None and wanted not in arrays:
        raise StreamError(f"{name} holds no array {wanted!r} for the times: it holds {', '.join(arrays)}")
    return wanted or next((key for key in arrays if key.lower() in TIME_NAMES), None)


def usable_times(array: NDArray[Any], length: int) -> NDArray[Any] | None:
    """Times from an array, if they are one per slice and of a type that has an order."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size == length and flat.dtype.kind in "iufMU" else None
