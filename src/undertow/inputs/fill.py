"""Well-known fill values: numbers that stand for "missing" in files, and come through where nobody has said so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FILL_VALUES = (9.969209968386869e36, 9.96921e36, 1e20, 1e35, 1e36)
"""NetCDF (and as it is printed), climate models (CMIP), older formats; in single and double precision."""
SMALLEST_FILL = min(FILL_VALUES)
FAR_LARGER = 1e6
"""A fill value is one if it is larger than everything else in its slice by this factor."""
_EXACT = np.unique([number for value in FILL_VALUES for number in (value, float(np.float32(value)))])


def fill_values(values: NDArray[np.floating[Any]], streams: bool = False) -> NDArray[np.bool_] | None:
    """Where well-known fill values stand, exactly, in a slice whose other data are far smaller.

    Args:
        values: A slice, 0 where nothing was observed; or one slice of each of many streams.
        streams: Whether the first axis counts streams, each of which is looked at on its own.

    Returns:
        True where they stand; None if there are none.
    """
    if not values.max(initial=0) >= SMALLEST_FILL * (1 - 1e-6):
        return None
    found = np.isin(values, _EXACT)
    axes = tuple(range(1 if streams else 0, values.ndim))
    others = np.where(found, 0, np.abs(values)).max(axis=axes, keepdims=True, initial=0)
    smallest = np.where(found, values, np.inf).min(axis=axes, keepdims=True, initial=np.inf)
    found &= others < smallest / FAR_LARGER
    return found if found.any() else None
