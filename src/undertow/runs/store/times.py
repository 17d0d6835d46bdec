"""The times of the slices, as numbers or text that a store can hold and xarray reads back as they were."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from undertow.runs.errors import StoreError
from undertow.sources.times import shown_time

SKIP = "leave such slices out with --on-bad skip (on_bad='skip')"
Kind = Literal["index", "datetime", "whole", "number", "text"]
_KINDS = {"index": "none at all", "datetime": "dates", "whole": "integers", "number": "numbers", "text": "text"}


@dataclass(frozen=True)
class Times:
    """What kind of times a stream has, decided by its first slice; the names of the kinds are part of checkpoints."""

    kind: Kind

    @classmethod
    def like(cls, time: Any) -> Times:
        """The kind of this time."""
        if time is None:
            return cls("index")
        if isinstance(time, (np.datetime64, datetime.date)):
            return cls("datetime")
        if isinstance(time, str):
            return cls("text")
        if isinstance(time, (int, np.integer)) and not isinstance(time, bool):
            return cls("whole")
        if isinstance(time, (float, np.floating)):
            return cls("number")
        raise StoreError(f"times must be dates, numbers or text, got {time!r}: convert them first")

    @staticmethod
    def checked() -> Callable[[int, Any], None]:
        """Takes the numbers and times of slices in turn, and refuses what a run would."""
        kind: Times | None = None

        def check(index: int, time: Any) -> None:
            nonlocal kind
            kind = kind or Times.like(time)
            kind.stored(time, index)

        return check

    @property
    def dtype(self) -> str:
        """Of the stored column."""
        return {"number": "<f8", "text": "str"}.get(self.kind, "<i8")

    @property
    def attributes(self) -> dict[str, str]:
        """How to read the numbers, by the CF conventions."""
        if self.kind == "datetime":
            return {"units": "nanoseconds since 1970-01-01T00:00:00", "calendar": "proleptic_gregorian"}
        return {}

    def stored(self, time: Any, index: int) -> int | float | str:
        """What goes into the column for the slice with this index."""
        if self.kind == "index":
            return index
        if self.kind == "text" and isinstance(time, str):
            return _encodable(time, index)
        if self.kind == "datetime" and isinstance(time, (np.datetime64, datetime.date)):
            return _nanoseconds(time)
        if self.kind in ("whole", "number") and isinstance(time, (int, float, np.integer, np.floating)):
            if self.kind == "number":
                return float(time) if isinstance(time, (float, np.floating)) else float(_64_bits(int(time), index))
            if isinstance(time, (int, np.integer)) or float(time).is_integer():
                return _64_bits(int(time), index)
        raise StoreError(
            f"the time of slice {index} is {repr(time) if isinstance(time, str) else shown_time(time)}, and the times "
            f"before it were of another kind ({_KINDS[self.kind]}): "
            f"give all slices times of one kind, or {SKIP}"
        )

    def shown(self, stored: int | float | str) -> int | float | str:
        """A stored time as it goes into text: numbers as they are, dates in ISO form without empty fractions."""
        if self.kind != "datetime":
            return stored
        return shown_time(np.datetime64(int(stored), "ns"))


def _64_bits(time: int, index: int) -> int:
    if not -(2**63) <= time < 2**63:
        raise StoreError(
            f"the time of slice {index} is {time}, which 64 bits cannot hold: use smaller numbers or text, or {SKIP}"
        )
    return time


def _encodable(time: str, index: int) -> str:
    try:
        time.encode()
    except UnicodeEncodeError:
        raise StoreError(
            f"the time of slice {index} is {time!a}, which holds half of a character (a lone surrogate): mend the "
            f"text, or {SKIP}"
        ) from None
    return time


def _nanoseconds(time: np.datetime64 | datetime.date) -> int:
    moment = np.datetime64(time)
    exact = moment.astype("datetime64[ns]")
    if not np.isnat(moment) and exact.astype(moment.dtype) != moment:
        raise StoreError(
            f"the time {time} lies outside the years 1678 to 2262 that can be stored: use numbers or text, or {SKIP}"
        )
    return int(exact.astype(np.int64))
