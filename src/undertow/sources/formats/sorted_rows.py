"""Rows of a long table that are not in the order of their times: sorted into a temporary file, 16 bytes a row."""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.formats.rows import Rows
from undertow.sources.formats.survey import Survey, time_key

_ENTRY = np.dtype([("entry", np.int64), ("value", np.float64)])


class SortedRows:
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
        for batch in filter(len, rows.batches()):
            different, which = np.unique(batch.times, return_inverse=True)
            known = [rank.get(time_key(time), -1) for time in different]
            ranks = np.array(known, dtype=np.int64)[which]
            order = np.argsort(ranks, kind="stable")
            counts = np.bincount(ranks[order], minlength=len(cursor)) if min(known) >= 0 else cursor + total
            if (cursor + counts > self._ends).any():
                raise StreamError(f"{rows.name} changed while it was read: start again once it is complete")
            first = np.searchsorted(ranks[order], ranks[order])  # of the rows of the same time
            target = cursor[ranks[order]] + np.arange(len(batch)) - first
            numbers, values = entries(batch)
            table["entry"][target], table["value"][target] = numbers[order], values[order]
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
