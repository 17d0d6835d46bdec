"""From rows to slices, for many streams.

A row says what one entry of one slice of one stream is. A slice is complete

- `until` a time, where the engine has a watermark: nothing of that time or before it is accepted any more;
- without one, as soon as its stream has a row of a later time.

Rows of a stream whose slice of that time is complete already are late: they are counted, and dropped. Several rows for
one entry count as their mean, which is the row itself where it was delivered twice. Values that are not finite are
missing; an entry without a row is missing too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
NEVER = int(np.iinfo(np.int64).min)
"""Time of the last slice of a stream that has had none."""
COLUMNS = {"stream": np.int64, "time": np.int64, "entry": np.int64, "value": np.float64}


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of equal length.

    Attributes:
        stream: Its number.
        time: Of the slice.
        entry: Which one of a slice, counted row by row.
        value: What was observed.
    """

    stream: Numbers
    time: Numbers
    entry: Numbers
    value: NDArray[np.float64]

    @classmethod
    def none(cls) -> Rows:
        """No rows."""
        return cls(*(np.zeros(0, kind) for kind in COLUMNS.values()))

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, which: Any) -> Rows:
        return Rows(*(getattr(self, name)[which] for name in COLUMNS))

    def __add__(self, more: Rows) -> Rows:
        return Rows(*(np.concatenate([getattr(self, name), getattr(more, name)]) for name in COLUMNS))


@dataclass(frozen=True, eq=False)
class Slices:
    """Complete slices, by stream and time.

    Attributes:
        stream: Of each (k,).
        time: Of each (k,).
        turn: 0 for the first of its stream here, 1 for the second, … (k,).
        values: NaN where nothing was observed (k, entries).
    """

    stream: Numbers
    time: Numbers
    turn: Numbers
    values: NDArray[np.float64]


def late(rows: Rows, last: Numbers) -> NDArray[np.bool_]:
    """Which rows are of a slice that is complete; `last` is the time of the last such slice of every stream."""
    found: NDArray[np.bool_] = rows.time <= last[rows.stream]
    return found


def closed(rows: Rows, streams: int, until: int | None) -> NDArray[np.bool_]:
    """Which rows belong to slices that are complete.

    Args:
        rows: None of them late.
        streams: How many there are.
        until: The watermark; None where there is none.
    """
    if until is not None:
        return rows.time <= until
    newest = np.full(streams, NEVER)
    np.maximum.at(newest, rows.stream, rows.time)
    found: NDArray[np.bool_] = rows.time < newest[rows.stream]
    return found


def slices(rows: Rows, entries: int) -> Slices:
    """All rows, as slices with this many entries.

    Examples:
        >>> rows = Rows(*map(np.array, ([0, 0, 0], [20, 10, 10], [0, 0, 1], [3.0, 1.0, 2.0])))
        >>> slices(rows, 2).values
        array([[ 1.,  2.],
               [ 3., nan]])
    """
    order = np.lexsort((rows.time, rows.stream))
    rows = rows[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (np.diff(rows.stream) != 0) | (np.diff(rows.time) != 0)
    number, stream, time = np.cumsum(first) - 1, rows.stream[first], rows.time[first]
    count = len(stream)
    known = np.isfinite(rows.value)
    place = (number * entries + rows.entry)[known]
    sums = np.bincount(place, rows.value[known], count * entries)
    counts = np.bincount(place, minlength=count * entries)
    values = np.divide(sums, counts, out=np.full(count * entries, np.nan), where=counts > 0)
    begins = np.searchsorted(stream, stream)  # of the slices of the same stream
    return Slices(stream, time, np.arange(count) - begins, values.reshape(count, entries))
