"""What slices that came later say about earlier ones: two passes, forwards and backwards, combined.

With m the means and s the standard deviations of both passes, and ρ the correlation of their errors, the combination

    mean = w m_f + (1 − w) m_b,     w = (s_b² − ρ s_f s_b) / (s_f² + s_b² − 2 ρ s_f s_b)  in [0, 1]
    std² = w² s_f² + (1 − w)² s_b² + 2 ρ w (1 − w) s_f s_b

is the best one of two unbiased estimates. ρ is measured: both passes predict every observation without having seen it,
and ρ is the correlation of their innovations, per stream. It is no smoother of one model: each pass has its own
predictors and weights. An outlier is one that both passes find unlikely: what lasts does so in only one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
MOST = 0.999
"""Of ρ: two passes that agree in everything say no more than one."""


class Correlation:
    """Of the innovations of two passes, those beyond six standard deviations left out."""

    def __init__(self) -> None:
        self._sums = np.zeros(3)

    def add(self, forwards: Floats, backwards: Floats) -> None:
        """One slice."""
        both = (np.abs(forwards) < 6) & (np.abs(backwards) < 6)  # False for NaN
        a, b = np.asarray(forwards[both], np.float64), np.asarray(backwards[both], np.float64)
        self._sums += [(a * b).sum(), (a * a).sum(), (b * b).sum()]

    def value(self) -> float:
        """ρ; as if the passes agreed where there is nothing to measure."""
        product, first, second = self._sums
        return float(np.clip(product / np.sqrt(first * second), 0, MOST)) if first > 0 and second > 0 else MOST


def combined(means: tuple[Floats, Floats], stds: tuple[Floats, Floats], correlation: float) -> tuple[Floats, Floats]:
    """Mean and std of both passes together."""
    (m_f, m_b), (s_f, s_b) = means, (np.asarray(std, np.float64) for std in stds)
    common = correlation * s_f * s_b
    difference = s_f**2 + s_b**2 - 2 * common
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.clip(np.where(difference > 0, (s_b**2 - common) / difference, 0.5), 0, 1)
    variance = w**2 * s_f**2 + (1 - w) ** 2 * s_b**2 + 2 * w * (1 - w) * common
    dtype = np.asarray(m_f).dtype
    mean = w * np.asarray(m_f, np.float64) + (1 - w) * np.asarray(m_b, np.float64)
    return mean.astype(dtype), np.sqrt(variance).astype(dtype)
