"""Times of slices: how they travel in JSON, and what happens when they are out of order, repeated or missing.

A stream is delivered in the order in which its source holds it. What a slice's time may do:

======================  =========================  ===============================================================
a slice whose time is   option                     what happens
======================  =========================  ===============================================================
before the latest       ``late="keep"`` (default)  it is delivered all the same, and a notice counts it
or equal to it          ``late="skip"``            it is left out, and a notice counts it
                        ``late="refuse"``          one sentence, and the stream ends there
after a gap             ``gaps="keep"`` (default)  it is delivered, and a notice counts the times that are missing
                        ``gaps="fill"``            slices without any observation are delivered for those times
                        ``gaps="refuse"``          one sentence, and the stream ends there
======================  =========================  ===============================================================

A gap is more than one and a half steps. The step is given, or the median difference of the times where all of them are
known beforehand; otherwise gaps are not looked for. Texts have no order: only repetitions are noticed among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError

LATE = ("keep", "skip", "refuse")
GAPS = ("keep", "fill", "refuse")
MAX_FILLED = 100_000
"""Slices put into one gap: beyond that, the step is wrong or the times are."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d){0,2}([.,]\d{1,9})?(Z|[+-]\d\d(:?\d\d)?)?)?")
_UNITS = {"ns": "ns", "us": "us", "ms": "ms", "s": "s", "sec": "s", "m": "m", "min": "m", "h": "h", "d": "D", "w": "W"}


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
        raise StreamError(f"the position to resume {name} from is not one of its own: start afresh") from None


def is_unknown(time: Any) -> bool:
    """No time at all, or one that is not a time."""
    if isinstance(time, np.datetime64):
        return bool(np.isnat(time))
    return time is None or (isinstance(time, float) and not math.isfinite(time))


def are_ordered(a: Any, b: Any) -> bool:
    """Whether earlier and later mean something for these two."""
    if isinstance(a, np.datetime64) or isinstance(b, np.datetime64):
        return isinstance(a, np.datetime64) and isinstance(b, np.datetime64)
    return isinstance(a, (int, float)) and isinstance(b, (int, float))


def from_text(text: str) -> Any:
    """A date and time where the text looks like one, such as 2024-05-01T12:30:00Z, and the text itself otherwise."""
    if not _DATE.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(moment, "us")


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


class TimeKeeper:
    """Watches the times of the slices that pass."""

    def __init__(self, name: str, late: str, gaps: str, step: Any, last: Any = None) -> None:
        self.name, self.late, self.gaps, self.step = name, late, gaps, step
        self.last = last
        self.counts = {"late": 0, "repeated": 0, "missing": 0, "unknown": 0}

    def accepts(self, time: Any) -> bool:
        """Whether a slice of this time is to be delivered; one sentence if it must not come at all."""
        if time is None:
            return True
        if is_unknown(time):
            self.counts["unknown"] += 1
            return True
        if self.last is None:
            return True
        if time == self.last:
            kind, words = "repeated", "repeats the time before it"
        elif are_ordered(time, self.last) and time < self.last:
            kind, words = "late", f"comes after {self.last}"
        else:
            return True
        if self.late == "refuse":
            raise StreamError(
                f"{self.name} must have times in order, but the slice of {time} {words}: "
                "sort it, or use late='skip' or late='keep'"
            )
        self.counts[kind] += 1
        return self.late == "keep"

    def missing_before(self, time: Any) -> Iterator[Any]:
        """The times that are missing before this one, if they are to be filled."""
        if self.last is None or is_unknown(time) or self.step is None or not are_ordered(time, self.last):
            return
        if isinstance(self.step, np.timedelta64) != isinstance(time, np.datetime64):
            raise StreamError(f"step must fit the times of {self.name}, got {self.step} for times such as {time}")
        steps = (time - self.last) / self.step
        if not steps > 1.5:
            return
        count = math.ceil(steps - 0.5) - 1
        if self.gaps == "refuse":
            raise StreamError(
                f"{self.name} must have no gaps in time, but {count} slices lack between {self.last} and {time}: "
                "use gaps='fill' or gaps='keep'"
            )
        if self.gaps == "keep":
            self.counts["missing"] += count
            return
        if count > MAX_FILLED:
            raise StreamError(
                f"{self.name} lacks {count} slices between {self.last} and {time}, more than {MAX_FILLED}: "
                "check its times and step, or use gaps='keep'"
            )
        while (time - self.last) / self.step > 1.5:  # measured anew each time: a resumed stream fills the same way
            self.counts["missing"] += 1
            yield self.last + self.step

    def passed(self, time: Any) -> None:
        """A slice of this time was delivered; the latest time is what the next ones are measured by."""
        if is_unknown(time):
            return
        if self.last is None or not are_ordered(time, self.last) or time > self.last:
            self.last = time

    def notices(self) -> list[str]:
        """One sentence for each kind of oddity met."""
        done = "were left out" if self.late == "skip" else "were kept where they came"
        filled = "were filled with empty slices" if self.gaps == "fill" else "were passed over"
        texts = {
            "late": f"slices of {self.name} came after a later one and {done}",
            "repeated": f"slices of {self.name} repeated a time and {done}",
            "missing": f"times of {self.name} had no slice and {filled}",
            "unknown": f"slices of {self.name} had no valid time",
        }
        return [f"{self.counts[kind]} {text}" for kind, text in texts.items() if self.counts[kind]]
