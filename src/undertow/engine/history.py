"""What the host remembers of the slices before: do the data repeat themselves, and was the first slice a bad one?

- A slice that is exactly equal to the one before it, twice in a row and more, says nothing new: learned over and over
  it would pass for a stream without noise. From the second repeat on it is not learned, and nothing in it is an
  outlier. A stream that has never been anything else is learned for two windows first: it may be constant by nature.
- The unit of a stream comes from its first data. As long as few slices have confirmed it, `ODD_SLICES` in a row that
  agree with each other and differ from it by more than `ODD_RATIO` revise it: the model starts anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.inputs.dense import Slice
from undertow.inputs.scaling import first_unit, first_units
from undertow.inputs.sparse import AnySlice, Entries
from undertow.model.flags import Flags

FROZEN_REPEATS = 2
"""Repeats from which on a slice is not learned: one alone may be chance, where data are small integers."""
CONSTANT_WINDOWS = 2
"""Windows for which a stream that has only ever repeated itself is learned."""
ODD_RATIO = 1e3
"""Ratio of the size of the data to the unit beyond which they contradict each other."""
ODD_SLICES = 3
"""Slices in a row that revise the unit, and slices that confirm it for good."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of one stream, or arrays (n,) of many.

    Attributes:
        seen: Slices seen, learned or not.
        repeats: Slices in a row up to the last that were equal to the one before.
        held: How many of these were not learned.
        usual: Slices that have confirmed the unit, up to `ODD_SLICES`.
        odd: Slices in a row up to the last that contradict the unit, and agree with each other.
        odd_size: Size of the last of these.
    """

    seen: Any = 0
    repeats: Any = 0
    held: Any = 0
    usual: Any = 0
    odd: Any = 0
    odd_size: Any = 0.0

    @property
    def confirmed(self) -> Any:
        """Whether the unit is there to stay, so that sizes need not be looked at."""
        return self.usual >= ODD_SLICES


COUNTS: dict[str, type[int] | type[float]] = {
    "seen": int,
    "repeats": int,
    "held": int,
    "usual": int,
    "odd": int,
    "odd_size": float,
}
"""Names of the counts, and what they are."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is to be done with a slice; numbers, or arrays (n,) of many streams.

    Attributes:
        counts: After the slice.
        repeated: Whether the data repeat themselves: nothing is an outlier.
        frozen: Whether the slice is not to be learned.
        revised: Whether the model is to start anew, with a new unit.
        flags: What the host has noticed.
        since: First of the slices that are all equal, counted from 0; −1 where the data do not repeat themselves.
    """

    counts: Counts
    repeated: Any
    frozen: Any
    revised: Any
    flags: Any
    since: Any


def judge(before: Counts, same: Any, size: Any, unit: Any, learned: Any, window: int) -> Verdict:
    """What to do with a slice.

    Args:
        before: Counts before the slice.
        same: Whether it is equal to the slice before it.
        size: Median size of what is observed and not 0; 0 if there is nothing or the unit is confirmed.
        unit: The unit of the stream; 0 if it has none yet.
        learned: Slices that the state has learned.
        window: Slices in the window.
    """
    repeats = np.where(same, before.repeats + 1, 0)
    held = np.where(same, before.held, 0)
    repeated = repeats >= FROZEN_REPEATS
    varied = learned > repeats - held
    frozen = repeated & (varied | (learned >= CONSTANT_WINDOWS * window))

    informative = np.greater(size, 0) & np.greater(unit, 0) & ~np.asarray(before.confirmed)
    odd_now = informative & _apart(size, unit)
    agrees = (before.odd > 0) & np.logical_not(_apart(size, before.odd_size))
    odd = np.where(odd_now, np.where(agrees, before.odd + 1, 1), np.where(informative, 0, before.odd))
    revised = odd_now & (odd >= ODD_SLICES)
    frozen = frozen & ~revised
    flags = np.where(repeated, Flags.REPEATED.value, 0) | np.where(
        revised, Flags.RESTARTED.value, np.where(odd_now, Flags.CHANGED.value, 0)
    )
    counts = Counts(
        seen=before.seen + 1,
        repeats=repeats,
        held=held + frozen,
        usual=np.where(revised, 0, before.usual + (informative & ~odd_now & ~np.asarray(same))),
        odd=np.where(revised, 0, odd),
        odd_size=np.where(odd_now & ~revised, size, np.where(informative, 0.0, before.odd_size)),
    )
    return Verdict(counts, repeated, frozen, revised, flags, np.where(repeated, before.seen - repeats, -1))


def judge_members(
    before: Counts, last: Slice, validated: Slice, here: Any, units: Any, learned: Any, window: int
) -> Verdict:
    """`judge` for one slice of each of many streams; who is absent keeps the counts.

    Args:
        before: Counts (n,) before the slices.
        last: The slices before (n, I_1, …), nothing observed where there were none.
        validated: The slices.
        here: Who is present (n,).
        units: Units of the streams (n,).
        learned: Slices that their states have learned (n,).
        window: Slices in the window.
    """
    axes = tuple(range(1, validated.values.ndim))
    same = (validated.values == last.values).all(axis=axes) & (validated.mask == last.mask).all(axis=axes)
    same &= here & validated.mask.any(axis=axes)
    looked_at = here & (units > 0) & ~before.confirmed
    sizes = np.zeros(len(units))
    if looked_at.any():
        sizes[looked_at] = first_units(Slice(validated.values[looked_at], validated.mask[looked_at]))
    after = judge(before, same, sizes, units, learned, window)
    counts = {name: np.where(here, getattr(after.counts, name), getattr(before, name)) for name in COUNTS}
    flags = np.where(here, after.flags | np.where(validated.filled, Flags.FILL_VALUES.value, 0), 0)
    return Verdict(
        Counts(**counts),
        after.repeated & here,
        after.frozen & here,
        after.revised & here,
        flags.astype(np.int32),
        np.where(here, after.since, -1),
    )


def _apart(one: Any, other: Any) -> Any:
    """Whether two sizes differ by more than `ODD_RATIO`; without a quotient, which might overflow."""
    return (one / ODD_RATIO > other) | (other / ODD_RATIO > one)


@dataclass(frozen=True, eq=False)
class History:
    """What is remembered of a single stream.

    Attributes:
        counts: Its counts.
        last: The last slice, or its digest where that was read from a file; None before the first.
    """

    counts: Counts = Counts()
    last: AnySlice | str | None = None

    @classmethod
    def from_header(cls, stored: dict[str, Any] | None, steps: int) -> History:
        """From a checkpoint; of a stream with this many slices, where the checkpoint says nothing."""
        if stored is None:
            return cls(Counts(seen=steps, usual=ODD_SLICES))
        numbers = {name: kind(stored[name]) for name, kind in COUNTS.items()}
        return cls(Counts(**numbers), str(stored["last"]) if stored["last"] else None)

    def to_header(self) -> dict[str, Any]:
        """For a checkpoint: plain numbers, and the digest of the last slice."""
        numbers = {name: getattr(self.counts, name) for name in COUNTS}
        return {**numbers, "last": self.last if isinstance(self.last, str | None) else digest(self.last)}

    def judge(self, validated: AnySlice, unit: float, learned: int, window: int) -> tuple[History, Verdict]:
        """What to do with the next slice, and the history with it."""
        size = 0.0 if self.counts.confirmed else first_unit(validated)
        verdict = judge(self.counts, self._same(validated), size, unit, learned, window)
        plain = {name: kind(getattr(verdict.counts, name)) for name, kind in COUNTS.items()}
        return History(Counts(**plain), validated), verdict

    def _same(self, validated: AnySlice) -> bool:
        """Whether the slice is that of before. Slices without any data are not compared: gaps are no repeats."""
        if self.last is None or not validated.mask.any():
            return False
        if isinstance(self.last, str):
            return digest(validated) == self.last
        return equal(self.last, validated)


REPEATS_ONLY = History(Counts(usual=ODD_SLICES))
"""Before the first slice of a model that takes care of its unit."""


def equal(one: AnySlice, other: AnySlice) -> bool:
    """Whether two slices hold the same; nearly always a few entries tell."""
    if one.values.shape != other.values.shape or not np.array_equal(one.values.flat[:64], other.values.flat[:64]):
        return False
    if isinstance(one, Entries) and isinstance(other, Entries):
        pairs = zip(one.indices, other.indices, strict=True)
        if not all(np.array_equal(mine, yours) for mine, yours in pairs):
            return False
    return np.array_equal(one.values, other.values) and np.array_equal(one.mask, other.mask)


def digest(validated: AnySlice) -> str:
    """The same for equal slices, whatever their precision."""
    found = hashlib.blake2b(np.add(validated.values, 0.0, dtype=np.float64).tobytes(), digest_size=16)
    found.update(validated.mask.tobytes())
    for index in () if isinstance(validated, Slice) else validated.indices:
        found.update(index.tobytes())
    return found.hexdigest()
