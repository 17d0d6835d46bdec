"""Several slices in one: arrays (T, …), labelled arrays along time, frames with one row per time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from undertow.inputs.dense import peek_shape
from undertow.inputs.labels.pandas_frames import pandas_numbers
from undertow.inputs.labels.slices import _is
from undertow.inputs.sparse import is_sparse

TIMES = ("time", "times", "t", "date", "datetime", "timestamp", "frame", "frames")
"""Names that say: this is time."""


def slices_of(X: Any) -> Iterator[Any]:
    """The slices of a stack, refused before the first is learned if it cannot be one.

    Args:
        X: (T, *shape), oldest first; `xarray.DataArray` with time (named so, or with dates along it, or else the first
            dimension); frame of pandas or polars with one row per time; or a list of slices.

    Raises:
        TypeError: A frame has columns that do not hold numbers.
        ValueError: It is no stack.
    """
    if _is(X, "xarray", ("DataArray",)):
        _check_stack(X.shape)
        time = time_dimension(X)
        return (X.isel({time: index}) for index in range(X.sizes[time]))
    if _is(X, "pandas", ("DataFrame",)):
        return _pandas_rows(X)
    if _is(X, "polars", ("DataFrame",)):
        return _polars_rows(X)
    if is_sparse(X):
        raise ValueError("X must be a list of sparse slices, got a single one: use update(x), or [x].")
    _check_stack(peek_shape(X))
    return iter(X) if isinstance(X, Sequence) else (X[index] for index in range(len(X)))


def count_of(X: Any) -> int:
    """How many slices a stack has."""
    return int(X.sizes[time_dimension(X)]) if _is(X, "xarray", ("DataArray",)) else len(X)


def restacked(X: Any, found: list[Any]) -> Any:
    """Results of all slices of a stack as it was: results of labelled slices are labelled.

    Args:
        X: The stack.
        found: For every slice what has its labels.
    """
    if not found:
        raise ValueError("X must hold at least one slice, got none: give one time or more.")
    if _is(X, "xarray", ("DataArray",)):
        time, first = time_dimension(X), found[0]
        kept = {name: one for name, one in X.coords.items() if time in one.dims}
        coords = {name: one for name, one in first.coords.items() if name not in X.coords or time not in X[name].dims}
        values = np.stack([one.values for one in found])
        made = type(X)(values, coords | kept, (time, *first.dims), name=X.name, attrs=X.attrs)
        return made.transpose(*X.dims)
    if _is(X, "pandas", ("DataFrame",)):
        return type(X)(np.stack([one.to_numpy() for one in found]), X.index, found[0].index)
    if _is(X, "polars", ("DataFrame",)):
        import polars

        values = np.stack([one["value"].to_numpy() for one in found])
        return X.with_columns([polars.Series(name, values[:, n]) for n, name in enumerate(found[0]["column"])])
    return np.stack(found)


def time_dimension(X: Any) -> Any:
    """Which dimension of a labelled array is time: named so, or the only one with dates along it, or the first."""
    named = [dim for dim in X.dims if str(dim).lower() in TIMES]
    dated = [dim for dim in X.dims if dim in X.coords and X.coords[dim].dtype.kind == "M"]
    for found in (named, dated):
        if len(found) == 1:
            return found[0]
    return X.dims[0]


def _check_stack(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise ValueError(
            f"X must be a stack of slices, (T, I_1, …), got shape {shape}: use update(x) for a single slice."
        )


def _pandas_rows(X: Any) -> Iterator[Any]:
    """One series per time, with the columns as labels."""
    from pandas import Series

    values = pandas_numbers(X)
    return (Series(row, X.columns, name=time) for row, time in zip(values, X.index, strict=True))


def _polars_rows(X: Any) -> Iterator[Any]:
    """One frame of names and values per time; columns of times are left out."""
    import polars

    timed = [name for name, dtype in X.schema.items() if dtype.is_temporal() or name.lower() in TIMES]
    held = X.select([X.get_column(name) for name in X.columns if name not in timed])
    others = [name for name, dtype in held.schema.items() if not dtype.is_numeric() and dtype != polars.Boolean]
    if others:
        raise TypeError(
            f"column {others[0]!r} of X must hold real numbers, got {held.schema[others[0]]}: leave it out, or give a "
            "table with one row per entry to undertow.clean(X, time=…)."
        )
    names = list(held.columns)
    values = held.cast(polars.Float64).fill_null(float("nan")).to_numpy()
    return (polars.DataFrame({"column": names, "value": row}) for row in values)
