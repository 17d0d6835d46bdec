"""Rows of a long table as batches of columns, whatever the format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra, left_out
from undertow.sources.formats.counted import Counted
from undertow.sources.options import SourceOptions

MAX_COLUMNS = 2**14
MAX_LABEL_BYTES = 2**16


def check_number_of_columns(count: int, name: str) -> None:
    """Refuse more columns than can be parsed in little memory: each takes some ten kilobytes, whatever it holds."""
    if count > MAX_COLUMNS:
        raise StreamError(
            f"{name} has {count} columns, more than {MAX_COLUMNS}: write one row per entry, with columns for the time, "
            "the modes and the value"
        )


@dataclass(frozen=True)
class Columns:
    """Which columns hold what, and whether rows that cannot be used are left out or end the stream."""

    time: str
    modes: tuple[str, ...]
    value: str
    skip_bad: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.time, *self.modes, self.value)


def columns_of(name: str, options: SourceOptions) -> Columns:
    """The columns that were named, all of which are needed."""
    if not (options.time and options.modes and options.value):
        raise StreamError(f"{name} is a table: name its columns, for example time='t', modes='src,dst', value='bytes'")
    columns = Columns(options.time, options.modes, options.value, skip_bad=options.on_bad == "skip")
    if len(set(columns.names)) < len(columns.names):
        raise StreamError(
            f"time, modes and value must be different columns, got {', '.join(columns.names)}: name others"
        )
    return columns


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows.

    Attributes:
        start: a byte, row group or record batch from which reading can begin again.
        offset: number of rows between ``start`` and the first of these.
        times, values: of each row.
        modes: the labels of each row, as dictionary-encoded Arrow arrays of texts.
    """

    start: int
    offset: int
    times: NDArray[Any]
    modes: list[Any]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def after(self, rows: int) -> Batch:
        """Without the first rows."""
        modes = [mode[rows:] for mode in self.modes]
        return Batch(self.start, self.offset + rows, self.times[rows:], modes, self.values[rows:])


