"""Rows of a long table as batches of columns, whatever the format; the formats are in ``table_formats.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import optional


@dataclass(frozen=True)
class Columns:
    """Which columns hold what."""

    time: str
    modes: tuple[str, ...]
    value: str

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.time, *self.modes, self.value)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts: the different ones, and which of them each row has."""

    texts: list[str]
    codes: NDArray[np.int64]

    def mapped(self, table: Mapping[str, int], fail: Any) -> NDArray[np.int64]:
        """The number of each row's text in ``table``."""
        numbers = [table.get(text, -1) for text in self.texts]
        if -1 in numbers:
            fail(self.texts[numbers.index(-1)])
        return np.array(numbers, dtype=np.int64)[self.codes]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows. They begin ``offset`` rows after ``place``, which is something that the format finds again."""

    place: int
    offset: int
    times: NDArray[Any]
    modes: list[Coded]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def after(self, rows: int) -> Batch:
        """Without the first rows."""
        modes = [Coded(mode.texts, mode.codes[rows:]) for mode in self.modes]
        return Batch(self.place, self.offset + rows, self.times[rows:], modes, self.values[rows:])


class Rows(ABC):
    """A long table."""

    def __init__(self, name: str, columns: Columns) -> None:
        self.name, self.columns = name, columns

    @abstractmethod
    def batches(self, place: int = 0) -> Iterator[Batch]:
        """Batches from ``place`` on, 0 or the place of an earlier batch."""

    def close(self) -> None:
        """Let go of files."""
        return

    def from_row(self, place: int, skip: int) -> Iterator[Batch]:
        """Batches from the row that lies ``skip`` rows after ``place``."""
        for batch in self.batches(place):
            if skip >= len(batch):
                skip -= len(batch)
                continue
            yield batch.after(skip)
            skip = 0

    def check_columns(self, names: Sequence[str]) -> None:
        """One sentence for a column that is not there."""
        lacking = [column for column in self.columns.names if column not in names]
        if lacking:
            raise StreamError(f"{self.name} has no column {lacking[0]!r}: its columns are {', '.join(names[:30])}")
        twice = [column for column in self.columns.names if list(names).count(column) > 1]
        if twice:
            raise StreamError(f"{self.name} has two columns {twice[0]!r}: rename one of them")

    def batch(self, table: Any, place: int, offset: int = 0) -> Batch:
        """The columns that matter of an Arrow table."""
        table.validate(full=True)  # offsets in damaged files may point anywhere
        time, *modes, value = (_one_chunk(table.column(name)) for name in self.columns.names)
        return Batch(place, offset, self._times(time), [self._mode(mode) for mode in modes], self._values(value))

    def _times(self, column: Any) -> NDArray[Any]:
        pa = optional("pyarrow", "table", "A table")
        kind = column.type
        if column.null_count:
            raise StreamError(f"{self.name} has rows without {self.columns.time}: leave them out")
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            moments = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
            return np.asarray(moments.to_numpy(zero_copy_only=False)).astype("datetime64[us]")
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            numbers = np.asarray(column.to_numpy(zero_copy_only=False))
            if np.isnan(numbers).any():
                raise StreamError(f"{self.name} has rows whose {self.columns.time} is not a number: leave them out")
            return numbers
        if _is_text(pa, kind) or pa.types.is_time(kind):
            coded = self._coded(column)
            return np.array(coded.texts, dtype=object)[coded.codes]
        raise StreamError(f"{self.columns.time} of {self.name} must hold numbers, dates or texts, got {kind}")

    def _mode(self, column: Any) -> Coded:
        if column.null_count:
            raise StreamError(f"{self.name} has rows without {' or '.join(self.columns.modes)}: leave them out")
        return self._coded(column)

    def _coded(self, column: Any) -> Coded:
        pa = optional("pyarrow", "table", "A table")
        coded = column.cast(pa.string()).dictionary_encode()
        return Coded(coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64))

    def _values(self, column: Any) -> NDArray[np.float64]:
        pa = optional("pyarrow", "table", "A table")
        kinds = pa.types
        known = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
        if not any(check(column.type) for check in known):
            raise StreamError(
                f"{self.columns.value} of {self.name} must hold numbers, got {column.type}: name another column"
            )
        numbers = column.cast(pa.float64(), safe=False).fill_null(float("nan"))
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _one_chunk(column: Any) -> Any:
    combined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return combined.chunk(0) if hasattr(combined, "num_chunks") and combined.num_chunks == 1 else combined


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))
