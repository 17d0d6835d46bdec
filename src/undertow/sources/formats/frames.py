"""Data frames in memory: wide (one row per time, one column per entry) or long (one row per entry and time)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra, shortened
from undertow.sources.formats.arrays import TIME_NAMES
from undertow.sources.formats.arrow import ArrowRows
from undertow.sources.formats.base import Source
from undertow.sources.formats.labelled import LabelledArray
from undertow.sources.formats.rows import columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions
from undertow.sources.times import parse_time

NAME = "the frame"
_NO_DATE = object()


@dataclass(frozen=True, eq=False)
class Held:
    """A frame with its index among the columns, as the two libraries have it.

    Attributes:
        frame: Of pandas or polars.
        names: Of all columns.
        numbers: Those which hold numbers.
        dated: Those which hold dates.
        index: The column that was the index, if it can be time.
        nameless: That column, if the index had no name: it is the time or nothing.
        title: What messages call it.
    """

    frame: Any
    names: tuple[Any, ...]
    numbers: frozenset[Any]
    dated: frozenset[Any]
    index: Any = None
    nameless: frozenset[Any] = frozenset()
    title: str = NAME

    def time(self, wanted: str | None) -> Any:
        """The column of the times: the one asked for, the index, the only one of dates, or one with such a name."""
        if wanted is not None:
            found = [name for name in self.names if wanted in (name, _last(name))]
            if not found:
                raise StreamError(f"{self.title} has no column {wanted!r}: its columns are {_listed(self.names)}")
            return found[0]
        named = [name for name in self.names if str(name).lower() in TIME_NAMES]
        for guesses in ([] if self.index is None else [self.index], sorted(self.dated, key=str), named):
            if len(guesses) == 1:
                return guesses[0]
        return None


def open_frame(frame: Any, options: SourceOptions, title: str = NAME) -> Source:
    """A frame of pandas or polars; messages call it by its title."""
    held = _held(frame, title)
    found = _found(held, options)
    if found is None:
        time = held.time(options.time)
        numbers = [name for name in held.names if name in held.numbers - held.nameless and name != time]
        return _wide(held, time, numbers, options)
    return _long(held, replace(options, time=found[0], modes=found[1], value=found[2]))


def columns_found(frame: Any, options: SourceOptions, title: str = NAME) -> tuple[str, tuple[str, ...], str] | None:
    """Which columns of a long frame hold time, labels and values, as far as that was not said; None for a wide one.

    Raises:
        StreamError: That is not clear.
    """
    return _found(_held(frame, title), options)


def _held(frame: Any, title: str) -> Held:
    made = _of_polars(frame) if type(frame).__module__.startswith("polars") else _of_pandas(frame)
    return replace(made, title=title)


def _found(held: Held, options: SourceOptions) -> tuple[str, tuple[str, ...], str] | None:
    if twice := sorted(name for name, count in Counter(map(str, held.names)).items() if count > 1):
        raise StreamError(f"{held.title} has two columns of the same name, {_listed(twice)}: rename one")
    time = held.time(options.time)
    others = [name for name in held.names if name != time and name not in held.nameless]
    texts = [name for name in others if name not in held.numbers]
    numbers = [name for name in others if name in held.numbers]
    if not len(held.frame):
        raise StreamError(f"{held.title} has no rows: give at least one time")
    if options.modes is None and options.value is None and not texts:
        return None
    modes = options.modes or tuple(str(name) for name in texts)
    left = [name for name in numbers if str(name) not in modes]
    value = options.value or (str(left[0]) if len(left) == 1 else None)
    if time is None or not modes or value is None:
        raise StreamError(
            f"{held.title} has the columns {_listed(held.names)}, and which of them hold time, labels and values is "
            f"not clear: name them with time=…, modes=… and value=…, or leave out what is no number{_odd(held, texts)}"
        )
    return str(time), modes, value


def _odd(held: Held, texts: list[Any]) -> str:
    """The first cell that is no number in a column where most are, if there is one."""
    for name in texts:
        cells = list(held.frame[name])
        odd = [row for row, cell in enumerate(cells) if isinstance(cell, str) and not _is_number(cell)]
        if odd and 2 * len(odd) < len(cells):
            return f", such as {cells[odd[0]][:40]!r} in row {odd[0]} of {_last(name)!r}"
    return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _wide(held: Held, time: Any, numbers: list[Any], options: SourceOptions) -> Source:
    """One column per entry; several levels of columns are modes."""
    if options.duplicates is not None:
        raise StreamError(f"duplicates is for long tables, and {held.title} is a wide one: leave it out")
    xarray = import_extra("xarray", "pandas", "A wide frame")
    if not numbers:
        raise StreamError(f"{held.title} has no columns of numbers: one per entry is needed, or long form with value=…")
    pandas = type(held.frame).__module__.startswith("pandas")
    values = _pandas_matrix(held.frame, numbers) if pandas else _polars_matrix(held.frame, numbers)
    times, zone = (None, None) if time is None else _times(held.frame[time], pandas, held.title)
    array = xarray.DataArray(values, dims=("time", "column"), coords={"column": [_label(name) for name in numbers]})
    if pandas and held.frame.columns.nlevels > 1:
        array = _levels(xarray, held.frame.columns, values, numbers)
    name = "time" if time is None else _last(time) or "time"
    array = array.rename({"time": name}) if name not in array.dims else array
    if times is not None:
        array = array.assign_coords({name: times})
    source = LabelledArray(lambda: array.to_dataset(name="frame"), _short(held), "frame", replace(options, time=name))
    source.time_zone = zone
    return source


def _levels(xarray: Any, columns: Any, values: NDArray[Any], numbers: list[Any]) -> Any:
    """(T, …) with one mode per level of the columns, NaN where a combination has no column."""
    levels = [list(dict.fromkeys(name[n] for name in numbers)) for n in range(columns.nlevels)]
    places = tuple(np.array([level.index(name[n]) for name in numbers]) for n, level in enumerate(levels))
    full = np.full((len(values), *map(len, levels)), np.nan)
    np.moveaxis(full, 0, -1)[places] = values.T
    dims = [str(name) if name is not None else f"mode_{n + 1}" for n, name in enumerate(columns.names)]
    return xarray.DataArray(full, dims=("time", *dims), coords=dict(zip(dims, levels, strict=True)))


def _long(held: Held, options: SourceOptions) -> Source:
    arrow = import_extra("pyarrow", "table", "A frame in long form")
    if type(held.frame).__module__.startswith("polars"):
        table = held.frame.to_arrow()
    else:
        frame = held.frame.set_axis([str(_last(name)) for name in held.names], axis=1)
        wanted = dict.fromkeys([options.time, *(options.modes or ()), options.value])
        table = arrow.Table.from_pandas(frame[[name for name in wanted if name in frame]], preserve_index=False)
    rows = ArrowRows(_Batches(table), columns_of(NAME, options))  # type: ignore[arg-type]
    source = open_table(rows, options, rows)
    source.time_zone = getattr(table.schema.field(str(options.time)).type, "tz", None)
    return source


class _Batches:
    """A table of Arrow in memory, as if it were a file."""

    def __init__(self, table: Any) -> None:
        self.name, self.schema, self._table = NAME, table.schema, table

    def batches(self, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Record batches from number ``start`` on."""
        return (pair for pair in enumerate(self._table.to_batches(max_chunksize=2**16)) if pair[0] >= start)


