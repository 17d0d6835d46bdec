"""Long tables, one row an entry (time, a label per mode, value), as a stream of slices.

A first pass finds the labels and the times. Rows in the order of their times are then read as they come; others are
sorted into a temporary file first, with 16 bytes a row.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Label, StreamError
from undertow.sources.errors import MAX_SLICE_ENTRIES, shortened
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.formats.rows import Batch, Rows, mapped
from undertow.sources.options import SourceOptions
from undertow.sources.times import plain_time

_MAX_LABELS = 2**22
_MAX_TIMES = 2**24
_ENTRY = np.dtype([("entry", np.int64), ("value", np.float64)])


class Survey:
    """What a first pass over a table finds: its labels, its times with the number of rows of each, and their order."""

    def __init__(self, rows: Rows) -> None:
        self.labels: list[dict[str, None]] = [{} for _ in rows.columns.modes]
        self.counts: dict[Any, int] = {}
        self.in_order = True
        self.dtype: np.dtype[Any] | None = None
        last: Any = None
        for batch in rows.batches():
            self.dtype = batch.times.dtype if self.dtype is None else np.result_type(self.dtype, batch.times.dtype)
            for known, mode in zip(self.labels, batch.modes, strict=True):
                known.update(dict.fromkeys(mode.dictionary.to_pylist()))
                if len(known) > _MAX_LABELS:
                    raise StreamError(f"{rows.name} has more than {_MAX_LABELS} labels in one mode: name other columns")
            self.in_order = self.in_order and self._continues_order(batch.times, last)
            last = batch.times[-1]
            different, first, counts = np.unique(batch.times, return_index=True, return_counts=True)
            for which in np.argsort(first):  # texts keep the order in which they appear
                time = _key(different[which])
                self.counts[time] = self.counts.get(time, 0) + int(counts[which])
            if len(self.counts) > _MAX_TIMES:
                raise StreamError(
                    f"{rows.name} has more than {_MAX_TIMES} times in {rows.columns.time}: name another column"
                )

    def _continues_order(self, times: NDArray[Any], last: Any) -> bool:
        """Whether the rows are in order so far; for texts, whether the rows of each are together."""
        if times.dtype != object:
            return bool((times[1:] >= times[:-1]).all() and (last is None or times[0] >= last))
        heads = [time for time, _ in _runs(times)]
        fresh = heads[1:] if heads[0] == last else heads
        return len(set(heads)) == len(heads) and not any(time in self.counts for time in fresh)

    @property
    def times(self) -> list[Any]:
        """In order; texts in the order in which they first appear."""
        return list(self.counts) if any(isinstance(time, str) for time in self.counts) else sorted(self.counts)


class Table(Source):
    """Slices of a long table."""

    format = "table"

    def __init__(
        self, rows: Rows, labels: Sequence[tuple[Label, ...]], options: SourceOptions, survey: Survey | None
    ) -> None:
        sizes = tuple(len(known) for known in labels)
        if math.prod(sizes) > MAX_SLICE_ENTRIES:
            raise StreamError(
                f"{rows.name} has {'×'.join(map(str, sizes))} labels, and slices may have {MAX_SLICE_ENTRIES} entries: "
                "choose other columns for the modes, or give the labels that matter"
            )
        super().__init__(rows.name, sizes, rows.columns.modes, tuple(labels))
        self._rows, self._sum = rows, options.duplicates == "sum"
        self._numbers = [{str(label): number for number, label in enumerate(known)} for known in labels]
        self._survey = survey
        self._sorted: _SortedRows | None = None
        self.time_name = rows.columns.time
        if survey is not None and options.follow is None:
            self.length = len(survey.counts)
            times = survey.times
            self.times = np.array(times, dtype=object if isinstance(times[0], str) else survey.dtype) if times else None
            if not survey.in_order:
                self.notices.append(f"rows of {rows.name} were not in the order of their times and were sorted first")

    @property
    def _must_sort(self) -> bool:
        return self._survey is not None and self.length is not None and not self._survey.in_order

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        return self._read_sorted(position) if self._must_sort else self._read_in_order(position)

    def identity(self) -> str:  # noqa: D102
        if self.length is None or self.times is None:
            return ""
        return hashlib.sha256(json.dumps([str(self.times[0]), self._must_sort]).encode()).hexdigest()

    def close(self) -> None:  # noqa: D102
        self._rows.close()
        if self._sorted is not None:
            self._sorted.close()

    def _read_in_order(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:
        start, skip = (count_in(position, key, self.name) for key in ("place", "skip"))
        entries: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float64]] = []
        time: Any = None
        after: dict[str, JSON] = {"place": start, "skip": skip}
        for batch in self._rows.from_row(start, skip):
            numbers = self._entries(batch)
            begin = 0
            for run_time, count in _runs(batch.times):
                if entries and run_time != time:
                    yield self._raw(time, entries, values, after)
                    entries, values = [], []
                entries.append(numbers[begin : begin + count])
                values.append(batch.values[begin : begin + count])
                begin += count
                time, after = run_time, {"place": batch.start, "skip": batch.offset + begin}
        if entries:
            yield self._raw(time, entries, values, after)

    def _read_sorted(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:
        assert self._survey is not None
        first = count_in(position, "slice", self.name)
        if self._sorted is None:
            self._sorted = _SortedRows(self._rows, self._survey, self._entries)
        for index in range(first, len(self._survey.counts)):
            time, block = self._sorted.times[index], self._sorted.slice(index)
            yield self._raw(time, [block["entry"]], [block["value"]], {"slice": index + 1})

    def _raw(
        self, time: Any, entries: list[NDArray[np.int64]], values: list[NDArray[np.float64]], after: dict[str, JSON]
    ) -> Raw:
        time = plain_time(time)
        return Raw(time, after, lambda: self._dense(time, np.concatenate(entries), np.concatenate(values)))

    def _entries(self, batch: Batch) -> NDArray[np.int64]:
        """The index of each row's entry in a flattened slice."""
        flat = np.zeros(len(batch), dtype=np.int64)
        for dim, size, numbers, mode in zip(self.dims, self.shape, self._numbers, batch.modes, strict=True):
            try:
                flat = flat * size + mapped(mode, numbers, np.int64)
            except KeyError as unknown:
                raise StreamError(
                    f"{self.name} holds the label {unknown.args[0]!r} in {dim}, which is not in labels: add it, "
                    "or leave labels out so that they are found in a first pass"
                ) from None
        return flat

    def _dense(self, time: Any, entries: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        seen = ~np.isnan(values)
        entries, values = entries[seen], values[seen]
        flat = np.full(math.prod(self.shape), np.nan)
        different, first = np.unique(entries, return_index=True)
        if len(different) == len(entries):
            flat[entries] = values
        elif self._sum:
            flat[different] = 0
            np.add.at(flat, entries, values)
        else:
            again = np.setdiff1d(np.arange(len(entries)), first)[0]
            where = np.unravel_index(int(entries[again]), self.shape)
            labels = ", ".join(str((known or ())[int(i)]) for known, i in zip(self.labels, where, strict=True))
            raise StreamError(
                f"{self.name} has two rows for {labels} at {self.time_name} {time}: use duplicates='sum', or keep one"
            )
        return flat.reshape(self.shape)


class _SortedRows:
    """Rows sorted by time in a temporary file; memory holds one number per time only."""

    def __init__(self, rows: Rows, survey: Survey, entries: Any) -> None:
        self.times = survey.times
        rank = {time: index for index, time in enumerate(self.times)}
        sizes = np.array([survey.counts[time] for time in self.times], dtype=np.int64)
        self._ends = np.cumsum(sizes)
        cursor = self._ends - sizes
        self._file = tempfile.TemporaryFile(prefix="undertow-")  # noqa: SIM115, closed by close()
        total = int(self._ends[-1])
        _reserve(self._file, total * _ENTRY.itemsize)
        table = np.memmap(self._file, _ENTRY, "r+", shape=(total,))
        for batch in rows.batches():
            different, which = np.unique(batch.times, return_inverse=True)
            known = [rank.get(_key(time), -1) for time in different]
            ranks = np.array(known, dtype=np.int64)[which]
            order = np.argsort(ranks, kind="stable")
            counts = np.bincount(ranks[order], minlength=len(cursor)) if min(known) >= 0 else cursor + total
            if (cursor + counts > self._ends).any():
                raise StreamError(f"{rows.name} changed while it was read: start again once it is complete")
            first = np.searchsorted(ranks[order], ranks[order])  # of the rows of the same time
            target = cursor[ranks[order]] + np.arange(len(batch)) - first
            table["entry"][target], table["value"][target] = entries(batch)[order], batch.values[order]
            cursor = cursor + counts
        self._table = table

    def slice(self, index: int) -> NDArray[Any]:
        """The rows of one time."""
        start = int(self._ends[index - 1]) if index else 0
        return np.array(self._table[start : int(self._ends[index])])

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()


def _reserve(file: IO[bytes], size: int) -> None:
    """Allocate the disk space now: a full disk is an error here, but would kill the process in a mapped file later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        for start in range(0, size, 2**20):
            file.write(bytes(min(2**20, size - start)))
        file.flush()


def _runs(times: NDArray[Any]) -> Iterator[tuple[Any, int]]:
    """Successive rows of the same time: the time and their number."""
    if not len(times):
        return
    starts = np.concatenate([[0], np.flatnonzero(times[1:] != times[:-1]) + 1])
    for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
        yield _key(times[start]), int(stop - start)


def _key(time: Any) -> Any:
    """A time as a key of a dictionary, whatever array it comes from."""
    return time.item() if isinstance(time, (np.integer, np.floating)) else time


def open_table(rows: Rows, options: SourceOptions, first_pass: Rows | None) -> Table:
    """A table whose labels are given, or found in a first pass over the same rows."""
    survey = None if first_pass is None else Survey(first_pass)
    labels = []
    for number, mode in enumerate(rows.columns.modes):
        given = (options.labels or {}).get(mode)
        if given is not None:
            labels.append(given)
        elif survey is not None:
            labels.append(_as_labels(list(survey.labels[number])))
        else:
            raise StreamError(f"{rows.name} can be read only once: give the labels of {mode} with labels=…")
        if not labels[-1]:
            raise StreamError(f"{rows.name} has no rows to find the labels of {mode} in: give them with labels=…")
    unknown = [key for key in options.labels or {} if key not in rows.columns.modes]
    if unknown:
        raise StreamError(f"labels names {shortened(unknown)}, but the modes are {', '.join(rows.columns.modes)}")
    return Table(rows, labels, options, survey)


def _as_labels(texts: list[str]) -> tuple[Label, ...]:
    """Numbers where all of them are written as such, in order; texts in alphabetical order otherwise."""
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
            return tuple(sorted(numbers))
    return tuple(sorted(texts))
