"""Arrow IPC, from a file or a pipe: slices as nested lists, or the rows of a long table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import check_slice_shape, import_extra
from undertow.sources.formats.arrays import TIME_NAMES
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.formats.history import RunningDigest
from undertow.sources.formats.rows import Batch, Columns, Rows, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions, first_bytes
from undertow.sources.times import parse_time, to_json


class ArrowFile:
    """Either of the two IPC formats, opened again for each reading."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        with self._reader() as reader:
            self.schema = reader.schema

    def batches(self, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Record batches from number ``start`` on."""
        with self._reader() as reader:
            if hasattr(reader, "num_record_batches"):
                for number in range(start, reader.num_record_batches):
                    yield number, _validated(reader.get_batch(number))
            else:
                yield from (pair for pair in enumerate(map(_validated, reader)) if pair[0] >= start)

    def first(self) -> tuple[int, Any] | None:
        """The first batch."""
        return next(self.batches(), None)

    def identity(self) -> str:
        """Digest of the beginning."""
        return first_bytes(self._path)

    def _reader(self) -> Any:
        arrow, ipc = (import_extra(module, "table", "An Arrow file") for module in ("pyarrow", "pyarrow.ipc"))
        with self._path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        opened = arrow.OSFile(str(self._path), "rb")
        return ipc.open_file(opened) if is_file else ipc.open_stream(opened)


class ArrowPipe:
    """A pipe, which can be read only once; to resume, it must be sent again from its beginning."""

    def __init__(self, file: Any, name: str) -> None:
        reader = import_extra("pyarrow.ipc", "table", "Arrow on standard input").open_stream(file)
        self.name, self.schema = name, reader.schema
        self._batches: Iterator[tuple[int, Any]] = enumerate(map(_validated, reader))

    def batches(self, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Record batches from number ``start`` on."""
        return (pair for pair in self._batches if pair[0] >= start)

    def first(self) -> tuple[int, Any] | None:
        """The first batch, which stays among the batches."""
        pair = next(self._batches, None)
        if pair is not None:
            self._batches = chain([pair], self._batches)
        return pair

    def identity(self) -> str:
        """Nothing is known of a pipe beforehand."""
        return ""


class ArrowSlices(Source):
    """One row a slice: a column ``values`` of lists of lists, and perhaps one of times."""

    format = "arrow"

    def __init__(self, opened: ArrowFile | ArrowPipe, options: SourceOptions) -> None:
        names = opened.schema.names
        self._value = options.value or "values"
        if self._value not in names:
            raise StreamError(
                f"{opened.name} has no column {self._value!r} of nested lists, it has {', '.join(names)}: "
                "name that column with value, or the columns of a long table with time, modes and value"
            )
        if options.time is not None and options.time not in names:
            raise StreamError(f"{opened.name} has no column {options.time!r}: its columns are {', '.join(names)}")
        self._time = options.time or next((name for name in names if name.lower() in TIME_NAMES), None)
        self._opened = opened
        first = opened.first()
        if first is None or not first[1].num_rows:
            raise StreamError(f"{opened.name} holds no slices: check what wrote it")
        super().__init__(opened.name, self._dense(first[1], 0).shape)
        self.time_name, self.is_pipe = self._time or "time", isinstance(opened, ArrowPipe)

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        if isinstance(self._opened, ArrowPipe):
            yield from self._read_pipe(self._opened, position)
            return
        start, skip = (count_in(position, key, self.name) for key in ("batch", "row"))
        for number, batch in self._opened.batches(start):
            for row in range(skip, batch.num_rows):
                after: dict[str, JSON] = {"batch": number, "row": row + 1}
                yield Raw(self._time_of(batch, row), after, partial(self._dense, batch, row))
            skip = 0

    def _read_pipe(self, pipe: ArrowPipe, position: Mapping[str, JSON] | None) -> Iterator[Raw]:
        """Every slice from the beginning of the pipe: those that were done are compared, not passed on."""
        history = RunningDigest(self.name, position, is_pipe=True)
        if position is not None and not history.is_known:
            self.notices.append(history.unchecked())
        batch_done, row_done = (count_in(position, key, self.name) for key in ("batch", "row"))
        done = count_in(position, "slices", self.name) if history.is_known else None
        slices = 0
        for number, batch in pipe.batches():
            for row in range(batch.num_rows):
                time, values = self._time_of(batch, row), self._dense(batch, row)
                history.add(json.dumps(to_json(time)).encode(), values.tobytes())
                slices += 1
                if slices == done:
                    history.check()
                if slices > done if done is not None else (number, row) >= (batch_done, row_done):
                    marks: dict[str, JSON] = {"batch": number, "row": row + 1, "slices": slices, **history.marks()}
                    yield Raw(time, marks, partial(np.asarray, values))
        if slices < (done or 0):
            raise history.ended_early()

    def identity(self) -> str:  # noqa: D102
        return self._opened.identity()

    def _time_of(self, batch: Any, row: int) -> Any:
        if self._time is None:
            return None
        arrow = import_extra("pyarrow", "table", "An Arrow file")
        scalar = batch.column(self._time)[row]
        if arrow.types.is_timestamp(scalar.type) or arrow.types.is_date(scalar.type):
            moment = scalar.cast(arrow.timestamp("us", getattr(scalar.type, "tz", None)), safe=False)
            return np.datetime64(moment.value, "us") if moment.is_valid else None
        return parse_time(scalar.as_py())

    def _dense(self, batch: Any, row: int) -> NDArray[np.float64]:
        arrow, compute = (import_extra(module, "table", "An Arrow file") for module in ("pyarrow", "pyarrow.compute"))
        cell = batch.column(self._value)[row]
        if not hasattr(cell, "values") or cell.values is None:
            raise StreamError(f"{self._value} of {self._opened.name} must hold a list per slice, got {cell.type}")
        inner, shape = cell.values, [len(cell.values)]
        while arrow.types.is_nested(inner.type):
            sizes = set(compute.list_value_length(inner).to_pylist())
            if len(sizes) != 1 or None in sizes:
                raise StreamError(f"{self._value} of {self._opened.name} must hold lists of equal length in each mode")
            shape.append(sizes.pop())
            inner = inner.flatten()
        check_slice_shape(self._opened.name, tuple(shape))
        numbers = inner.cast(arrow.float64(), safe=False).fill_null(float("nan"))
        return np.asarray(numbers.to_numpy(zero_copy_only=False)).reshape(shape)


class ArrowRows(Rows):
    """Rows of an Arrow file or pipe; a batch starts at a record batch."""

    def __init__(self, opened: ArrowFile | ArrowPipe, columns: Columns) -> None:
        super().__init__(opened.name, columns)
        self._opened, self.is_pipe = opened, isinstance(opened, ArrowPipe)
        self.check_columns(opened.schema.names)

    def batches(self, start: int = 0) -> Iterator[Batch]:  # noqa: D102
        return (self.batch(part, number) for number, part in self._opened.batches(start) if part.num_rows)


def open_arrow(path: Path, options: SourceOptions) -> Source:
    """An IPC file or a saved IPC stream."""
    return _open(ArrowFile(path), options)


def open_arrow_pipe(file: Any, name: str, options: SourceOptions) -> Source:
    """An IPC stream from a pipe."""
    return _open(ArrowPipe(file, name), options)


def _open(opened: ArrowFile | ArrowPipe, options: SourceOptions) -> Source:
    """Slices as nested lists, or the rows of a long table if its columns are named."""
    if options.modes is None:
        return ArrowSlices(opened, options)
    rows = ArrowRows(opened, columns_of(opened.name, options))
    return open_table(rows, options, rows if isinstance(opened, ArrowFile) else None)


def _validated(batch: Any) -> Any:
    batch.validate(full=True)  # offsets in damaged files may point anywhere
    return batch
