"""An array in memory: NumPy's; labelled ones of xarray are in ``labelled.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.errors import check_real
from undertow.sources.formats.base import Indexed, along
from undertow.sources.formats.variables import axis_number, without
from undertow.sources.options import SourceOptions


class ArraySource(Indexed):
    """Slices along one axis of an array."""

    format = "array"

    def __init__(self, array: NDArray[Any], name: str, options: SourceOptions, default_axis: int = 0) -> None:
        check_real(name, array.dtype)
        self._array, self._axis = array, axis_number(name, options.time_axis, array.shape, default_axis)
        super().__init__(name, without(array.shape, self._axis), array.shape[self._axis])

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return along(self._array, self._axis, start, stop)


def open_array(array: Any, options: SourceOptions) -> ArraySource:
    """A NumPy array; a masked one has NaN where it is masked."""
    if isinstance(array, np.ma.MaskedArray):
        check_real("the array", array.dtype)
        array = np.ma.filled(array.astype(np.float64), np.nan)
    return ArraySource(np.asarray(array), "array", options)