def _of_pandas(frame: Any) -> Held:
    from pandas import DatetimeIndex, RangeIndex
    from pandas.api.types import (
        is_bool_dtype,
        is_complex_dtype,
        is_datetime64_any_dtype,
        is_integer_dtype,
        is_numeric_dtype,
    )

    nameless: frozenset[Any] = frozenset()
    index, counts = None, isinstance(frame.index, RangeIndex) and frame.index.name is None
    if not counts:
        names = [name for name in frame.index.names if name is not None]
        single = frame.index.nlevels == 1
        if single and not names and not isinstance(frame.index, DatetimeIndex):
            known = [is_datetime64_any_dtype(kind) or not is_numeric_dtype(kind) for kind in frame.dtypes]
            if "time" in frame.columns or (is_integer_dtype(frame.index) and any(known)):
                return _of_pandas(frame.reset_index(drop=True))  # the time is a column: a filter left such an index
        if single and not names:
            frame = frame.rename_axis("time")
            levels = frame.columns.nlevels
            nameless = frozenset(["time" if levels == 1 else ("time", *[""] * (levels - 1))])
        elif len(names) < frame.index.nlevels:
            raise StreamError(f"{NAME} has levels of its index without a name: name them with rename_axis")
        if single:
            levels = frame.columns.nlevels
            index = frame.index.name if levels == 1 else (frame.index.name, *[""] * (levels - 1))
        frame = frame.reset_index()
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    real = {n for n, kind in kinds.items() if is_numeric_dtype(kind) and not is_complex_dtype(kind)}
    numbers = frozenset(real | {n for n, kind in kinds.items() if is_bool_dtype(kind)})
    dated_columns = frozenset(n for n, kind in kinds.items() if is_datetime64_any_dtype(kind))
    return Held(frame, tuple(frame.columns), numbers, dated_columns, index, nameless)


