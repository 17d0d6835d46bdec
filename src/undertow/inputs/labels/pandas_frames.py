"""`pandas.DataFrame` and `Series` as slices: index and columns, and the levels of a `MultiIndex`, are modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.placing import Parsed
from undertow.inputs.labels.tables import Axis, levelled, parsed_table, unlabelled


@dataclass(frozen=True, eq=False)
class _Like:
    """Makes a frame, or a series, with the index of another."""

    index: Any
    columns: Any
    name: Any

    def __call__(self, values: NDArray[Any], rows: Any, columns: Any) -> Any:
        import pandas

        index = self.index if rows is None else _index(rows, self.index.names)
        if self.columns is None:
            return pandas.Series(values, index, name=self.name)
        return pandas.DataFrame(values, index, self.columns if columns is None else _index(columns, self.columns.names))


def parsed_pandas(x: Any) -> Parsed:
    """A frame, or a series."""
    values = pandas_numbers(x)
    if x.ndim == 1:
        return parsed_table(values, _axis(x.index), None, _Like(x.index, None, x.name))
    return parsed_table(values, _axis(x.index), _axis(x.columns), _Like(x.index, x.columns, None))


def pandas_numbers(x: Any) -> NDArray[Any]:
    """The values, NaN where missing, whatever the types of the columns.

    Raises:
        TypeError: A column does not hold real numbers.
    """
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    columns = [(None, x.dtype)] if x.ndim == 1 else list(zip(x.columns, x.dtypes, strict=True))
    for name, dtype in columns:
        if not is_numeric_dtype(dtype) or is_complex_dtype(dtype):
            what = "x" if name is None else f"column {name!r} of x"
            raise TypeError(
                f"{what} must hold real numbers, got dtype {dtype}: leave it out, make it the index if it holds "
                "labels, or convert it with pandas.to_numeric."
            )
    kinds = {dtype for _, dtype in columns}
    single = all(isinstance(kind, np.dtype) and kind.itemsize <= (4 if kind.kind == "f" else 2) for kind in kinds)
    values: NDArray[Any] = x.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return values


def _axis(index: Any) -> Axis:
    """Of rows or columns; plain counting, 0, 1, 2, …, is by position."""
    from pandas import RangeIndex

    if index.nlevels == 1 and isinstance(index, RangeIndex) and index.name is None:
        return unlabelled(len(index))
    levels = [index] if index.nlevels == 1 else [index.get_level_values(n) for n in range(index.nlevels)]
    return levelled(index.names, [_values(level) for level in levels])


def _values(level: Any) -> Any:
    return level.values if isinstance(level.dtype, np.dtype) and level.dtype.kind in "mM" else level


def _index(labels: Any, names: Any) -> Any:
    """An index of all labels of a stream."""
    import pandas

    if len(names) == 1:
        return pandas.Index([label for (label,) in labels], name=names[0], tupleize_cols=False)
    return pandas.MultiIndex.from_tuples(labels, names=names)
