"""Arrays: which of several in a file is read, which axis is time, where the times are; and arrays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_real, shortened
from undertow.sources.formats.base import CHUNK_BYTES, Indexed, along, block_length
from undertow.sources.options import SourceOptions

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


class ArraySource(Indexed):
    """Slices along one axis of an array."""

    format = "array"

    def __init__(self, array: NDArray[Any], name: str, options: SourceOptions, default_axis: int = 0) -> None:
        check_real(name, array.dtype)
        self._array, self._axis = array, axis_number(name, options.time_axis, array.shape, default_axis)
        shape = without(array.shape, self._axis)
        block = block_length(shape, 8, _chunk(array, self._axis), CHUNK_BYTES)
        super().__init__(name, shape, array.shape[self._axis], block=block)

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return along(self._array, self._axis, start, stop)


def _chunk(array: Any, axis: int) -> int:
    """Slices that are stored together, where the array is one of zarr, dask or h5py."""
    chunks = getattr(array, "chunks", None)
    along_axis = chunks[axis] if isinstance(chunks, tuple) and len(chunks) > axis else 1
    return max(along_axis) if isinstance(along_axis, tuple) else int(along_axis)


def open_array(array: Any, options: SourceOptions) -> ArraySource:
    """Anything that is sliced as an array; a masked one of NumPy has NaN where it is masked."""
    if not isinstance(array, np.ndarray) and isinstance(getattr(array, "dtype", None), np.dtype):
        return ArraySource(array, str(getattr(array, "name", None) or "array").strip("/") or "array", options)
    if isinstance(array, np.ma.MaskedArray):
        check_real("the array", array.dtype)
        array = np.ma.filled(array.astype(np.float64), np.nan)
    return ArraySource(np.asarray(array), "array", options)
