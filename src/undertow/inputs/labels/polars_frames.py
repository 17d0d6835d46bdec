"""`polars.DataFrame` and `Series` as slices.

A frame has no index: columns of texts, categories and dates are labels, one mode each. Columns of numbers are one more
mode, unless there is only one of them beside labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.placing import Parsed
from undertow.inputs.labels.tables import levelled, parsed_table, unlabelled


@dataclass(frozen=True, eq=False)
class _Like:
    """Makes a frame with the columns of labels of another."""

    labels: Any
    numbers: tuple[str, ...]
    order: tuple[str, ...]

    def __call__(self, values: NDArray[Any], rows: Any, columns: Any) -> Any:
        import polars

        names = self.numbers if columns is None else [str(label) for (label,) in columns]
        held = values.reshape(len(values), -1)
        frame = {name: held[:, n] for n, name in enumerate(names)}
        if not self.labels.width:
            made = polars.DataFrame(frame)
        elif rows is None:
            made = self.labels.with_columns([polars.Series(name, column) for name, column in frame.items()])
        else:
            pairs = enumerate(self.labels.schema.items())
            labels = [polars.Series(name, _column([row[n] for row in rows])).cast(kind) for n, (name, kind) in pairs]
            made = polars.DataFrame([*labels, *(polars.Series(name, column) for name, column in frame.items())])
        known = [name for name in self.order if name in made.columns]
        return _only(made, [*known, *(name for name in made.columns if name not in self.order)])


@dataclass(frozen=True, eq=False)
class _LikeSeries:
    """Makes a series of the same name."""

    name: str

    def __call__(self, values: NDArray[Any], rows: Any, columns: Any) -> Any:
        import polars

        return polars.Series(self.name, values)


def parsed_polars(x: Any) -> Parsed:
    """A frame, or a series."""
    import polars

    if isinstance(x, polars.LazyFrame):
        raise TypeError("x must be in memory, got a polars.LazyFrame: use x.collect().")
    if isinstance(x, polars.Series):
        return parsed_table(_numbers(x.to_frame())[:, 0], unlabelled(len(x)), None, _LikeSeries(x.name))
    numbers = tuple(name for name, dtype in x.schema.items() if dtype.is_numeric() or dtype == polars.Boolean)
    named = tuple(name for name in x.columns if name not in numbers)
    if not numbers:
        raise TypeError(
            f"x must have columns of numbers, got {dict(x.schema)}: cast them, for example with cast(pl.Float64)."
        )
    labels = _only(x, named)
    rows = levelled(named, [_labels(x[name]) for name in named]) if named else unlabelled(len(x))
    long_form = bool(named) and len(numbers) == 1
    columns = None if long_form else levelled([None], [numbers])
    return parsed_table(_numbers(_only(x, numbers)), rows, columns, _Like(labels, numbers, tuple(x.columns)))


def _numbers(frame: Any) -> NDArray[Any]:
    import polars

    for name, dtype in frame.schema.items():
        if not dtype.is_numeric() and dtype != polars.Boolean:
            raise TypeError(
                f"{name or 'x'} must hold real numbers, got {dtype}: cast it, for example with cast(pl.Float64)."
            )
    single = all(
        dtype in (polars.Float32, polars.Int8, polars.Int16, polars.UInt8, polars.UInt16) for dtype in frame.dtypes
    )
    kind = polars.Float32 if single else polars.Float64
    return np.asarray(frame.cast(kind).fill_null(float("nan")).to_numpy(), np.float32 if single else np.float64)


def _labels(column: Any) -> Any:
    return column.to_numpy() if column.dtype.is_temporal() and column.null_count() == 0 else column.to_list()


def _column(labels: list[Any]) -> Any:
    return np.array(labels) if isinstance(labels[0], (np.datetime64, np.timedelta64)) else labels


def _only(frame: Any, names: Sequence[str]) -> Any:
    """Some columns, by their very names: select would take "*" for all."""
    return frame.select([frame.get_column(name) for name in names])
