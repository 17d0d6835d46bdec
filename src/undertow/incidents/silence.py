"""How long entries have been without a value, and how unlikely that is, by how often and how long they usually are.

A gap begins after an observation with probability q, and goes on with probability p, each of them learned for every
entry. Of p little is known before an entry has had some gaps: then those of the others count. As p is uncertain, a gap
of k slices has the probability q E(p^{k−1}), the tail of a beta-geometric law. Where gaps are of very different
lengths that is too small: how small it was for gaps that have ended corrects it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.tails import Tails

PRIOR_GAPS, PRIOR_FURTHER = 5.0, 1.5
"""Gaps of the others that count for an entry, and further slices of as many where nobody has had any."""
MEMORY = 5000.0
"""Observations that are remembered."""
THRESHOLD, WORTH, PRIOR, TAIL_MEMORY, LARGEST = 2.0, 50.0, 20.0, 2000.0, 30.0
"""Of the tail of gaps that have ended: where it begins, gaps and excesses that its prior is worth, gaps remembered, and
the most that one says."""
PARTS = ("run", "begun", "long", "heard", "gaps", "further")
TAIL_PARTS = ("slices", "excesses", "total")

Floats = NDArray[np.float64]


@dataclass
class Silence:
    """Of every entry, (n,) each.

    Attributes:
        run: Slices since it was observed.
        begun: −log P(a gap begins) when this one did.
        long: −log P(it lasts as long), by the law of the entry.
        heard: Discounted number of observations.
        gaps: Of these, after a gap.
        further: Slices of these gaps but for their first.
        tail: Of gaps that have ended, of all entries.
    """

    run: Floats
    begun: Floats
    long: Floats
    heard: Floats
    gaps: Floats
    further: Floats
    tail: Tails

    @classmethod
    def new(cls, entries: int) -> Silence:
        """Nothing seen."""
        run, begun, long, heard, gaps, further = (np.zeros(entries) for _ in PARTS)
        return cls(run, begun, long, heard, gaps, further, Tails.new(1, THRESHOLD, WORTH, PRIOR))

    def learn(self, observed: NDArray[np.bool_]) -> None:
        """With one more slice (n,). Who has never been observed is not silent."""
        missing, ended = ~observed & (self.heard > 0), observed & (self.run > 0)
        others = (self.further.sum() + PRIOR_FURTHER) / (self.gaps.sum() + PRIOR_GAPS)
        lasted = np.maximum(self.run - 1, 0)  # beyond its first slice
        ends, goes_on = self.gaps + PRIOR_GAPS, self.further + PRIOR_GAPS * others + lasted
        began = missing & (self.run == 0)
        self._ended(self.long[ended])
        keep = np.where(observed, 1 - 1 / MEMORY, 1.0)
        self.begun = np.where(began, -np.log((self.gaps + 0.5) / (self.heard + 1)), self.begun)
        self.long = np.where(missing & ~began, self.long + np.log1p(ends / goes_on), 0)
        self.heard = keep * self.heard + observed
        self.gaps = keep * self.gaps + ended
        self.further = keep * self.further + np.where(ended, lasted, 0)
        self.run = np.where(missing, self.run + 1, 0)

    def surprise(self) -> Floats:
        """−log P(a gap as long) (n,); 0 where there is none."""
        return np.where(self.run > 0, self.begun + np.minimum(self.long, self.tail.surprise(self.long)), 0)

    def forget(self, which: NDArray[np.bool_]) -> None:
        """These entries have not been seen yet."""
        for part in PARTS:
            setattr(self, part, np.where(which, 0.0, getattr(self, part)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name."""
        known = {f"silence.{part}": getattr(self, part) for part in PARTS}
        return known | {"silence.tail": np.stack([getattr(self.tail, part) for part in TAIL_PARTS])}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """What `arrays` gave; nothing where an earlier version knew of no silence."""
        if "silence.tail" not in arrays:
            return
        for part in PARTS:
            setattr(self, part, np.array(arrays[f"silence.{part}"], np.float64))
        for part, row in zip(TAIL_PARTS, np.array(arrays["silence.tail"], np.float64), strict=True):
            setattr(self.tail, part, row)

    def _ended(self, long: Floats) -> None:
        tail, excess = self.tail, np.clip(long - THRESHOLD, 0, LARGEST)
        keep = (1 - 1 / TAIL_MEMORY) ** long.size
        tail.slices = keep * tail.slices + long.size
        tail.excesses = keep * tail.excesses + (excess > 0).sum()
        tail.total = keep * tail.total + excess.sum()
