"""Which of several arrays in one file is meant, and which of its axes is time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.preparation.selecting import shortened

TIME_NAMES = ("time", "times", "t", "date", "datetime", "timestamp", "frame", "frames")


def choose(name: str, candidates: Mapping[str, tuple[int, ...]], variable: str | None, others: str = "") -> str:
    """The variable that was asked for, or the only one; otherwise one sentence that lists them."""
    listed = shortened([f"{key} {'×'.join(map(str, shape))}" for key, shape in sorted(candidates.items())], most=20)
    if variable is not None:
        if variable not in candidates:
            raise StreamError(
                f"{name} holds no array {variable!r} with a time axis: it holds {listed or others or 'none'}"
            )
        return variable
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
        raise StreamError(
            f"time_axis must lie between 0 and {len(shape) - 1} for shape {shape} of {name}, got {number}"
        )
    return number % len(shape)


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of a slice."""
    return shape[:axis] + shape[axis + 1 :]


def usable_times(array: NDArray[Any], length: int) -> NDArray[Any] | None:
    """Times that lie beside the data, if they are one per slice and of a kind that has an order."""
    flat = np.asarray(array).reshape(-1)
    return flat if flat.size == length and flat.dtype.kind in "iufMU" else None
