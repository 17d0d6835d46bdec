"""A slice of which only some entries are known, as a list of them: the door for sparse data.

What is stored is what was observed, explicit zeros included; everything else is missing, not 0. No array here is as
large as the slice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice

_LARGEST_MODE = 2**31 - 1
_SMALLEST_BUCKET = 64


@dataclass(frozen=True, eq=False)
class Entries:
    """The observed entries of one slice. Arrays are copied, checked and read-only.

    Args:
        indices: one array of whole numbers per mode, all as long as `values`: where each entry lies.
        values: real numbers; NaN means "not observed, but tell me what it should be".
        shape: sizes of the modes.
        time: the caller's label for this time step, carried along untouched.

    >>> import undertow as ut
    >>> x = ut.Entries(([0, 7, 7], [1, 0, 2]), [1.5, 0.0, -2.0], shape=(1000, 500))
    >>> x.values.size, x.shape
    (3, (1000, 500))
    """

    indices: tuple[Any, ...]
    """int32."""
    values: Any
    """0 where not observed."""
    shape: tuple[int, ...]
    time: Any = None
    mask: NDArray[np.bool_] = field(init=False, repr=False)
    """True where observed."""
    order: NDArray[np.int64] = field(init=False, repr=False)
    """The order in which the entries are sorted by their indices, the biggest mode first."""

    def __post_init__(self) -> None:
        shape = _checked_shape(self.shape)
        values = _checked_values(self.values)
        indices = checked_indices(self.indices, shape)
        for mode, index in enumerate(indices):
            if index.shape != values.shape:
                raise ValueError(
                    f"indices of mode {mode} must be as many as the {values.size} values in one row, "
                    f"got shape {index.shape}: give one index per mode for every value"
                )
        observed = ~np.isnan(values)
        values[~observed] = 0
        _check_finite(values, indices)
        made = {"shape": shape, "values": values, "indices": indices, "mask": observed, "order": _order(indices, shape)}
        for array in (values, observed, made["order"], *indices):
            array.flags.writeable = False
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def share(self) -> float:
        """Observed entries over all entries of the slice."""
        return int(self.mask.sum()) / math.prod(self.shape)

    def to_slice(self) -> Slice:
        """The same as an array of the whole slice, and its mask."""
        values = np.zeros(self.shape, self.values.dtype)
        mask = np.zeros(self.shape, np.bool_)
        values[self.indices], mask[self.indices] = self.values, self.mask
        values.flags.writeable = mask.flags.writeable = False
        return Slice(values, mask, self.time)


def is_sparse(x: Any) -> bool:
    """Whether `x` lists entries. SciPy's matrices and arrays are told by their look: SciPy need not be installed."""
    return isinstance(x, Entries) or hasattr(x, "tocoo")


def as_entries(x: Any, mask: Any = None, *, shape: Sequence[int] | None = None) -> Entries:
    """Turn what `is_sparse` into :class:`Entries`, or say in one sentence why that cannot be done."""
    if mask is not None:
        raise ValueError(
            "mask must not be given with a sparse x, whose stored entries are the observed ones: "
            "leave out the entries that are not observed"
        )
    actual = tuple(int(size) for size in x.shape)
    wanted = actual if shape is None else tuple(int(size) for size in shape)
    if actual != wanted:
        raise ValueError(
            f"x must have shape {wanted} like the stream before it, got {actual}: "
            "start a new model for slices of another shape"
        )
    if isinstance(x, Entries):
        return x
    listed = x.tocoo()
    indices = getattr(listed, "coords", None)
    return Entries(tuple((listed.row, listed.col) if indices is None else indices), listed.data, actual)


def bucket(count: int) -> int:
    """Room for so many entries: a power of two, or one and a half. Few sizes, so that few programs are compiled."""
    room = _SMALLEST_BUCKET
    while room < count:
        room *= 2
    return room * 3 // 4 if room * 3 // 4 >= max(count, _SMALLEST_BUCKET) else room


def padded(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The array with zeros behind it."""
    return np.pad(array, (0, room - array.size))


def by_size(shape: tuple[int, ...]) -> list[int]:
    """The modes, biggest first."""
    return sorted(range(len(shape)), key=lambda mode: -shape[mode])


def fibres(indices: Sequence[NDArray[np.int32]], shape: tuple[int, ...]) -> list[NDArray[np.int32]]:
    """For each of the N − 2 biggest modes: the first entry that has the same indices on all smaller modes."""
    found = []
    modes = by_size(shape)
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


def checked_indices(indices: Any, shape: tuple[int, ...]) -> tuple[NDArray[np.int32], ...]:
    """One fresh array of whole numbers per mode, all within the slice."""
    if not isinstance(indices, (tuple, list)) or len(indices) != len(shape):
        got = f"{len(indices)} of them" if isinstance(indices, (tuple, list)) else type(indices).__name__
        raise ValueError(
            f"indices must be a tuple of {len(shape)} arrays, one per mode of shape {shape}, got {got}: "
            "write (rows, columns) for a matrix"
        )
    checked = []
    for mode, (index, size) in enumerate(zip(indices, shape, strict=True)):
        array = np.asarray(index)
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(
                f"indices of mode {mode} must be whole numbers, got dtype {array.dtype}: convert them with astype(int)"
            )
        if array.size and (array.min() < 0 or array.max() >= size):
            wrong = array.min() if array.min() < 0 else array.max()
            raise ValueError(
                f"indices of mode {mode} must be at least 0 and below its size {size}, got {wrong}: "
                "count from 0, and give the shape of the whole slice"
            )
        checked.append(np.array(array, np.int32))
    return tuple(checked)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be a tuple of whole numbers, got {shape!r}.") from None
    if not sizes or min(sizes) < 1 or max(sizes) > _LARGEST_MODE:
        raise ValueError(f"shape must name at least one mode, each of size 1 to {_LARGEST_MODE}, got {sizes}.")
    return sizes


def _checked_values(values: Any) -> NDArray[np.floating[Any]]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"values must be real numbers, got dtype {array.dtype}: convert them to float first")
    if array.ndim != 1:
        raise ValueError(f"values must be in one row, got shape {array.shape}: use values.ravel()")
    narrow = array.dtype.itemsize <= (4 if array.dtype.kind == "f" else 2)  # float32 holds every integer of two bytes
    with np.errstate(over="ignore"):
        return np.array(array, np.float32 if narrow else np.float64)


def _check_finite(values: NDArray[np.floating[Any]], indices: tuple[NDArray[np.int32], ...]) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        first = tuple(int(index[infinite[0]]) for index in indices)
        raise ValueError(
            f"values must be finite, got {infinite.size} infinite of {values.size}, the first at {first}: "
            "leave them out if they are missing"
        )


def _order(indices: tuple[NDArray[np.int32], ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The sorting order; entries that are there twice are refused."""
    modes = by_size(shape)
    order: NDArray[np.int64]
    if math.prod(shape) < 2**63:
        flat = np.ravel_multi_index([indices[mode] for mode in modes], [shape[mode] for mode in modes])
        order = np.argsort(flat, kind="stable")
        same = flat[order[1:]] == flat[order[:-1]]
    else:
        order = np.lexsort([indices[mode] for mode in reversed(modes)])
        same = np.all([index[order[1:]] == index[order[:-1]] for index in indices], axis=0)
    if same.any():
        where = tuple(int(index[order[1:][same][0]]) for index in indices)
        raise ValueError(
            f"entries must be there once each, got {int(same.sum())} repeated, the first at {where}: "
            "add them up or keep the last (scipy.sparse: sum_duplicates())"
        )
    return order
