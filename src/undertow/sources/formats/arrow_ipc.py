"""Arrow IPC, from a file or a pipe: record batches by number, and slices that come as nested lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import check_slice_shape, optional
from undertow.sources.formats.base import Raw, Source, first_bytes, integer, plain_time
from undertow.sources.formats.variables import TIME_NAMES
from undertow.sources.options import Options
from undertow.sources.preparation.times import from_text


class ArrowFile:
    """Either of the two IPC formats, opened anew for each reading."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        with self._reader() as reader:
            self.schema = reader.schema

    def batches(self, place: int = 0) -> Iterator[tuple[int, Any]]:
        """Record batches from number ``place`` on."""
        with self._reader() as reader:
            if hasattr(reader, "num_record_batches"):
                for number in range(place, reader.num_record_batches):
                    yield number, checked(reader.get_batch(number))
            else:
                yield from (pair for pair in enumerate(map(checked, reader)) if pair[0] >= place)

    def identity(self) -> str:
        """Digest of the beginning."""
        return first_bytes(self._path)

    def _reader(self) -> Any:
        ipc, arrow = optional("pyarrow.ipc", "table", "An Arrow file"), optional("pyarrow", "table", "An Arrow file")
        with self._path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        opened = arrow.OSFile(str(self._path), "rb")
        return ipc.open_file(opened) if is_file else ipc.open_stream(opened)


class ArrowPipe:
    """A pipe, which can be read only once; batches that were looked at are kept until they are read."""

    def __init__(self, file: Any, name: str) -> None:
        ipc = optional("pyarrow.ipc", "table", "Arrow on standard input")
        self.name = name
        self._reader = ipc.open_stream(file)
        self.schema = self._reader.schema
        self._kept: list[tuple[int, Any]] = []
        self._number = 0

    def batches(self, place: int = 0) -> Iterator[tuple[int, Any]]:
        """Record batches from number ``place`` on; the pipe must have been sent again from its beginning."""
        while (pair := self._next()) is not None:
            if pair[0] >= place:
                yield pair

    def first(self) -> tuple[int, Any] | None:
        """The first batch, which is not lost by looking at it."""
        pair = self._next()
        if pair is not None:
            self._kept.insert(0, pair)
        return pair

    def identity(self) -> str:
        """Nothing is known of a pipe beforehand."""
        return ""

    def _next(self) -> tuple[int, Any] | None:
        if self._kept:
            return self._kept.pop(0)
        try:
            batch = checked(self._reader.read_next_batch())
        except StopIteration:
            return None
        self._number += 1
        return self._number - 1, batch


class ArrowSlices(Source):
    """One row a slice: a column ``values`` of lists of lists, and perhaps one of times."""

    format = "arrow"

    def __init__(self, opened: ArrowFile | ArrowPipe, options: Options) -> None:
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
        first = opened.first() if isinstance(opened, ArrowPipe) else next(opened.batches(), None)
        if first is None or not first[1].num_rows:
            raise StreamError(f"{opened.name} holds no slices: check what wrote it")
        super().__init__(opened.name, self._dense(first[1], 0).shape)
        self.time_name = self._time or "time"

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        place, skip = integer(self.name, position, "batch"), integer(self.name, position, "row")
        for number, batch in self._opened.batches(place):
            for row in range(skip, batch.num_rows):
                after: dict[str, JSON] = {"batch": number, "row": row + 1}
                yield Raw(self._time_of(batch, row), after, partial(self._dense, batch, row))
            skip = 0

    def identity(self) -> str:  # noqa: D102
        return self._opened.identity()

    def _time_of(self, batch: Any, row: int) -> Any:
        if self._time is None:
            return None
        arrow = optional("pyarrow", "table", "An Arrow file")
        scalar = batch.column(self._time)[row]
        if arrow.types.is_timestamp(scalar.type) or arrow.types.is_date(scalar.type):
            moment = scalar.cast(arrow.timestamp("us", getattr(scalar.type, "tz", None)), safe=False)
            return np.datetime64(moment.value, "us") if moment.is_valid else None
        time = scalar.as_py()
        return from_text(time) if isinstance(time, str) else plain_time(time)

    def _dense(self, batch: Any, row: int) -> NDArray[np.float64]:
        arrow, compute = (optional(module, "table", "An Arrow file") for module in ("pyarrow", "pyarrow.compute"))
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


def checked(batch: Any) -> Any:
    """A record batch whose every offset was looked at: damaged ones may point anywhere."""
    batch.validate(full=True)
    return batch
