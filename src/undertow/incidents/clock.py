"""Times of slices: as they are shown, and how far apart they are."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_KEPT = 25
"""Steps between slices whose median counts."""


class Clock:
    """The step between slices, from their times or as it was given."""

    def __init__(self, step: float | None) -> None:
        if step is not None and not (np.isfinite(step) and step > 0):
            raise ValueError(f"step must be the time between slices in seconds, above 0, got {step!r}")
        self._given = step
        self._last: int | None = None
        self._steps: list[float] = []

    @property
    def step(self) -> float | None:
        """Seconds between slices; None where that is not known."""
        if self._given is not None:
            return float(self._given)
        return float(np.median(self._steps)) if self._steps else None

    def tick(self, time: Any) -> str | float | None:
        """Take note of the time of a slice; returns it as it is shown and stored."""
        moment = as_datetime(time)
        if moment is None:
            return shown(time)
        now = int(moment.astype("datetime64[ns]").astype(np.int64))
        if self._last is not None and now > self._last:
            self._steps = [*self._steps, (now - self._last) / 1e9][-_KEPT:]
        self._last = now
        return shown(time)

    def before(self, slices: int) -> str | float | None:
        """About when it was, this many steps ago; None where there are no dates."""
        if self._last is None or self.step is None:
            return None
        return shown(np.datetime64(self._last - round(1e9 * slices * self.step), "ns"))

    def state(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"last": self._last, "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What `state` gave."""
        self._last, self._steps = state["last"], [float(one) for one in state["steps"]]


@dataclass(frozen=True)
class Moment:
    """A slice: its number, its time as it is shown, and the clock that knows how far apart slices are."""

    number: int
    time: str | float | None
    clock: Clock

    def back(self, slices: int) -> Moment:
        """The slice this many before; its time is about when it was."""
        return self if slices == 0 else Moment(self.number - slices, self.clock.before(slices), self.clock)


def as_datetime(time: Any) -> np.datetime64 | None:
    """A date of NumPy, pandas or Python; None for anything else. Those with a time zone are taken as UTC."""
    if isinstance(time, datetime.datetime):  # pandas' are such
        if time.tzinfo is not None:
            time = time.astimezone(datetime.UTC).replace(tzinfo=None)
        time = np.datetime64(time)
    if isinstance(time, np.ndarray) and time.ndim == 0:
        time = time[()]
    return time if isinstance(time, np.datetime64) and not np.isnat(time) else None


def shown(time: Any) -> str | float | None:
    """As it is written in JSON: dates in ISO 8601 without needless zeros, numbers as they are."""
    if time is None:
        return None
    if isinstance(time, datetime.datetime) and time.tzinfo is not None:
        return time.isoformat()
    moment = as_datetime(time)
    if moment is not None:
        seconds = moment.astype("datetime64[s]")
        return str(seconds).removesuffix(":00") if seconds == moment else str(moment)
    if isinstance(time, (int, float, np.number)) and not isinstance(time, bool):
        number = float(time)
        if np.isfinite(number):
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return str(time)
