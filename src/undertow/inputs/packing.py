"""Between the entries of a sparse slice and the window that keeps them: sorted, padded to a capacity, and back.

Dense slices go through unchanged: for them the capacity is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice
from undertow.inputs.sparse import AnySlice, modes_by_size
from undertow.model.types import EntryIndex

_SMALLEST_CAPACITY = 64


def entry_capacity(count: int) -> int:
    """The capacity for a number of entries: a power of two, or 3/4 of one. Few sizes, so that few programs compile."""
    capacity = _SMALLEST_CAPACITY
    while capacity < count:
        capacity *= 2
    return capacity * 3 // 4 if capacity * 3 // 4 >= max(count, _SMALLEST_CAPACITY) else capacity


def packed(validated: AnySlice, capacity: int | None, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Arrays of a slice as the window has them: sorted by position and padded with zeros."""
    if capacity is None or isinstance(validated, Slice):
        return arrays
    return tuple(_padded(array[validated.order], capacity) for array in arrays)


def unpacked(arrays: Any, validated: AnySlice) -> Any:
    """Arrays of a slice in the order in which its entries were given."""
    if isinstance(validated, Slice):
        return arrays

    def in_order(array: Any) -> Any:
        if not np.ndim(array):
            return array
        given = np.empty(validated.order.size, array.dtype)
        given[validated.order] = array[: validated.order.size]
        return given

    return jax.tree.map(in_order, arrays)


def unpadded(arrays: Any, shape: tuple[int, ...]) -> Any:
    """Arrays of a slice without padding, in some shape."""
    count = int(np.prod(shape))
    return jax.tree.map(lambda array: array[:count].reshape(shape) if np.ndim(array) else array, arrays)


def entry_index(validated: AnySlice, capacity: int | None) -> EntryIndex | None:
    """Where the entries of a slice lie, as the window has them."""
    if capacity is None or isinstance(validated, Slice):
        return None
    indices = [index[validated.order] for index in validated.indices]
    there: Any = tuple(_padded(index, capacity) for index in indices)
    shared: Any = tuple(_padded(fibre, capacity) for fibre in fibres(indices, validated.shape))
    length: Any = np.asarray(validated.values.size, np.int32)
    return EntryIndex(there, shared, length, validated.shape)


def unsorted_entry_index(indices: tuple[NDArray[np.int32], ...], shape: tuple[int, ...]) -> EntryIndex:
    """Any entries, padded: enough to infer what they should be, not to learn from them."""
    capacity = entry_capacity(indices[0].size)
    there: Any = tuple(_padded(index.ravel(), capacity) for index in indices)
    length: Any = np.asarray(indices[0].size, np.int32)
    return EntryIndex(there, there[: max(0, len(shape) - 2)], length, shape)


def fibres(indices: Sequence[NDArray[np.int32]], shape: tuple[int, ...]) -> list[NDArray[np.int32]]:
    """For each of the N − 2 biggest modes: the first entry that has the same indices on all smaller modes."""
    found = []
    modes = modes_by_size(shape)
    for level in range(1, len(modes) - 1):
        order = np.lexsort([indices[mode] for mode in modes[level:]])
        new = np.ones(order.size, np.bool_)
        if order.size:
            new[1:] = np.any([np.diff(indices[mode][order]) != 0 for mode in modes[level:]], axis=0)
        groups = np.empty(order.size, np.int64)
        groups[order] = np.cumsum(new) - 1
        first = np.full(int(new.sum()), order.size, np.int64)
        np.minimum.at(first, groups, np.arange(order.size))
        found.append(first[groups].astype(np.int32))
    return found


def _padded(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    return np.pad(array, (0, capacity - array.size))