def _of_polars(frame: Any) -> Held:
    import polars

    if isinstance(frame, polars.LazyFrame):
        raise StreamError("source must be in memory, got a polars.LazyFrame: use collect()")
    kinds = frame.schema
    numbers = frozenset(n for n, kind in kinds.items() if kind.is_numeric() or kind == polars.Boolean)
    dated = frozenset(n for n, kind in kinds.items() if kind in (polars.Date, polars.Datetime))
    return Held(frame, tuple(frame.columns), numbers, dated)


def _pandas_matrix(frame: Any, numbers: list[Any]) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = frame[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    return matrix


def _polars_matrix(frame: Any, numbers: list[Any]) -> NDArray[np.float64]:
    import polars

    return np.asarray(
        frame.select([frame.get_column(name) for name in numbers])
        .cast(polars.Float64)
        .fill_null(float("nan"))
        .to_numpy()
    )


def _short(held: Held) -> str:
    return "frame" if held.title == NAME else held.title


def _times(column: Any, pandas: bool, title: str) -> tuple[NDArray[Any], str | None]:
    """The times, in UTC where they have a zone, and its name."""
    if pandas:
        zone = getattr(column.dtype, "tz", None)
        if zone is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        if column.isna().any():
            raise StreamError(f"{title} has rows without a time: leave them out, for example with dropna")
        values = column.to_numpy()
        if values.dtype.kind == "O" and any(isinstance(one, datetime) for one in values):
            return _of_objects(values, title)
        return _plain(values), None if zone is None else str(zone)
    zone = getattr(column.dtype, "time_zone", None)
    if zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if column.null_count():
        raise StreamError(f"{title} has rows without a time: leave them out, for example with drop_nulls")
    values = column.to_numpy()
    return _plain(values), zone


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers and dates as they are; texts that are dates as dates, as in files."""
    if values.dtype.kind in "iufM":
        return values
    texts = values.astype(str)
    read = [parse_time(text) for text in texts.tolist()]
    return np.array(read, "datetime64[us]") if all(isinstance(one, np.datetime64) for one in read) else texts


def _of_objects(values: NDArray[Any], title: str) -> tuple[NDArray[Any], str | None]:
    """Dates of Python, one by one."""
    zones = {one.tzinfo if isinstance(one, datetime) else _NO_DATE for one in values}
    if _NO_DATE in zones:
        raise StreamError(f"{title} has dates among its times, and what is no date: make all of them dates")
    if None in zones and len(zones) > 1:
        raise StreamError(f"{title} has times with a time zone and times without: give all of them one, or none")
    zone = next(iter(zones))
    plain = [one if zone is None else one.astimezone(UTC).replace(tzinfo=None) for one in values]
    return np.array(plain, "datetime64[us]"), None if zone is None else str(zone) if len(zones) == 1 else "UTC"


def _label(name: Any) -> Any:
    return name if isinstance(name, (int, float, str)) else str(name)


def _last(name: Any) -> Any:
    """The name of what was the index, in a frame with several levels of columns."""
    return name if not isinstance(name, tuple) else next((part for part in name if part != ""), "time")


def _listed(names: Any) -> str:
    """Names of columns in a message, on one line whatever is in them."""
    return shortened([repr(_last(name)) for name in names])
