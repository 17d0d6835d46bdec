"""Surprise of every candidate of a slice: its entries, entries that stay off, its rows, and the slice as a whole.

All of it learns from the stream, by what is not part of an incident. Each family of candidates ends in one number, the
surprise of its largest, whose own tail is learned too: so dependence between entries, swings of the noise over the day
and whatever else the law of single entries misses show up there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.grouping import FEWEST, within
from undertow.incidents.incident import Incident
from undertow.incidents.tails import PooledLaw, Tails, combined, largest, reference

FAMILIES = ("entry", "lasting", "row", "slice")
CANDIDATES = len(FAMILIES) + 1
"""Among which the rate of false incidents is divided: the families, and sensors that have died or fallen silent."""
SILENT = 0.2
"""Of the part of sensors that stop, what silent ones have: silences soon become most unlikely, repetitions do not."""
LASTING = 4
"""Slices over which entries that stay off on one side are summed up."""
CAP = 6.0
"""Surprise of a single entry, beyond which it says no more about its row, its slice or its neighbours in time."""
OWN_THRESHOLD, OWN_WORTH, OWN_PRIOR, OWN_MEMORY = 3.0, 200.0, 30.0, 2000.0
"""Of the tails of single groups: where they begin, slices and excesses that their prior is worth, slices remembered."""
FAMILY_THRESHOLD, FAMILY_WORTH, FAMILY_PRIOR = 1.5, 50.0, 20.0
"""Of the tails of families."""
OFF_SURPRISE, OFF_FACTOR = 5.0, 4.0
"""Surprise of a slice that the model calls wrong as a whole, and what it grows by for each factor e in size."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """Of one slice.

    Attributes:
        reference: Of each entry by a fixed law (n,); NaN where nothing was observed.
        pooled: By the law of all entries.
        entry: By the entry's own tail.
        lasting: Of each entry over the last slices; NaN where it is not free.
        row: Of each row of each mode, one after the other; NaN where too little was observed.
        slice: Of the slice, one number.
        raw: Of the groups, before their own tails: by family.
        largest: Of the largest of each family, before the family's tail.
        surprise: −log p of each family.
        free: Entries that are observed and in no open incident.
        whole: Surprise of the slice with all its entries, those of open incidents too.
    """

    reference: Floats
    pooled: Floats
    entry: Floats
    lasting: Floats
    row: Floats
    slice: Floats
    raw: dict[str, Floats]
    largest: Floats
    surprise: Floats
    free: Bools
    whole: float


@dataclass
class Scorer:
    """The laws of one stream.

    Attributes:
        shape: Of a slice.
        law: Of all entries.
        own: Tails of every entry, of every entry over time, of every row, and of the slice.
        family: Tails of the largest of each family (4,).
        recent: Signed surprise of every entry in the last slices in which it was observed (LASTING, n).
        bars: What surprises of groups are divided by, as users said they were false alarms; by family.
        turn: Slices since entries that stay off were last learned from.
    """

    shape: tuple[int, ...]
    law: PooledLaw = field(default_factory=PooledLaw)
    own: dict[str, Tails] = field(default_factory=dict)
    family: Tails = field(
        default_factory=lambda: Tails.new(len(FAMILIES), FAMILY_THRESHOLD, FAMILY_WORTH, FAMILY_PRIOR)
    )
    recent: Floats = field(default_factory=lambda: np.zeros((LASTING, 0)))
    bars: dict[str, Floats] = field(default_factory=dict)
    turn: int = 0

    def __post_init__(self) -> None:
        entries, rows = int(np.prod(self.shape)), sum(self.shape) if len(self.shape) > 1 else 0
        for name, size in zip(FAMILIES, (entries, entries, rows, 1), strict=True):
            self.own[name] = Tails.new(size, OWN_THRESHOLD, OWN_WORTH, OWN_PRIOR)
            self.bars[name] = np.ones(size)
        self.recent = np.zeros((LASTING, entries))

    def score(self, innovation: Floats, owned: Bools, off: float) -> Scores:
        """A slice.

        Args:
            innovation: Standardised (n,); NaN where nothing was observed.
            owned: Entries of open incidents.
            off: Root mean square in standard deviations of a slice that is wrong as a whole; else 0.
        """
        observed = ~np.isnan(innovation)
        free = observed & ~owned
        first = np.where(observed, reference(np.where(observed, innovation, 0)), np.nan)
        pooled = np.where(observed, self.law.surprise(np.where(observed, first, 0)), np.nan)
        entry = self._own("entry", pooled)
        capped = np.where(free, np.minimum(np.nan_to_num(entry), CAP), 0.0)
        signed = np.where(free, self.recent[1:].sum(0) + np.sign(np.nan_to_num(innovation)) * capped, np.nan)
        x = np.abs(signed)
        raw = {
            "entry": pooled,
            "lasting": lasting_surprise(x),
            "row": self._rows(capped, free),
            "slice": np.array([_slice(capped, free, off)]),
        }
        lasting, row, one = (self._own(name, raw[name]) for name in FAMILIES[1:])
        tops = np.array([_top(np.where(free, entry, np.nan)), _top(lasting), _top(row), _top(one)])
        surprise = self.family.surprise(tops)
        whole = surprise[-1]
        if owned.any():
            everywhere = np.where(observed, np.minimum(np.nan_to_num(entry), CAP), 0.0)
            there = self._own("slice", np.array([_slice(everywhere, observed, off)]))
            whole = self.family.surprise(np.append(tops[:-1], _top(there)))[-1]
        return Scores(first, pooled, entry, lasting, row, one, raw, tops, surprise, free, float(whole))

    def learn(
        self, scores: Scores, innovation: Floats, kept: Bools, weight: Floats, memory: float, again: bool = False
    ) -> None:
        """Learn from what is in no incident.

        Args:
            scores: Of the slice.
            innovation: Of the slice.
            kept: Entries that are in none.
            weight: Of the slice for each family (4,).
            memory: Slices that families remember.
            again: Whether the law of all entries learns from those of open incidents, too.
        """
        use = scores.free & kept
        known = ~np.isnan(scores.reference) if again else use
        self.law.learn(scores.reference[known & (self.bars["entry"] == 1)])  # a known false alarm is a case of its own
        self.own["entry"].learn(np.where(use, scores.raw["entry"], np.nan), OWN_MEMORY)
        self.turn = (self.turn + 1) % LASTING
        if self.turn == 0:  # sums that overlap would teach one event several times
            self.own["lasting"].learn(np.where(use, scores.raw["lasting"], np.nan), OWN_MEMORY / LASTING)
        untouched = kept.all() or not scores.free.any()
        if untouched:
            for name in ("row", "slice"):
                self.own[name].learn(scores.raw[name], OWN_MEMORY)
        elif self.own["row"].slices.size:
            # Rows that hold nothing of an incident are as clean as before.
            self.own["row"].learn(np.where(self._row_any(~kept), np.nan, scores.raw["row"]), OWN_MEMORY)
        fresh = np.array([scores.free.any() and (name != "lasting" or self.turn == 0) for name in FAMILIES])
        self.family.learn(np.where(fresh, scores.largest, np.nan), memory, weight)
        signed = np.sign(np.nan_to_num(innovation)) * np.minimum(np.nan_to_num(scores.entry), CAP)
        moved = np.vstack([self.recent[1:], np.where(use, signed, 0.0)])
        self.recent = np.where(scores.free & kept, moved, np.where(kept & ~scores.free, self.recent, 0.0))

    def rows_at(self, places: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
        """(mode, index) of rows by their place among all rows."""
        ends = np.cumsum(self.shape)
        modes = np.searchsorted(ends, places, side="right")
        return tuple((int(m), int(p - ends[m] + self.shape[m])) for m, p in zip(modes, places, strict=True))

    def place_of(self, mode: int, index: int) -> int:
        """The place of a row among all rows."""
        return int(sum(self.shape[:mode])) + index

    def raise_bar(self, incident: Incident, factor: float) -> None:
        """What surprises of its entries and rows, or of slices, are divided by, is multiplied by a factor."""
        bars = self.bars
        if incident.kind in ("slice", "scene"):
            bars["slice"] = bars["slice"] * factor
            return
        where = np.zeros(self.shape, bool)
        for position in incident.entries:
            where[position] = True
        for mode, index in incident.rows:
            bars["row"][self.place_of(mode, index)] *= factor
        inside = (where | within(where, incident.rows)).ravel()
        for name in ("entry", "lasting"):
            bars[name] = np.where(inside, bars[name] * factor, bars[name])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned, by name."""
        found: dict[str, NDArray[Any]] = {"law": self.law.counts, "recent": self.recent, "turn": np.array(self.turn)}
        for name, tails in (*self.own.items(), ("family", self.family)):
            found |= {f"{name}.{part}": getattr(tails, part) for part in ("slices", "excesses", "total")}
        return found | {f"bar.{name}": bar for name, bar in self.bars.items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """What `arrays` gave."""
        own = self.arrays()
        for name, array in own.items():
            if name not in arrays or arrays[name].shape != array.shape:
                raise ValueError(f"the state of incidents does not fit slices of shape {self.shape}: {name} differs")
        self.law.counts, self.recent = (np.array(arrays[name], np.float64) for name in ("law", "recent"))
        self.turn = int(arrays["turn"])
        for name, tails in (*self.own.items(), ("family", self.family)):
            for part in ("slices", "excesses", "total"):
                setattr(tails, part, np.array(arrays[f"{name}.{part}"], np.float64))
        self.bars = {name: np.array(arrays[f"bar.{name}"], np.float64) for name in FAMILIES}

    def _own(self, name: str, raw: Floats) -> Floats:
        return self.own[name].surprise(raw) / self.bars[name]

    def _rows(self, capped: Floats, free: Bools) -> Floats:
        if len(self.shape) < 2:
            return np.zeros(0)
        total, number = self._row_sums(capped), self._row_sums(free.astype(np.float64))
        return np.where(number >= FEWEST, combined(total, number), np.nan)

    def _row_sums(self, values: Floats) -> Floats:
        shaped, modes = values.reshape(self.shape), range(len(self.shape))
        return np.concatenate([shaped.sum(axis=tuple(a for a in modes if a != mode)) for mode in modes])

    def _row_any(self, where: Bools) -> Bools:
        return self._row_sums(where.astype(np.float64)) > 0


def lasting_surprise(size: Floats) -> Floats:
    """−log P(|S| > x), where S sums four independent surprises, exponential, each with a sign by chance.

    S has the density e^−|x| (|x|³ + 6x² + 15|x| + 15) / 96, so P = e^−x (1 + 11x/16 + 3x²/16 + x³/48).
    """
    return np.asarray(size - np.log1p(11 * size / 16 + 3 * size**2 / 16 + size**3 / 48))


def _top(surprises: Floats) -> float:
    known = surprises[~np.isnan(surprises)]
    return largest(known, known.size)


def _slice(capped: Floats, free: Bools, off: float) -> float:
    number = int(free.sum())
    if number < FEWEST:
        return float("nan")
    together = float(combined(capped.sum(keepdims=True), np.array([float(number)]))[0])
    return max(together, OFF_SURPRISE + OFF_FACTOR * float(np.log(max(off, 1.0))) if off else 0.0)
