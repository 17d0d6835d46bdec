"""Times of slices: how many usual steps lie between one slice and the next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = 15
"""Steps that the usual one is the median of."""
FEWEST = 3
"""Steps that must have been seen before a gap is believed."""
JUST_AFTER = 1e-6
"""Seconds after the slice before, where a date is late or repeated."""


@dataclass(frozen=True)
class Clock:
    """The last time, in seconds or in the user's own unit, and the last steps; None where times are not given.

    `dated` says whether the first one was a date.
    """

    last: float | None = None
    steps: tuple[float, ...] = ()
    slices: int = 0
    dated: bool = False


def advanced(clock: Clock, time: Any) -> tuple[Clock, float]:
    """After a slice of this time, and the steps between it and the one before: 1 where times are regular or not given.

    A slice without a time comes a usual step after the one before.

    Raises:
        TypeError: It is no time.
        ValueError: It is not later than the one before, or those before had none.
    """
    if time is None:
        last = None if clock.last is None else clock.last + _usual(clock, 0.0)
        return replace(clock, last=last, slices=clock.slices + 1), 1.0
    if clock.last is None and clock.slices:
        raise ValueError("time must be given from the first slice on: give it to all, or to none.")
    now, dated = _number(time), isinstance(time, datetime | np.datetime64)
    if clock.last is None:
        return Clock(now, (), 1, dated), 1.0
    if dated != clock.dated:
        kinds = ("a number", "dates") if clock.dated else ("a date", "numbers")
        raise ValueError(f"time must be of the kind of those before, {kinds[1]}, got {kinds[0]}, {time!r}.")
    step = now - clock.last
    if step <= 0:
        by = f"{_lasting(-step, dated)} earlier" if step else "the same again"
        raise ValueError(
            f"time must be later than that of the slice before, got {time!r}, {by}: "
            "leave out late slices and duplicates, or merge them with theirs before."
        )
    if step <= (2 * JUST_AFTER if dated else 2 * np.spacing(abs(clock.last))):
        return replace(clock, slices=clock.slices + 1), 0.0  # repeated or late: no step at all
    usual = _usual(clock, step) if len(clock.steps) >= FEWEST else step
    return replace(clock, last=now, steps=(*clock.steps, step)[-KEPT:], slices=clock.slices + 1), step / usual


def in_order(clock: Clock, time: Any) -> Any:
    """A time as `advanced` takes it, whatever comes: where it is late, repeated or none, just after the one before."""
    try:
        now = -np.inf if time is None else _number(time)
    except TypeError:
        now = -np.inf
    if clock.last is None:
        return time if np.isfinite(now) and not clock.slices else None
    if now > clock.last:
        return time
    if clock.dated:
        return np.datetime64(round((clock.last + JUST_AFTER) * 1e6), "us")
    return float(np.nextafter(clock.last, np.inf))


def coming(clock: Clock, slices: int) -> NDArray[Any] | None:
    """Times of the next slices, each a usual step after the one before; None where times or steps are not known."""
    if clock.last is None or not clock.steps:
        return None
    times: NDArray[Any] = clock.last + _usual(clock, 0.0) * np.arange(1, slices + 1)
    return (times * 1e6).round().astype("datetime64[us]") if clock.dated else times


def _usual(clock: Clock, unknown: float) -> float:
    return float(np.median(clock.steps)) if clock.steps else unknown


def _lasting(size: float, dated: bool) -> str:
    return str(timedelta(seconds=size)) if dated else f"{size:g}"


def _number(time: Any) -> float:
    """Seconds since 1970 of a date, or the number itself."""
    if isinstance(time, datetime):  # pandas' too; with a time zone it is the same moment everywhere
        return float(time.timestamp()) if time.tzinfo else float(np.datetime64(time, "us").astype(np.int64)) / 1e6
    if isinstance(time, np.datetime64) and not np.isnat(time):
        return float(time.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(time, int | float | np.integer | np.floating) and not isinstance(time, bool) and np.isfinite(time):
        return float(time)
    raise TypeError(f"time must be a finite number, datetime or datetime64, got {time!r}.")
