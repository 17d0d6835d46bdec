"""Whether a stream has changed its nature lately, as far as its scale depends on that.

Changes of entries are compared by size: those of the older ones of the recent slices with those of the newest. Where
Var(change) ∝ size^p in both, the logarithm of their ratio grows with the size, with the difference of the two p as its
slope; whatever else the changes depend on cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.inputs.dense import Slice
from undertow.tracker.frame import BINS, NARROW, changes, suggested

FEWEST = 10
"""Changes of either half in a bin of sizes."""
FEWEST_BINS = 5
"""Bins in which there are as many."""
SPREAD = 6.0
"""Variance of twice the logarithm of the median of n normal changes, times n."""
LEAST, CERTAIN = 0.8, 4.0
"""Difference of the exponents from which on the nature of the stream is another one, and how many standard errors it
must be: from the linear scale to the root it is 1, and from there to the logarithm again."""


def changed(older: Sequence[Slice], newer: Sequence[Slice]) -> bool:
    """Whether changes of entries grow with their size in another way in the newer of these usual slices."""
    if not (older and newer):
        return False
    difference, error = exponents_apart(older, newer)
    return abs(difference) > max(LEAST, CERTAIN * error) and suggested(older) != suggested(newer)


def exponents_apart(older: Sequence[Slice], newer: Sequence[Slice]) -> tuple[float, float]:
    """The exponent of the newer slices less that of the older ones, and its standard error, infinite if not known."""
    (size, change), (new_size, new_change) = changes(older), changes(newer)
    if not (size.size and new_size.size):
        return 0.0, np.inf
    edges = np.quantile(np.concatenate([size, new_size]), np.arange(1, BINS) / BINS)
    place, new_place = np.searchsorted(edges, size), np.searchsorted(edges, new_size)
    x, ratio, spread = [], [], []
    for number in range(BINS):
        old, new = place == number, new_place == number
        if min(old.sum(), new.sum()) < FEWEST:
            continue
        before, after = np.median(change[old]), np.median(new_change[new])
        if before > 0 and after > 0:
            x.append(np.log(np.concatenate([size[old], new_size[new]])).mean())
            ratio.append(2 * np.log(after / before))
            spread.append(SPREAD * (1 / old.sum() + 1 / new.sum()))
    if len(x) < FEWEST_BINS or np.ptp(x) < np.log(NARROW):
        return 0.0, np.inf
    away = np.array(x) - np.mean(x)
    squares = (away**2).sum()
    slope = float(away @ ratio / squares)
    rest = np.array(ratio) - np.mean(ratio) - slope * away
    variance = max((rest**2).sum() / (len(x) - 2), float(np.mean(spread)))
    return slope, float(np.sqrt(variance / squares))
