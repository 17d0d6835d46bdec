"""How unusual: tail probabilities that are learned from the stream itself, as surprise E = −log p.

Three steps, each of which corrects the one before it by what has been seen:

1. `reference`: of a standardised innovation, as if its law were Student's t with four degrees of freedom.
2. `PooledLaw`: by the histogram of all entries; beyond its 2 % quantile an exponential tail of E, which is a power tail
   of the innovation. A normal law gives a short one, heavy tails a long one.
3. `Tails`: of each group (an entry, a row, or the largest surprise of a slice) by its own excesses over a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS, WIDTH = 400, 0.1
"""Of the histogram of E."""
PRIOR_ENTRIES = 50.0
"""Observations that the prior of the pooled law is worth."""
TAIL = 0.02
"""Fraction of observations that the exponential tail is fitted to."""
POOLED_MEMORY = 0.99
"""Per slice."""
PRIOR_EXCESSES = 5.0
"""That the prior of the pooled tail, E exponential with mean 1, is worth."""


def reference(innovation: Floats) -> Floats:
    """−log P(|T₄| > |u|), in closed form: p = (1 − s)² (2 + s) / 2 with s = |u| / √(4 + u²)."""
    size = np.minimum(np.abs(innovation), 1e8)
    root = np.sqrt(4 + size**2)
    rest = 4 / (root * (root + size))  # 1 − s without cancellation
    return np.asarray(-np.log(rest**2 * (3 - rest) / 2))


@dataclass
class PooledLaw:
    """Discounted histogram of the reference surprise of all entries (BINS,)."""

    counts: Floats = field(default_factory=lambda: PRIOR_ENTRIES * -np.diff(np.exp(-WIDTH * np.arange(BINS + 1))))

    def surprise(self, given: Floats) -> Floats:
        """−log p of each by the law of all entries lately."""
        above = np.append(np.cumsum(self.counts[::-1])[::-1], 0) / self.counts.sum()
        start = int(np.flatnonzero(above >= TAIL)[-1])
        threshold, excess = WIDTH * start, WIDTH * (np.arange(start, BINS) + 0.5 - start)
        number = PRIOR_EXCESSES + self.counts[start:].sum()
        total = PRIOR_EXCESSES + self.counts[start:] @ excess
        edges = WIDTH * np.arange(start + 1)
        inside = np.interp(given, edges, -np.log(above[: start + 1]))
        beyond = -np.log(above[start]) + number * np.log1p(np.maximum(given - threshold, 0) / total)
        return np.asarray(np.where(given <= threshold, inside, beyond))

    def learn(self, given: Floats) -> None:
        """With the entries of one more slice."""
        if given.size:
            place = np.minimum(given / WIDTH, BINS - 1).astype(np.int64)
            self.counts = POOLED_MEMORY * self.counts + np.bincount(place, minlength=BINS)


@dataclass
class Tails:
    """Peaks over a threshold, for each of G groups.

    P(E > x) = ζ (1 + (x − τ) / b)^−a for x > τ: the predictive law of an exponential excess whose mean has been seen
    a times with total b, and a rate ζ of excesses; both with priors that say E is exponential with mean 1.

    Attributes:
        slices: Discounted number of slices seen (G,).
        excesses: Of these, beyond the threshold.
        total: Sum of what they were beyond it by.
        threshold: τ.
        worth: Slices that the prior of ζ is worth.
        prior: Excesses that the prior of their mean is worth.
    """

    slices: Floats
    excesses: Floats
    total: Floats
    threshold: float
    worth: float
    prior: float

    @classmethod
    def new(cls, groups: int, threshold: float, worth: float, prior: float) -> Tails:
        """Nothing seen."""
        zero = np.zeros(groups)
        return cls(zero, zero.copy(), zero.copy(), threshold, worth, prior)

    def surprise(self, given: Floats) -> Floats:
        """−log p of each group; NaN stays NaN."""
        usual = float(np.exp(-self.threshold))
        rate = (self.excesses + self.worth * usual) / (self.slices + self.worth)
        number, total = self.excesses + self.prior, self.total + self.prior
        height = -np.log(rate)
        beyond = height + number * np.log1p(np.maximum(given - self.threshold, 0) / total)
        return np.where(given <= self.threshold, given * height / self.threshold, beyond)

    def learn(self, given: Floats, memory: float, weight: Floats | float = 1.0) -> None:
        """With one more slice, in which groups of weight 0 do not count; ``memory`` is the number of slices kept."""
        weight = np.where(np.isnan(given), 0.0, weight)
        keep = np.where(weight > 0, 1 - 1 / memory, 1.0)
        excess = np.maximum(np.nan_to_num(given) - self.threshold, 0)
        self.slices = keep * self.slices + weight
        self.excesses = keep * self.excesses + weight * (excess > 0)
        self.total = keep * self.total + weight * excess


def largest(surprises: Floats, groups: int) -> float:
    """Surprise of the largest among independent groups: −log(1 − (1 − p)^n)."""
    if not groups:
        return 0.0
    log_below = groups * np.log1p(-np.exp(-np.maximum(np.max(surprises), 1e-9)))
    return float(-np.log(-np.expm1(np.minimum(log_below, -1e-300))))


def combined(total: Floats, number: Floats) -> Floats:
    """−log P(sum of ``number`` exponential surprises > total), by Wilson and Hilferty's cube root."""
    ninth = 1 / (9 * np.maximum(number, 1))
    z = (np.cbrt(total / np.maximum(number, 1)) - (1 - ninth)) / np.sqrt(ninth)
    away = np.abs(z)
    log_tail = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) + np.log(2 / (away + np.sqrt(z**2 + 8 / np.pi)))
    return np.asarray(np.where(z > 0, -log_tail, -np.log1p(-np.minimum(np.exp(log_tail), 0.5))))
