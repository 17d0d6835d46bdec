"""Volume under the surface: how well a score per slice finds labelled ranges that nobody labelled to the slice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def vus_pr(score: ArrayLike, faulty: ArrayLike, buffer: int = 100) -> float:
    """Area under precision and recall, averaged over how generously the ends of the labelled ranges are drawn.

    For a buffer of ℓ slices a slice at distance d ≤ ℓ/2 from a range counts √(1 − d/ℓ), one inside it counts 1; call
    that soft label y. Of the slices P with a score at or above a threshold

        precision = Σ_P y / |P|,    recall = min(1, Σ_P y / (n + ½ Σ_P (y − label))) · (ranges touched / ranges),

    with n labelled slices; ranges that their buffers join are one. The area is Σ (recall_k − recall_{k−1}) precision_k
    over all thresholds, equal scores taken together, and the answer its mean over ℓ = 0..buffer.
    (Paparrizos et al., Volume under the surface, PVLDB 15(11), 2022; half of the buffer counts as positive as far as it
    is found, as in the published tables of TSB-AD. They sample 250 thresholds; here all are used.)
    Cost: O(T log T + buffer · T).

    Args:
        score: (T,), larger = more suspicious.
        faulty: (T,), True during a labelled fault.
        buffer: the largest ℓ.

    Returns:
        0 to 1; NaN where nothing is labelled.

    Example:
        >>> vus_pr([0, 0, 1, 1, 0, 0], [False, False, True, True, False, False], buffer=0)
        1.0
    """
    values, labels = np.asarray(score, dtype=np.float64), np.asarray(faulty, dtype=np.bool_)
    if values.ndim != 1 or values.shape != labels.shape:
        raise ValueError(f"score and faulty must be as long as each other, got {values.shape} and {labels.shape}")
    if np.isnan(values).any():
        raise ValueError("score must not hold NaN: give slices without a score the smallest one")
    if not labels.any():
        return math.nan
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), values.size - 1)  # the last of every run of equal scores
    return float(np.mean([_area(values, labels, length, order, ends) for length in range(buffer + 1)]))


def soft_labels(faulty: Bools, length: int) -> Floats:
    """1 inside a labelled range, √(1 − d/length) at distance d ≤ length/2 from it; buffers that meet add up to 1."""
    soft = faulty.astype(np.float64)
    for begin, end in ranges(faulty):
        for d in range(1, length // 2 + 1):
            for t in (begin - d, end - 1 + d):
                if 0 <= t < soft.size:
                    soft[t] += math.sqrt(1 - d / length)
    return np.minimum(soft, 1.0)


def ranges(true: NDArray[Any]) -> list[tuple[int, int]]:
    """Runs of True as (first, one past the last)."""
    steps = np.diff(true.astype(np.int8), prepend=0, append=0)
    return list(zip(np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist(), strict=True))


def _area(score: Floats, faulty: Bools, length: int, order: NDArray[np.intp], ends: NDArray[np.intp]) -> float:
    soft = soft_labels(faulty, length)
    found = np.cumsum(soft[order])[ends]
    inside = np.cumsum(faulty[order])[ends]
    peaks = np.sort([score[begin:end].max() for begin, end in ranges(soft > 0)])
    touched = 1 - np.searchsorted(peaks, score[order][ends], side="left") / peaks.size
    recall = np.minimum(found / (faulty.sum() + (found - inside) / 2), 1.0) * touched
    return float(np.sum(np.diff(recall, prepend=0.0) * found / (ends + 1)))
