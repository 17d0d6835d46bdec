"""Sensors that give the same number for ever, though they did not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST = 12
"""Repetitions below which nobody is called dead."""
PRIOR_RUNS, PRIOR_LOG = 5.0, 1.0
"""Runs of repetitions that the prior is worth, and the sum of their logarithms: they end soon."""
MEMORY = 5000.0
"""Numbers that are remembered."""
PARTS = ("value", "run", "moves", "repeated", "logs")

Floats = NDArray[np.float64]


@dataclass
class Stuck:
    """How long entries stay at one number, (n,) each.

    Attributes:
        value: The last observed; NaN before the first.
        run: How often it has been repeated.
        moves: Discounted count of runs that ended.
        repeated: Of these, with at least one repetition.
        logs: Sum of the logarithms of their lengths.
    """

    value: Floats
    run: Floats
    moves: Floats
    repeated: Floats
    logs: Floats

    @classmethod
    def new(cls, entries: int) -> Stuck:
        """Nothing seen."""
        return cls(np.full(entries, np.nan), *(np.zeros(entries) for _ in PARTS[1:]))

    def learn(self, values: Floats) -> None:
        """With the values of a slice (n,); NaN where nothing was observed."""
        seen = ~np.isnan(values)
        same = seen & (values == self.value)
        moved = seen & ~same & ~np.isnan(self.value)
        keep = np.where(moved, 1 - 1 / MEMORY, 1.0)
        had = moved & (self.run > 0)
        self.moves = keep * self.moves + moved
        self.repeated = keep * self.repeated + had
        self.logs = keep * self.logs + np.where(had, np.log(np.maximum(self.run, 1)), 0)
        self.run = np.where(same, self.run + 1, np.where(seen, 0, self.run))
        self.value = np.where(seen, values, self.value)

    def surprise(self) -> Floats:
        """−log P(as many repetitions): the smaller of what short runs and what long ones let expect.

        Short: each repetition has the same probability q. Long: a power tail P(run ≥ k) = q k^−a, whose exponent has
        been learned from the runs so far. Entries that have never moved are not dead but constant: 0.
        """
        once = -np.log((self.repeated + 0.5) / (self.moves + 1))
        runs = self.repeated + PRIOR_RUNS
        long = once + runs * np.log1p(np.log(np.maximum(self.run, 1)) / (self.logs + PRIOR_LOG))
        found = np.minimum(self.run * once, long)
        return np.asarray(np.where((self.run >= FEWEST) & (self.moves > 0), found, 0.0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name."""
        return {f"stuck.{part}": getattr(self, part) for part in PARTS}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """What `arrays` gave."""
        for part in PARTS:
            setattr(self, part, np.array(arrays[f"stuck.{part}"], np.float64))
