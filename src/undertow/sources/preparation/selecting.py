"""``select``: parts of modes and of time, by index range or by label.

For each mode (by name or by number) and for the time (by its name), one of

- an index range ``"10:20"``, ``"::2"``, ``slice(10, 20)``: as in Python, negative numbers count from the end,
- a label range ``"2024-01-01..2024-02-01"``: both ends included; either may be left out,
- labels or indices ``"A,B,C"``, ``["A", "B"]``, ``[0, 4, 7]``: a label if there is such a one, otherwise an index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import Label, StreamError
from undertow.sources.errors import shortened
from undertow.sources.times import are_ordered, plain_time

_MOST_COUNTED = 10**6
_RANGE = re.compile(r"\s*([+-]?\d*)\s*:\s*([+-]?\d*)\s*(?::\s*([+-]?\d*)\s*)?")


def mode_number(key: str | int, dims: tuple[str, ...]) -> int:
    """The mode that a name or a number means."""
    if isinstance(key, str) and key in dims:
        return dims.index(key)
    try:
        number = int(key)
    except ValueError:
        number = len(dims)
    if not -len(dims) <= number < len(dims):
        raise StreamError(f"there is no mode {key!r}: the modes are {', '.join(dims)}")
    return number % len(dims)


def indices(part: Any, size: int, labels: tuple[Label, ...] | None, dim: str) -> NDArray[np.intp]:
    """The indices of one mode that ``part`` means."""
    where = np.arange(size)
    cut = _as_slice(part)
    if cut is not None:
        found = where[cut]
    elif isinstance(part, str) and ".." in part:
        found = _label_range(part, size, labels, dim)
    else:
        names = [name.strip() for name in part.split(",")] if isinstance(part, str) else part
        if not isinstance(names, Sequence) and not isinstance(names, np.ndarray):
            names = [names]
        known = {str(label): index for index, label in enumerate(labels or ())}
        found = np.array([_index_of(name, size, known, dim) for name in names], dtype=np.intp)
    if not found.size:
        raise StreamError(f"select for {dim} leaves nothing of its {size} entries, got {part!r}: widen it")
    return found


def _as_slice(part: Any) -> slice | None:
    if isinstance(part, slice):
        cut = part
    elif isinstance(part, str) and (found := _RANGE.fullmatch(part)):
        cut = slice(*(int(number) if number else None for number in found.groups()))
    else:
        return None
    if cut.step == 0:
        raise StreamError(f"select must not have a step of 0, got {part!r}: use 1 or more")
    return cut


def _index_of(name: Any, size: int, known: Mapping[str, int], dim: str) -> int:
    """The index of a label; an index itself if there is no such label."""
    if str(name) in known:
        return known[str(name)]
    try:
        number = int(name)
    except (TypeError, ValueError):
        number = size
    if known and not -size <= number < size:
        raise StreamError(f"{dim} has no label {name!r}: its labels are {shortened(list(known))}")
    if not -size <= number < size:
        raise StreamError(f"{dim} has {size} entries, got {name!r}: use an index from 0 to {size - 1}")
    return number % size


def _label_range(part: str, size: int, labels: tuple[Label, ...] | None, dim: str) -> NDArray[np.intp]:
    first, _, last = (text.strip() for text in part.partition(".."))
    if labels is None:
        labels = tuple(range(size))
    if all(isinstance(label, (int, float)) for label in labels):
        try:
            low, high = float(first or "-inf"), float(last or "inf")
        except ValueError:
            raise StreamError(f"select for {dim} must be a range of numbers, got {part!r}") from None
        numbers = np.array(labels, dtype=float)
        return np.flatnonzero((numbers >= low) & (numbers <= high))
    known = {str(label): index for index, label in enumerate(labels)}
    start = _index_of(first, size, known, dim) if first else 0
    stop = _index_of(last, size, known, dim) if last else size - 1
    return np.arange(start, stop + 1)


@dataclass(frozen=True)
class TimeSelection:
    """Which slices are wanted: a range of indices, or a range of times with both ends included."""

    start: int = 0
    stop: int | None = None
    step: int = 1
    first: str | None = None
    last: str | None = None

    def wants(self, index: int, time: Any) -> bool:
        """Whether this slice is wanted."""
        if index < self.start or (index - self.start) % self.step:
            return False
        if self.first is None and self.last is None:
            return True
        if time is None:
            raise StreamError("select names times, but the source has none: select a range of indices such as 100:200")
        low, high = (_like(time, bound, upper) for bound, upper in ((self.first, False), (self.last, True)))
        return not (_is_after(low, time) or _is_after(time, high))

    def is_over(self, index: int) -> bool:
        """Whether neither this slice nor any after it is wanted."""
        return self.stop is not None and index >= self.stop

    def count(self, length: int | None, times: NDArray[Any] | None) -> int | None:
        """How many slices are wanted, where that is known beforehand."""
        if length is None:
            return None
        if self.first is None and self.last is None:
            return len(range(length)[self.start : self.stop : self.step])
        if times is None or length > _MOST_COUNTED:
            return None
        return sum(self.wants(index, plain_time(time)) for index, time in enumerate(times))


def time_selection(part: Any, length: int | None, name: str) -> TimeSelection:
    """What ``select`` says about time."""
    if part is None:
        return TimeSelection()
    if isinstance(part, str) and ".." in part:
        first, _, last = (text.strip() for text in part.partition(".."))
        return TimeSelection(first=first or None, last=last or None)
    cut = _as_slice(part)
    if cut is None:
        raise StreamError(
            f"select for {name} must be a range of indices such as 100:200 or of times such as 2024-01-01..2024-02-01, "
            f"got {part!r}"
        )
    if (cut.start or 0) < 0 or (cut.stop or 0) < 0:
        if length is None:
            raise StreamError(f"select for {name} must not count from the end of a stream of unknown length: {part!r}")
        cut = slice(*cut.indices(length))
    if (cut.step or 1) < 1:
        raise StreamError(f"select for {name} must go forward, got {part!r}: a stream is not read backwards")
    return TimeSelection(cut.start or 0, cut.stop, cut.step or 1)


def _like(time: Any, bound: str | None, upper: bool) -> Any:
    """``bound`` as the same type as ``time``; an upper bound such as 2024-01 means all of it."""
    if bound is None:
        return None
    try:
        if isinstance(time, np.datetime64):
            moment = np.datetime64(bound)
            last = upper and np.datetime_data(moment.dtype)[0] != "ns"
            return moment + 1 - np.timedelta64(1, "ns") if last else moment
        return float(bound) if isinstance(time, (int, float)) else bound
    except ValueError:
        raise StreamError(f"select must name times such as {time}, got {bound!r}") from None


def _is_after(later: Any, earlier: Any) -> bool:
    are_texts = isinstance(later, str) and isinstance(earlier, str)
    return bool(later > earlier) if are_texts or are_ordered(later, earlier) else False
