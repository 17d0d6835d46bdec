"""An array that is already there: NumPy's, or a labelled one of xarray (see ``labelled.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.errors import check_real
from undertow.sources.formats.base import Indexed
from undertow.sources.formats.variables import axis_number, without
from undertow.sources.options import Options


class ArraySource(Indexed):
    """A stream out of memory."""

    format = "array"

    def __init__(self, array: NDArray[Any], name: str, options: Options, default_axis: int = 0) -> None:
        check_real(name, array.dtype)
        axis = axis_number(name, options.time_axis, array.shape, default_axis)
        super().__init__(name, without(array.shape, axis), array.shape[axis])
        self._array = np.moveaxis(array, axis, 0)

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return self._array[start:stop]


def open_array(array: Any, options: Options) -> ArraySource:
    """A NumPy array; a masked one has NaN where it is masked."""
    if isinstance(array, np.ma.MaskedArray):
        check_real("the array", array.dtype)
        array = np.ma.filled(array.astype(np.float64), np.nan)
    return ArraySource(np.asarray(array), "array", options)
