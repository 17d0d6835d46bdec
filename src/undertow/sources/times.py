"""Times of slices: ``numpy.datetime64``, int, float, str or None; read from texts, written as JSON, compared."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import foreign_position

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d){0,2}([.,]\d{1,9})?(Z|[+-]\d\d(:?\d\d)?)?)?")
_UNITS = {"ns": "ns", "us": "us", "ms": "ms", "s": "s", "sec": "s", "m": "m", "min": "m", "h": "h", "d": "D", "w": "W"}


def plain_time(value: Any) -> Any:
    """Any library's time as one of: ``numpy.datetime64``, int, float, str, None."""
    if value is None or isinstance(value, (str, np.datetime64)):
        return value
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def parse_time(value: Any) -> Any:
    """A plain time; a text such as 2024-05-01T12:30:00Z becomes a date, other texts stay."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return plain_time(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(moment, "us")


def shown_time(time: Any) -> str:
    """A time as a sentence names it: dates in ISO form without empty fractions.

    Examples:
        >>> shown_time(np.datetime64("2024-05-01T06:15:00.000000")), shown_time(7)
        ('2024-05-01T06:15:00', '7')
    """
    text = str(time)
    if not isinstance(time, np.datetime64) or "." not in text:
        return text
    seconds, _, fraction = text.partition(".")
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{seconds}.{fraction}" if fraction else seconds


def to_json(time: Any) -> JSON:
    """A time as plain JSON."""
    if isinstance(time, np.datetime64):
        unit = np.datetime_data(time.dtype)
        return {"datetime64": f"{unit[0]}|{unit[1]}", "count": int(time.astype(np.int64))}
    return time  # type: ignore[no-any-return]


def from_json(name: str, encoded: JSON) -> Any:
    """The time that :func:`to_json` was given."""
    if not isinstance(encoded, dict):
        return encoded
    try:
        unit, step = str(encoded["datetime64"]).split("|")
        return np.datetime64(int(encoded["count"]), (unit, int(step)))  # type: ignore[arg-type]
    except (KeyError, ValueError, TypeError, OverflowError):
        raise foreign_position(name) from None


def is_unknown(time: Any) -> bool:
    """No time at all, NaN, NaT, or an integer beyond 64 bits."""
    if isinstance(time, np.datetime64):
        return bool(np.isnat(time))
    if isinstance(time, int):
        return not -(2**63) <= time < 2**63
    return time is None or (isinstance(time, float) and not math.isfinite(time))


def are_ordered(a: Any, b: Any) -> bool:
    """Whether earlier and later are defined for these two."""
    if isinstance(a, np.datetime64) or isinstance(b, np.datetime64):
        return isinstance(a, np.datetime64) and isinstance(b, np.datetime64)
    return isinstance(a, (int, float)) and isinstance(b, (int, float))


def parse_step(step: Any) -> Any:
    """A number, or a duration such as ``"5min"``, ``"1h"``, ``"30 s"`` for times that are dates."""
    if step is None or isinstance(step, np.timedelta64):
        return step
    if isinstance(step, str):
        found = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+)\s*", step)
        if found and found[2].lower() in _UNITS:
            step = np.timedelta64(int(found[1]), _UNITS[found[2].lower()])  # type: ignore[call-overload]
        else:
            try:
                step = float(step)
            except ValueError:
                raise StreamError(f"step must be a number or a duration such as 5min, got {step!r}") from None
    positive = step > np.timedelta64(0, "s") if isinstance(step, np.timedelta64) else 0 < step < float("inf")
    if not positive:
        raise StreamError(f"step must be above 0, got {step}: give the distance of two successive times")
    return step


def usual_step(times: NDArray[Any] | None) -> Any:
    """The median difference of successive times, None where there is none."""
    if times is None or len(times) < 3 or times.dtype.kind not in "iufM":
        return None
    steps = np.diff(times.astype(np.float64) if times.dtype.kind == "u" else times)
    forward = np.sort(steps[(steps > np.zeros((), steps.dtype)) & np.isfinite(steps)])
    if not forward.size:
        return None
    middle = forward[(forward.size - 1) // 2]
    return middle if isinstance(middle, np.timedelta64) else middle.item()
