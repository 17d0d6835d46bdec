"""The two halves of a slice that are predicted from each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice
from undertow.inputs.sparse import AnySlice


def half(validated: AnySlice, steps: int) -> NDArray[np.bool_]:
    """Which entries belong to the first half: by a hash of position and time, so the same however they are stored."""
    if isinstance(validated, Slice):
        return half_of_shape(validated.shape, steps)
    with np.errstate(over="ignore"):
        flat = np.zeros(validated.values.size, np.uint64)
        for index, size in zip(validated.indices, validated.shape, strict=True):
            flat = flat * np.uint64(size) + index.astype(np.uint64)
    return _coin(flat, steps)


def half_of_shape(shape: tuple[int, ...], steps: int) -> NDArray[np.bool_]:
    """The same for all entries of a slice."""
    return _coin(np.arange(math.prod(shape), dtype=np.uint64).reshape(shape), steps)


def _coin(flat: NDArray[np.uint64], steps: int) -> NDArray[np.bool_]:
    """A fair coin for each flat position, by splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (flat + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(steps) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    heads: NDArray[np.bool_] = (mixed >> np.uint64(63)) == 1
    return heads
