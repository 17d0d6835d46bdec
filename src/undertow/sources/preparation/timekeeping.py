"""What happens when the times of slices are out of order, repeated or missing.

Slices are delivered in the order in which the source holds them; ``late`` says what happens to one whose time is not
after the latest before it, ``gaps`` to times without a slice. The table of what each choice does is in
``docs/how-to/read-files.md``.

A gap is more than one and a half steps. The step is given, or the median difference of the times where all of them are
known beforehand; otherwise gaps are not detected. Texts have no order: only repetitions are noticed among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from undertow.sources.base import StreamError
from undertow.sources.times import are_ordered, is_unknown, shown_time

MAX_FILLED = 100_000
"""Slices put into one gap: beyond that, the step is wrong or the times are."""


class TimeKeeper:
    """Compares the time of each slice with the latest one before it."""

    def __init__(self, name: str, late: str, gaps: str, step: Any, last: Any = None) -> None:
        self.name, self.late, self.gaps, self.step = name, late, gaps, step
        self.last = last
        self.counts = {"late": 0, "repeated": 0, "missing": 0, "unknown": 0}

    def accepts(self, time: Any) -> bool:
        """Whether a slice of this time is to be delivered; an error if it must not come at all."""
        if time is not None and is_unknown(time):
            self.counts["unknown"] += 1
        if self.last is None or is_unknown(time):
            return True
        if time == self.last:
            kind, words = "repeated", "repeats the time before it"
        elif are_ordered(time, self.last) and time < self.last:
            kind, words = "late", f"comes after {shown_time(self.last)}"
        else:
            return True
        if self.late == "refuse":
            raise StreamError(
                f"{self.name} must have times in order, but the slice of {shown_time(time)} {words}: "
                "sort it, or use late='skip' or late='keep'"
            )
        self.counts[kind] += 1
        return self.late == "keep"

    def missing_before(self, time: Any) -> Iterator[Any]:
        """The times that are missing before this one, if they are to be filled."""
        if self.last is None or is_unknown(time) or self.step is None or not are_ordered(time, self.last):
            return
        if isinstance(self.step, np.timedelta64) != isinstance(time, np.datetime64):
            raise StreamError(
                f"step must fit the times of {self.name}, got {self.step} for times such as {shown_time(time)}"
            )
        steps = (time - self.last) / self.step
        if not steps > 1.5:
            return
        count = math.ceil(steps - 0.5) - 1
        if self.gaps == "refuse":
            raise StreamError(
                f"{self.name} must have no gaps, but {count} {'slice is' if count == 1 else 'slices are'} missing "
                f"between {shown_time(self.last)} and {shown_time(time)}: use gaps='fill' or gaps='keep'"
            )
        if self.gaps == "keep":
            self.counts["missing"] += count
            return
        if count > MAX_FILLED:
            raise StreamError(
                f"{self.name} misses {count} slices between {shown_time(self.last)} and {shown_time(time)}, more than "
                f"{MAX_FILLED}: check its times and step, or use gaps='keep'"
            )
        while (time - self.last) / self.step > 1.5:  # computed again each time: a resumed stream fills the same way
            self.counts["missing"] += 1
            yield self.last + self.step

    def record(self, time: Any) -> None:
        """A slice of this time was delivered; the latest time is what the next ones are measured by."""
        if is_unknown(time):
            return
        if self.last is None or not are_ordered(time, self.last) or time > self.last:
            self.last = time

    def notices(self) -> list[str]:
        """One sentence for each kind of irregularity found."""
        late = "left out" if self.late == "skip" else "kept where {they} came"
        filled = "filled with empty slices" if self.gaps == "fill" else "passed over"
        texts = {
            "late": ("slice", f"came after a later one and {{were}} {late}"),
            "repeated": ("slice", f"repeated a time and {{were}} {late}"),
            "missing": ("time", f"had no slice and {{were}} {filled}"),
            "unknown": ("slice", "had no valid time"),
        }
        sentences = []
        for kind, (what, text) in texts.items():
            count = self.counts[kind]
            one = {"were": "was", "they": "it"} if count == 1 else {"were": "were", "they": "they"}
            if count:
                sentences.append(f"{count} {what if count == 1 else what + 's'} of {self.name} {text.format(**one)}")
        return sentences
