"""How good an answer is: errors of the low rank, detection of outliers, calibration, picture quality.

All functions take arrays of one shape and return a float. ``where`` (bool) restricts them to some entries, for example
the hidden ones. Where nothing is left to compare the answer is NaN, never a flattering 0.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_Scalar = TypeVar("_Scalar", bound=np.generic)


def relative_error(estimate: ArrayLike, truth: ArrayLike, where: ArrayLike | None = None) -> float:
    """‖estimate − truth‖ / ‖truth‖; infinite where the truth is 0 and the estimate is not."""
    x, y = _floats(where, estimate=estimate, truth=truth)
    if x.size == 0:
        return math.nan
    wrong, size = _norm(x - y), _norm(y)
    if size == 0:
        return 0.0 if wrong == 0 else math.inf
    return wrong / size


def rmse(estimate: ArrayLike, truth: ArrayLike, where: ArrayLike | None = None) -> float:
    """Root of the mean squared error."""
    x, y = _floats(where, estimate=estimate, truth=truth)
    return _norm(x - y) / math.sqrt(x.size) if x.size else math.nan


def f1(predicted: ArrayLike, actual: ArrayLike, where: ArrayLike | None = None) -> float:
    """2·TP / (2·TP + FP + FN): harmonic mean of precision and recall. NaN if there is nothing to find nor found."""
    guess, real = _bools(where, predicted=predicted, actual=actual)
    total = int(guess.sum()) + int(real.sum())
    return 2 * int((guess & real).sum()) / total if total else math.nan


def average_precision(scores: ArrayLike, actual: ArrayLike, where: ArrayLike | None = None) -> float:
    """Σ_k (recall_k − recall_{k−1}) · precision_k over all thresholds, equal scores taken together."""
    values, real = _scores(scores, actual, where)
    positives = int(real.sum())
    if positives == 0:
        return math.nan
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), values.size - 1)  # the last of every run of equal scores
    found = np.cumsum(real[order])[ends]
    precision = found / (ends + 1)
    return float(np.sum(np.diff(found, prepend=0) * precision) / positives)


def coverage(
    truth: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 1.96, where: ArrayLike | None = None
) -> float:
    """Fraction of entries with |truth − mean| ≤ level · std; 0.95 is right for the default level and normal errors."""
    y, centre, width = _floats(where, truth=truth, mean=mean, std=std)
    return float(np.mean(np.abs(y - centre) <= level * width)) if y.size else math.nan


def psnr(
    estimate: ArrayLike, truth: ArrayLike, data_range: float | None = None, where: ArrayLike | None = None
) -> float:
    """Peak signal-to-noise ratio, 20 log₁₀(range / rmse), in dB; the range defaults to that of the truth."""
    peak = _data_range(truth, data_range)
    error = rmse(estimate, truth, where)
    if error == 0:
        return math.inf
    return 20 * math.log10(peak / error) if not math.isnan(error) else math.nan


def ssim(estimate: ArrayLike, truth: ArrayLike, data_range: float | None = None) -> float:
    """Structural similarity of two pictures (or volumes), by scikit-image."""
    try:
        from skimage.metrics import structural_similarity
    except ImportError:
        raise ImportError("ssim needs scikit-image: pip install 'undertow[bench]'") from None
    x, y = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    _same_shape(estimate=x, truth=y)
    if min(x.shape, default=0) < 3:
        raise ValueError(f"estimate must be a picture of at least 3×3, got shape {x.shape}: use psnr for smaller ones")
    window = min(7, min(x.shape) - (1 - min(x.shape) % 2))  # scikit-image wants an odd window that fits
    return float(structural_similarity(y, x, data_range=_data_range(truth, data_range), win_size=window))


def _data_range(truth: ArrayLike, data_range: float | None) -> float:
    size = float(np.ptp(np.asarray(truth, dtype=np.float64))) if data_range is None else float(data_range)
    if not (math.isfinite(size) and size > 0):
        raise ValueError(f"data_range must be a positive number, got {size}: pass it where the truth is constant")
    return size


def _norm(x: Floats) -> float:
    """Euclidean norm that neither overflows at 1e200 nor vanishes at 1e-200."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.sum((x / largest) ** 2)))


def _floats(where: ArrayLike | None, **arrays: ArrayLike) -> list[Floats]:
    return [_select(np.asarray(a, dtype=np.float64), where) for a in _checked(arrays)]


def _bools(where: ArrayLike | None, **arrays: ArrayLike) -> list[NDArray[np.bool_]]:
    return [_select(np.asarray(a, dtype=np.bool_), where) for a in _checked(arrays)]


def _scores(scores: ArrayLike, actual: ArrayLike, where: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
    values, real = _checked({"scores": scores, "actual": actual})
    chosen = _select(np.asarray(values, dtype=np.float64), where)
    if np.isnan(chosen).any():
        raise ValueError("scores must not hold NaN: exclude those entries with where")
    return chosen, _select(np.asarray(real, dtype=np.bool_), where)


def _checked(arrays: dict[str, ArrayLike]) -> list[NDArray[Any]]:
    made = {name: np.asarray(a) for name, a in arrays.items()}
    _same_shape(**made)
    return list(made.values())


def _same_shape(**arrays: NDArray[Any]) -> None:
    (first, one), *rest = arrays.items()
    for name, other in rest:
        if other.shape != one.shape:
            raise ValueError(
                f"{name} must have the shape of {first}, {one.shape}, got {other.shape}: compare like with like"
            )


def _select(x: NDArray[_Scalar], where: ArrayLike | None) -> NDArray[_Scalar]:
    if where is None:
        return x.ravel()
    chosen = np.asarray(where, dtype=np.bool_)
    if chosen.shape != x.shape:
        raise ValueError(f"where must have the shape of the arrays, {x.shape}, got {chosen.shape}: one bool per entry")
    return x[chosen]
