"""Times of slices: one form everywhere, ISO 8601 in UTC."""

from __future__ import annotations

import datetime
import re

import numpy as np

from undertow.service.errors import Invalid

_SECONDS = re.compile(r"-?\d{9,11}(\.\d+)?")
"""Seconds since 1970 as text, as they come in an address; fewer digits may be a date."""
_ARRIVED = re.compile(r"\.\d{3}Z$")
"""How `now` ends; what `checked` gives has six digits after the second, or none."""
_FIRST, _LAST = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1700, 2200))
"""Dates between which they are kept to the nanosecond."""


def now() -> str:
    """The present."""
    return _text(datetime.datetime.now(datetime.UTC), "milliseconds")


def checked(time: str | int | float | None) -> str | None:
    """A time that a client sent: a date in ISO 8601 (UTC where it names no zone), or seconds since 1970.

    Raises:
        Invalid: It is neither.
    """
    if time is None:
        return None
    try:
        if isinstance(time, str) and not _SECONDS.fullmatch(time):
            moment = datetime.datetime.fromisoformat(time)
            moment = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
            moment = moment.astimezone(datetime.UTC)
        else:
            moment = datetime.datetime.fromtimestamp(float(time), datetime.UTC)
        if _FIRST < moment < _LAST:
            return _text(moment)
    except (ValueError, OverflowError, OSError):
        pass
    raise Invalid(f"time must be a date such as 2024-05-01T12:00:00Z or seconds since 1970, got {time!r:.60}")


def moment(time: str) -> np.datetime64:
    """What `checked` made of it, as a date."""
    return np.datetime64(time.removesuffix("Z"))


def sent(time: str) -> np.datetime64 | None:
    """The date that a client named; None of a time of arrival, as `now` gives it: what arrives in a burst was not
    observed in one."""
    return None if _ARRIVED.search(time) else moment(time)


def milliseconds(time: str) -> int:
    """Since 1970."""
    return int(moment(time).astype("datetime64[ms]").astype(np.int64))


def _text(moment: datetime.datetime, precision: str = "auto") -> str:
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
