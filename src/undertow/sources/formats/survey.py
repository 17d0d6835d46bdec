"""The first pass over a long table: its labels, its times, and whether its rows are in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.formats.rows import Rows

_MAX_LABELS = 2**22
_MAX_TIMES = 2**24


class Survey:
    """What a first pass over a table finds: its labels, its times with the number of rows of each, and their order."""

    def __init__(self, rows: Rows) -> None:
        self.labels: list[dict[str, None]] = [{} for _ in rows.columns.modes]
        self.counts: dict[Any, int] = {}
        self.in_order = True
        self.dtype: np.dtype[Any] | None = None
        last: Any = None
        for batch in filter(len, rows.batches()):
            self.dtype = batch.times.dtype if self.dtype is None else np.result_type(self.dtype, batch.times.dtype)
            for known, mode in zip(self.labels, batch.modes, strict=True):
                known.update(dict.fromkeys(mode.dictionary.to_pylist()))
                if len(known) > _MAX_LABELS:
                    raise StreamError(f"{rows.name} has more than {_MAX_LABELS} labels in one mode: name other columns")
            self.in_order = self.in_order and self._continues_order(batch.times, last)
            last = batch.times[-1]
            different, first, counts = np.unique(batch.times, return_index=True, return_counts=True)
            for which in np.argsort(first):  # texts keep the order in which they appear
                time = time_key(different[which])
                self.counts[time] = self.counts.get(time, 0) + int(counts[which])
            if len(self.counts) > _MAX_TIMES:
                raise StreamError(
                    f"{rows.name} has more than {_MAX_TIMES} times in {rows.columns.time}: name another column"
                )

    def _continues_order(self, times: NDArray[Any], last: Any) -> bool:
        """Whether the rows are in order so far; for texts, whether the rows of each are together."""
        if times.dtype != object:
            return bool((times[1:] >= times[:-1]).all() and (last is None or times[0] >= last))
        heads = [time for time, _ in time_runs(times)]
        fresh = heads[1:] if heads[0] == last else heads
        return len(set(heads)) == len(heads) and not any(time in self.counts for time in fresh)

    @property
    def times(self) -> list[Any]:
        """In order; texts in the order in which they first appear."""
        return list(self.counts) if any(isinstance(time, str) for time in self.counts) else sorted(self.counts)


def time_runs(times: NDArray[Any]) -> Iterator[tuple[Any, int]]:
    """Successive rows of the same time: the time and their number."""
    if not len(times):
        return
    starts = np.concatenate([[0], np.flatnonzero(times[1:] != times[:-1]) + 1])
    for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
        yield time_key(times[start]), int(stop - start)


def time_key(time: Any) -> Any:
    """A time as a key of a dictionary, whatever array it comes from."""
    return time.item() if isinstance(time, (np.integer, np.floating)) else time