class Rows(ABC):
    """A long table."""

    is_pipe = False
    time_zone: str | None = None
    """Of the times read so far, which are in UTC then."""

    def __init__(self, name: str, columns: Columns) -> None:
        self.name, self.columns = name, columns
        self._left_out = Counted()
        self._first_left_out = ""

    @abstractmethod
    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Batches from ``start`` on: 0, or the start of an earlier batch."""

    def close(self) -> None:
        """Release files."""
        return

    def from_row(self, start: int, skip: int) -> Iterator[Batch]:
        """Batches from the row that lies ``skip`` rows after ``start``."""
        for batch in self.batches(start):
            if skip >= len(batch):
                skip -= len(batch)
                continue
            yield batch.after(skip)
            skip = 0

    def bad(self, where: Any, count: int, what: str, remedy: str) -> None:
        """Note that rows at ``where`` are left out, or end the stream; ``where`` tells repeated readings apart."""
        if not self.columns.skip_bad:
            raise StreamError(
                f"{self.name} has {what}: {remedy}, or leave such rows out with --on-bad skip (on_bad='skip')"
            )
        self._left_out.add(where, count)
        self._first_left_out = self._first_left_out or what

    def left_out(self) -> list[str]:
        """The notice about all rows that were left out."""
        count = self._left_out.rows
        return [left_out("row", count, self.name, self._first_left_out)] if count else []

    def check_columns(self, names: Sequence[str]) -> None:
        """One sentence for a column that is missing or there twice, or for a table that is not a long one."""
        check_number_of_columns(len(names), self.name)
        for column in self.columns.names:
            if column not in names:
                raise StreamError(f"{self.name} has no column {column!r}: its columns are {', '.join(names[:30])}")
        for column in self.columns.names:
            if list(names).count(column) > 1:
                raise StreamError(f"{self.name} has two columns {column!r}: rename one of them")

    def batch(self, table: Any, start: int, offset: int = 0) -> Batch:
        """The columns that matter of an Arrow table."""
        table.validate(full=True)  # offsets in damaged files may point anywhere
        table = self._complete(table, (start, offset))
        time, *modes, value = (_one_chunk(table.column(name)) for name in self.columns.names)
        return Batch(start, offset, self._times(time), [self._mode(mode) for mode in modes], self._values(value))

    def _complete(self, table: Any, where: Any) -> Any:
        """The rows that have a time and all labels."""
        compute = import_extra("pyarrow.compute", "table", "A table")
        for name in (self.columns.time, *self.columns.modes):
            column = table.column(name)
            is_time = name == self.columns.time
            missing = compute.is_null(column, nan_is_null=is_time)
            count = compute.sum(missing).as_py() or 0
            if count:
                self.bad((where, name), count, f"rows without {name}", "write one into every row")
                table = table.filter(compute.invert(missing))
        return table

    def _times(self, column: Any) -> NDArray[Any]:
        arrow = import_extra("pyarrow", "table", "A table")
        types, kind = arrow.types, column.type
        if types.is_timestamp(kind) or types.is_date(kind):
            self.time_zone = getattr(kind, "tz", None)
            moments = column.cast(arrow.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(arrow.int64())
            return np.asarray(moments.to_numpy(zero_copy_only=False)).astype("datetime64[us]")
        if types.is_integer(kind) or types.is_floating(kind):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        if any(check(kind) for check in (types.is_string, types.is_large_string, types.is_dictionary, types.is_time)):
            texts = encoded(column)
            return mapped(texts, {text: text for text in texts.dictionary.to_pylist()}, object)
        raise StreamError(f"{self.columns.time} of {self.name} must hold numbers, dates or texts, got {kind}")

    def _mode(self, column: Any) -> Any:
        texts = encoded(column)
        compute = import_extra("pyarrow.compute", "table", "A table")
        longest = compute.max(compute.binary_length(texts.dictionary)).as_py() or 0
        if longest > MAX_LABEL_BYTES:
            raise StreamError(
                f"{self.name} has a label of {longest} bytes, more than {MAX_LABEL_BYTES}: name other columns as modes"
            )
        return texts

    def _values(self, column: Any) -> NDArray[np.float64]:
        arrow = import_extra("pyarrow", "table", "A table")
        types, kind = arrow.types, column.type
        known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        if not any(check(kind) for check in known):
            raise StreamError(f"{self.columns.value} of {self.name} must hold numbers, got {kind}: name another column")
        numbers = column.cast(arrow.float64(), safe=False).fill_null(float("nan"))
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def encoded(column: Any) -> Any:
    """Texts as a dictionary-encoded Arrow array; one that is encoded already is not decoded, to save memory."""
    arrow = import_extra("pyarrow", "table", "A table")
    if arrow.types.is_dictionary(column.type):
        used, indices = np.unique(column.indices.to_numpy(zero_copy_only=False), return_inverse=True)
        texts = encoded(column.dictionary.take(arrow.array(used)))  # once more: two may be the same text
        return arrow.DictionaryArray.from_arrays(texts.indices.take(arrow.array(indices)), texts.dictionary)
    return column.cast(import_extra("pyarrow", "table", "A table").string()).dictionary_encode()


def mapped(texts: Any, meaning: Mapping[str, Any], dtype: type) -> NDArray[Any]:
    """What each text of a dictionary-encoded array means; a text without meaning is a KeyError."""
    meanings: NDArray[Any] = np.array([meaning[text] for text in texts.dictionary.to_pylist()], dtype=dtype)
    return np.asarray(meanings[texts.indices.to_numpy(zero_copy_only=False)])


def _one_chunk(column: Any) -> Any:
    combined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return combined.chunk(0) if hasattr(combined, "num_chunks") and combined.num_chunks == 1 else combined
