"""How unlike a slice, and those just before it, are to the whole past: a number that does not get used to what lasts.

A tracker follows its stream: a fault of hours is expected after a while. This compares every entry with all that was
ever observed of it, over several durations,

    u = (x − m) / s, bounded          m, s: mean and standard deviation of the entry over its past
    a_d ← a_d + (u − a_d) / min(n, d)         averages over the last d of its n observations
    novelty = mean over observed entries and durations of min(a_d² / mean of a_d² over the past, bound²)

so that it is about 1 on average, whatever the unit, the season, the tails or the noise of an entry. What is rare for a
single slice is found by the shortest duration, what is only odd in lasting so long by the longer ones. Nothing is
forgotten: what is new becomes usual as it becomes a part of the past. Cost: O(entries), on the host, double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice

DURATIONS = np.array([1, 10, 100, 1000])[:, None]
"""Observations that an entry is averaged over."""
BOUND = 10.0
"""Standard deviations beyond which nothing is more unusual: one gross error does not make an entry blind."""
FEW = 10
"""Observations of an entry, and averages of it one after the other, from which their usual spread is not yet known."""
LARGEST = 1e150
"""Distance whose square is still a number."""
LARGEST_SLICE = 40_000
"""Entries of a slice; larger ones have no novelty, as they have no season."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Novelty:
    """What is known of the past of every entry.

    Attributes:
        count: Observations (n,).
        mean: Of them (n,).
        variance: Of them (n,).
        averages: a_d (D, n).
        squares: Mean of a_d² over the past (D, n).
        newest: Of the newest slice; NaN where nothing in it was observed, or nothing before it.
    """

    count: Floats
    mean: Floats
    variance: Floats
    averages: Floats
    squares: Floats
    newest: float = float("nan")

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(part.nbytes for part in (self.count, self.mean, self.variance, self.averages, self.squares))


def start(entries: int) -> Novelty | None:
    """Nothing observed; None of large slices."""
    if entries > LARGEST_SLICE:
        return None
    each, every = np.zeros(entries), np.zeros((len(DURATIONS), entries))
    return Novelty(each, each, each, every, every)


def with_slice(known: Novelty | None, given: Slice, repeated: Any = False) -> Novelty | None:
    """With the next slice; one that is the last one again adds nothing."""
    if known is None or repeated:
        return known
    observed = given.mask.ravel()
    judged = observed & (known.count >= FEW)
    count = known.count + observed
    share = observed / np.maximum(count, 1)
    away = np.where(observed, given.values.ravel().astype(np.float64) - known.mean, 0).clip(-LARGEST, LARGEST)
    deviation = np.sqrt(known.variance)
    u = np.where(judged, _over(away, deviation), 0)
    step = np.where(judged & (deviation > 0), u * deviation, away)
    compared = count - FEW  # observations so far
    averages = known.averages + judged / np.clip(compared, 1, DURATIONS) * (u - known.averages)
    counts = judged & (compared > FEW * DURATIONS)
    filled = compared - DURATIONS + 1  # averages over as many
    far = _over(averages, np.sqrt(known.squares)) ** 2
    return Novelty(
        count=count,
        mean=known.mean + share * step,
        variance=(1 - share) * (known.variance + share * step**2),
        averages=averages,
        squares=known.squares + (judged & (filled > 0)) / np.maximum(filled, 1) * (averages**2 - known.squares),
        newest=float(far[counts].mean()) if counts.any() else float("nan"),
    )


def newest(known: Novelty | None) -> float:
    """Of the newest slice."""
    return float("nan") if known is None else known.newest


def _over(number: Floats, deviation: Floats) -> Floats:
    """number / deviation within ± `BOUND`, also where the deviation is 0."""
    reach = BOUND * deviation
    within = np.clip(number, -reach, reach)
    return np.where(deviation > 0, within / np.where(deviation > 0, deviation, 1), BOUND * np.sign(number))
