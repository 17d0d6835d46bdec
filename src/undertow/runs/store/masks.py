"""Masks of pictures: what moves, from which pixels are flagged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def filled(flagged: Bools) -> Bools:
    """The flagged pixels (rows, columns) with the gaps between them filled.

    Some of what moves has the colour of what is behind it: a pixel in the middle of flagged ones is part of it, too.
    So gaps of up to two pixels are filled (closing by a square of three by three pixels); whatever was flagged stays,
    and what stands alone does not grow.
    """
    wide = _with_neighbours(np.pad(flagged, 2))
    return ~_with_neighbours(~wide)[2:-2, 2:-2]


def _with_neighbours(picture: Bools) -> Bools:
    """Every pixel that is set or beside one that is, at a corner too."""
    for axis in (0, 1):
        along = np.moveaxis(picture, axis, 0)
        wider = along.copy()
        wider[1:] |= along[:-1]
        wider[:-1] |= along[1:]
        picture = np.moveaxis(wider, 0, axis)
    return picture
