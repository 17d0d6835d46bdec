"""Between the entries of a sparse slice and the window that keeps them: sorted, padded, and back in the given order.

Whole slices go through unchanged. `room` is how many entries of a slice the window has place for, None if it keeps all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.inputs.dense import Slice
from undertow.inputs.sparse import Entries, bucket, fibres, padded
from undertow.model.types import Contaminated, Core, EntryIndex

Piece = Slice | Entries

FOR_ENTRIES = {
    "level": False,
    "noise": "shared",
    "memory": "window",
    "outliers": "contaminated",
    "start": "warm",
}
"""What a model must be where only observed entries are kept."""


def check_for_entries(config: Config) -> None:
    """Refuse settings that need all entries."""
    for name, needed in FOR_ENTRIES.items():
        if getattr(config, name) != needed:
            raise ValueError(
                f"{name} must be {needed!r} where only observed entries are kept, got {getattr(config, name)!r}: "
                "leave it out, or use smaller slices or a shorter window, so that all entries can be kept."
            )


def room_for(piece: Piece, room: int | None) -> int | None:
    """The room that a window needs for this slice and has already."""
    return room if room is None or isinstance(piece, Slice) else max(room, bucket(piece.values.size))


def placed(piece: Piece, room: int | None, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Arrays of a slice as the window has them."""
    if room is None or isinstance(piece, Slice):
        return arrays
    return tuple(padded(array[piece.order], room) for array in arrays)


def entry_index(piece: Piece, room: int | None) -> EntryIndex | None:
    """Where the entries of a slice lie, as the window has them."""
    if room is None or isinstance(piece, Slice):
        return None
    indices = [index[piece.order] for index in piece.indices]
    there: Any = tuple(padded(index, room) for index in indices)
    shared: Any = tuple(padded(fibre, room) for fibre in fibres(indices, piece.shape))
    length: Any = np.asarray(piece.values.size, np.int32)
    return EntryIndex(there, shared, length, piece.shape)


def bare_entry_index(indices: tuple[NDArray[np.int32], ...], shape: tuple[int, ...]) -> EntryIndex:
    """Any entries, padded and in no order: enough to tell what they should be, not to learn from them."""
    room = bucket(indices[0].size)
    there: Any = tuple(padded(index.ravel(), room) for index in indices)
    length: Any = np.asarray(indices[0].size, np.int32)
    return EntryIndex(there, there[: max(0, len(shape) - 2)], length, shape)


def as_given(told: Any, piece: Piece) -> Any:
    """Arrays of a slice in the order in which its entries were given."""
    if isinstance(piece, Slice):
        return told

    def in_order(array: Any) -> Any:
        if not np.ndim(array):
            return array
        given = np.empty(piece.order.size, array.dtype)
        given[piece.order] = array[: piece.order.size]
        return given

    return jax.tree.map(in_order, told)


def shortened(told: Any, shape: tuple[int, ...]) -> Any:
    """Arrays of a slice without empty places, in some shape."""
    count = int(np.prod(shape))
    return jax.tree.map(lambda array: array[:count].reshape(shape) if np.ndim(array) else array, told)


def widened(core: Core, room: int) -> Core:
    """The arrays of a sparse state with place for more entries."""

    def wide(array: Any) -> Any:
        return jax.numpy.pad(array, ((0, 0), (0, room - array.shape[1]))) if array.ndim == 2 else array

    window = replace(core.window, values=wide(core.window.values), mask=wide(core.window.mask))
    window = replace(window, entry_index=jax.tree.map(wide, window.entry_index))
    assert isinstance(core.outliers, Contaminated)
    outliers = replace(core.outliers, probability=wide(core.outliers.probability))
    return replace(core, window=window, outliers=outliers)


def half(piece: Piece, steps: int) -> NDArray[np.bool_]:
    """Which entries belong to the one half of a slice: by a hash of place and time, so the same for every layout."""
    if isinstance(piece, Slice):
        return half_of_all(piece.shape, steps)
    with np.errstate(over="ignore"):
        flat = np.zeros(piece.values.size, np.uint64)
        for index, size in zip(piece.indices, piece.shape, strict=True):
            flat = flat * np.uint64(size) + index.astype(np.uint64)
    return _heads(flat, steps)


def half_of_all(shape: tuple[int, ...], steps: int) -> NDArray[np.bool_]:
    """The same for all entries of a slice."""
    return _heads(np.arange(math.prod(shape), dtype=np.uint64).reshape(shape), steps)


def _heads(flat: NDArray[np.uint64], steps: int) -> NDArray[np.bool_]:
    with np.errstate(over="ignore"):
        mixed = (flat + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(steps) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    chosen: NDArray[np.bool_] = (mixed >> np.uint64(63)) == 1
    return chosen


def memory(config: Config, shape: tuple[int, ...], room: int) -> tuple[int, int]:
    """Bytes that a state of observed entries keeps, about, and that a step works in: per entry, and per row."""
    size = 8 if config.dtype == "float64" else 4
    rank, entries, rows = config.max_rank, config.window * room, sum(shape) + config.window
    kept = entries * (2 * size + 1 + 4 * (2 * len(shape) - 1)) + 2 * rows * rank**2 * size
    worked = entries * 14 * size + rows * (6 * rank**2 + 3 * rank * (rank + 1) + len(shape) ** 2 * rank) * size
    return kept, worked
