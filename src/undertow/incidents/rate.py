"""How many false incidents are accepted: per day, per number of slices, or as a false-discovery rate."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "month": 2629800.0}
DEFAULT = "1/1000"
LARGEST = 0.2
"""Of the probability of a false incident per slice, whatever is asked for."""
_KEPT = 200
"""Discoveries whose reward is still counted."""
_RATE = re.compile(r"\s*([0-9.eE+-]+)\s*(?:/|per)\s*(?:([0-9]+)\s*(?:slices?)?|([0-9.]*)\s*([a-z]+?)s?)\s*")
_FDR = re.compile(r"\s*fdr\s*[=: ]?\s*([0-9.eE+-]+)\s*(%?)\s*")


@dataclass(frozen=True)
class FalseAlarms:
    """What was asked for.

    Attributes:
        kind: "slices" (expected per slice), "time" (expected per second) or "fdr" (fraction of false ones among all).
        value: The number.
        text: As it was written.

    Examples:
        >>> FalseAlarms.parse("1/day").per_slice(step=300.0) * 288
        1.0
        >>> FalseAlarms.parse("2/1000").per_slice(step=None)
        0.002
        >>> FalseAlarms.parse("fdr 10%")
        FalseAlarms(kind='fdr', value=0.1, text='fdr 10%')
    """

    kind: Literal["slices", "time", "fdr"]
    value: float
    text: str

    @classmethod
    def parse(cls, given: str | float | FalseAlarms | None) -> FalseAlarms:
        """Read "1/day", "2 per 500 slices", "fdr 10%", or a number of false incidents per slice."""
        if isinstance(given, FalseAlarms):
            return given
        text = DEFAULT if given is None else str(given).strip()
        try:
            made = cls._read(text.lower())
        except (ValueError, ZeroDivisionError):
            made = None
        if made is None or not math.isfinite(made[1]) or made[1] <= 0 or (made[0] != "time" and made[1] >= 1):
            raise ValueError(
                f"false_alarms must be a rate such as '1/day', '1/hour', '1/1000' (slices) or 'fdr 10%', got {given!r}"
            )
        return cls(made[0], made[1], text)

    @staticmethod
    def _read(text: str) -> tuple[Literal["slices", "time", "fdr"], float] | None:
        if found := _FDR.fullmatch(text):
            return "fdr", float(found[1]) / (100 if found[2] else 1)
        if (found := _RATE.fullmatch(text)) and found[2]:
            return "slices", float(found[1]) / int(found[2])
        if found and found[4] in SECONDS:
            return "time", float(found[1]) / (float(found[3] or 1) * SECONDS[found[4]])
        return ("slices", float(text)) if re.fullmatch(r"[0-9.eE+-]+", text) else None

    def per_slice(self, step: float | None) -> float:
        """Expected false incidents per slice; ``step`` is the time between slices in seconds."""
        if self.kind == "fdr":
            raise ValueError("a false-discovery rate has no fixed number of false incidents per slice")
        if self.kind == "slices":
            return min(self.value, LARGEST)
        if step is None:
            raise ValueError(
                f"false_alarms={self.text!r} needs to know how long a slice lasts: give times (as dates), or step in "
                "seconds (--slice-seconds), or ask for a number in n slices, '1/1000'"
            )
        return min(self.value * step, LARGEST)


def online_fdr(slice_number: int, discoveries: list[int], level: float) -> float:
    """LORD++: the level of the test of this slice (from 0), so that the false-discovery rate stays below ``level``.

    α_t = γ_t w₀ + (α − w₀) γ_{t−τ₁} + α Σ_{j≥2} γ_{t−τ_j}, where τ are the slices in which something was found before
    and w₀ = α / 2 (Ramdas, Yang, Wainwright and Jordan, Online control of the false discovery rate with decaying
    memory, 2017). O(discoveries).
    """
    wealth = level / 2 * _gamma(slice_number + 1)
    for position, found in enumerate(discoveries):
        reward = level / 2 if position == 0 and len(discoveries) < _KEPT else level
        wealth += reward * _gamma(slice_number - found)
    return min(wealth, LARGEST)


def sure(surprise: float, level: float) -> float:
    """Fraction of real ones among incidents like this one, if real ones are as frequent as the false ones accepted."""
    return 1 / (1 + math.exp(min(-surprise - math.log(level), 700.0)))


def remembered(discoveries: list[int], slice_number: int) -> list[int]:
    """With one more; the oldest count for next to nothing."""
    return [*discoveries, slice_number][-_KEPT:]


def _gamma(position: int) -> float:
    """Weights that sum to 1 over 1, 2, 3, …"""
    if position < 1:
        return 0.0
    return 0.0722 * math.log(max(position, 2)) / (position * math.exp(math.sqrt(math.log(position))))
