"""Entries that were observed and then never again, while others were."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SURE = 25.0
"""−log of the probability from which on a silence is none by chance."""


class Silent:
    """Looks for them, slice by slice. A silence is judged by how often the entry was observed before it.

    Args:
        shape: Of a slice.

    Examples:
        >>> silent = Silent((2,))
        >>> for slice_ in 40 * [[1.0, 2.0]] + 40 * [[1.0, np.nan]]:
        ...     silent.add(np.array(slice_))
        >>> silent.found()
        [(1,)]
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._slices = 0
        self._seen: NDArray[Any] = np.zeros(shape, np.int64)
        self._last: NDArray[Any] = np.zeros(shape, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """One more slice; one in which nothing was observed says nothing."""
        observed = ~np.isnan(values)
        if observed.any():
            self._slices += 1
            self._seen += observed
            self._last[observed] = self._slices

    def found(self) -> list[tuple[int, ...]]:
        """Their positions."""
        usual = np.minimum(self._seen / np.maximum(self._last + 1, 1), 0.9)
        surprise = (self._slices - self._last) * -np.log1p(-usual)
        return [tuple(map(int, one)) for one in np.argwhere((self._seen > 0) & (surprise > SURE))]
