"""``resize``: slices made smaller (or larger) by averaging over areas; what is missing does not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_slice_shape
from undertow.sources.preparation.selecting import mode_number

Floats = NDArray[np.floating[Any]]


def new_shape(resize: Any, shape: tuple[int, ...], dims: tuple[str, ...], name: str) -> tuple[int, ...]:
    """The shape that ``resize`` asks for: ``"72x88"`` (rows x columns), ``0.5``, a tuple, or sizes by mode.

    Factors and texts concern the first two modes; a tuple concerns as many modes as it has sizes.
    """
    if resize is None:
        return shape
    wanted = list(shape)
    try:
        if isinstance(resize, Mapping):
            for key, size in resize.items():
                wanted[mode_number(key, dims)] = _integer(size)
        else:
            for mode, size in enumerate(_sizes(resize, shape)):
                wanted[mode] = size
    except StreamError:
        raise
    except (ValueError, IndexError, OverflowError, TypeError):
        raise StreamError(
            f"resize must be a factor, sizes such as 72x88 or a size per mode of {name}, got {resize!r}"
        ) from None
    if min(wanted) < 1:
        raise StreamError(f"resize must leave at least one entry in each mode of {name}, got {resize!r}")
    check_slice_shape(name, tuple(wanted))
    return tuple(wanted)


def _sizes(resize: Any, shape: tuple[int, ...]) -> list[int]:
    if isinstance(resize, str):
        if re.fullmatch(r"\s*\d+(\s*[x×,]\s*\d+)+\s*", resize):
            return [int(size) for size in re.split(r"[x×,]", resize)]
        resize = float(resize)
    if isinstance(resize, (int, float)):
        if not resize > 0:
            raise ValueError
        return [max(1, round(size * resize)) for size in shape[:2]]
    return [_integer(size) for size in resize]


def _integer(size: Any) -> int:
    if int(size) != float(size):
        raise ValueError
    return int(size)


class Resizer:
    """Averages over areas, one mode after the other: each new entry is the mean of the old ones under it."""

    def __init__(self, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        self._modes = [(mode, *_overlaps(a, b)) for mode, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]

    def __call__(self, values: Floats) -> Floats:
        """The slice in its new shape; an entry without any observation under it is missing."""
        if not self._modes:
            return values
        observed = ~np.isnan(values)
        total, weight = np.where(observed, values, 0).astype(np.float64), observed.astype(np.float64)
        everything = bool(observed.all())
        for mode, indices, weights in self._modes:
            total = _along(total, mode, indices, weights)
            if not everything:
                weight = _along(weight, mode, indices, weights)
        if not everything:
            with np.errstate(invalid="ignore", divide="ignore"):
                total = np.where(weight > 1e-9, total / weight, np.nan)
        return total.astype(values.dtype)


def _along(
    values: NDArray[np.float64], mode: int, indices: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weighted sums of the few entries under each new one; a matrix product would multiply by zeros nearly always."""
    column = (-1, *(1 for _ in values.shape[mode + 1 :]))
    total = values.take(indices[0], axis=mode) * weights[0].reshape(column)
    for index, weight in zip(indices[1:], weights[1:], strict=True):
        total += values.take(index, axis=mode) * weight.reshape(column)
    return np.asarray(total)


def _overlaps(old: int, new: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The k-th old entry under each new one, and the fraction of the new one it covers; fractions sum to 1 over k."""
    low, high = (np.arange(new + shift, dtype=float)[shift:] * (old / new) for shift in (0, 1))
    first = np.floor(low).astype(np.intp)
    most = int(np.ceil(high - first).max())
    indices = first + np.arange(most)[:, None]
    covered = np.clip(np.minimum(high, indices + 1) - np.maximum(low, indices), 0, None)
    covered[indices >= old] = 0
    return np.minimum(indices, old - 1), np.asarray(covered / covered.sum(axis=0))
