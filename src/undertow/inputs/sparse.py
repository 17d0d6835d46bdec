"""Validation of sparse data: a slice of which only some entries are known, as a list of them.

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

from undertow.inputs.dense import MAX_MODES, Slice, as_slice
from undertow.inputs.fill import fill_values

_LARGEST_MODE = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Entries:
    """The observed entries of one slice. Arrays are copied, validated and read-only.

    Args:
        indices: One array of integers per mode, all as long as `values`: where each entry lies.
        values: Real numbers; NaN means "not observed, but report what it should be".
        shape: Sizes of the modes.

    Attributes:
        indices: As given, int32.
        values: As given, 0 where not observed.
        shape: As given.
        mask: True where observed.
        order: The order in which the entries are sorted by their indices, the biggest mode first.
        filled: Whether well-known fill values were taken as missing.

    Examples:
        >>> import undertow as ut
        >>> x = ut.Entries(([0, 7, 7], [1, 0, 2]), [1.5, 0.0, -2.0], shape=(1000, 500))
        >>> x.values.size, x.shape
        (3, (1000, 500))
    """

    indices: tuple[Any, ...]
    values: Any
    shape: tuple[int, ...]
    mask: NDArray[np.bool_] = field(init=False, repr=False)
    order: NDArray[np.int64] = field(init=False, repr=False)
    filled: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = _validated_shape(self.shape)
        values = _validated_values(self.values)
        indices = validated_indices(self.indices, shape)
        for mode, index in enumerate(indices):
            if index.shape != values.shape:
                raise ValueError(
                    f"indices of mode {mode} must be as many as the {values.size} values in one row, "
                    f"got shape {index.shape}: give one index per mode for every value"
                )
        observed = ~np.isnan(values)
        values[~observed] = 0
        fill = fill_values(values)
        if fill is not None:
            observed &= ~fill
            values[fill] = 0
        _check_finite(values, indices)
        made = {"shape": shape, "values": values, "indices": indices, "mask": observed, "order": _order(indices, shape)}
        object.__setattr__(self, "filled", fill is not None)
        for array in (values, observed, made["order"], *indices):
            array.flags.writeable = False
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def observed_fraction(self) -> float:
        """Observed entries over all entries of the slice."""
        return int(self.mask.sum()) / math.prod(self.shape)

    def to_slice(self) -> Slice:
        """The same as a dense slice."""
        values = np.zeros(self.shape, self.values.dtype)
        mask = np.zeros(self.shape, np.bool_)
        values[self.indices], mask[self.indices] = self.values, self.mask
        values.flags.writeable = mask.flags.writeable = False
        return Slice(values, mask, self.filled)


AnySlice = Slice | Entries
"""A validated slice, dense or sparse."""


def is_sparse(x: Any) -> bool:
    """Whether `x` lists entries. SciPy's arrays are known by their `tocoo`: SciPy need not be installed."""
    return isinstance(x, Entries) or hasattr(x, "tocoo")


def as_entries(x: Any, mask: Any = None, *, shape: Sequence[int] | None = None) -> Entries:
    """Validate a sparse slice.

    Args:
        x: `Entries`, or a matrix or array of scipy.sparse; its stored entries are the observed ones.
        mask: Must be None.
        shape: The shape that the stream has; another one is refused.

    Returns:
        The entries.

    Raises:
        ValueError: A mask is given, or the shape is another one.
    """
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


def as_any_slice(shape: tuple[int, ...], sparse: bool, x: Any, mask: Any = None) -> AnySlice:
    """Validate the next slice of a stream, in the layout of its state.

    Args:
        shape: The shape that the stream has.
        sparse: Whether only observed entries are kept.
        x: The slice, dense or sparse.
        mask: True where observed, if NaN does not say it; for dense slices only.

    Returns:
        `Entries` if only observed entries are kept, else a dense `Slice`.

    Raises:
        TypeError: `x` does not hold real numbers, or is dense where only observed entries are kept.
        ValueError: `x` has another shape, or infinite values.
    """
    if is_sparse(x):
        entries = as_entries(x, mask, shape=shape)
        return entries if sparse else entries.to_slice()
    if sparse:
        raise TypeError(
            f"x must be sparse (undertow.Entries, scipy.sparse) like the stream before it, got {type(x).__name__}: "
            "list its observed entries, or start a new model"
        )
    return as_slice(x, mask, shape=shape)


def modes_by_size(shape: tuple[int, ...]) -> list[int]:
    """The modes, biggest first."""
    return sorted(range(len(shape)), key=lambda mode: -shape[mode])


def validated_indices(indices: Any, shape: tuple[int, ...]) -> tuple[NDArray[np.int32], ...]:
    """Indices as one fresh int32 array per mode, all within the slice; or an error that says which are not."""
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
                f"indices of mode {mode} must be integers, got dtype {array.dtype}: convert them with astype(int)"
            )
        if array.size and (array.min() < 0 or array.max() >= size):
            wrong = array.min() if array.min() < 0 else array.max()
            raise ValueError(
                f"indices of mode {mode} must be at least 0 and below its size {size}, got {wrong}: "
                "count from 0, and give the shape of the whole slice"
            )
        checked.append(np.array(array, np.int32))
    return tuple(checked)


def _validated_shape(shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be a tuple of integers, got {shape!r}.") from None
    if len(sizes) > MAX_MODES:
        raise ValueError(f"shape must have at most {MAX_MODES} modes, got {len(sizes)}: combine some of them.")
    if not sizes or min(sizes) < 1 or max(sizes) > _LARGEST_MODE:
        raise ValueError(f"shape must name at least one mode, each of size 1 to {_LARGEST_MODE}, got {sizes}.")
    return sizes


def _validated_values(values: Any) -> NDArray[np.floating[Any]]:
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
    modes = modes_by_size(shape)
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
