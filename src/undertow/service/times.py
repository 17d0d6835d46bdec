"""Times of slices: one form everywhere, ISO 8601 in UTC."""

from __future__ import annotations

import datetime
import math

from undertow.service.errors import Invalid

_LAST = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC).timestamp()


def now() -> str:
    """The present."""
    return _text(datetime.datetime.now(datetime.UTC))


def checked(time: str | int | float | None) -> str | None:
    """A time that a client sent: a date in ISO 8601 (UTC where it names no zone), or seconds since 1970.

    Raises:
        Invalid: It is neither.
    """
    if time is None:
        return None
    try:
        if isinstance(time, str):
            moment = datetime.datetime.fromisoformat(time)
            moment = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
            return _text(moment.astimezone(datetime.UTC))
        if math.isfinite(time) and abs(time) < _LAST:
            return _text(datetime.datetime.fromtimestamp(float(time), datetime.UTC))
    except (ValueError, OverflowError, OSError):
        pass
    raise Invalid(f"time must be a date such as 2024-05-01T12:00:00Z or seconds since 1970, got {time!r:.60}")


def moment(time: str) -> datetime.datetime:
    """What `checked` made of it, as a date."""
    return datetime.datetime.fromisoformat(time)


def _text(moment: datetime.datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
