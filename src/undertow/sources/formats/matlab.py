"""MATLAB's ``.mat``: version 7.3 is HDF5 and read slice by slice; older ones (2 GB at most) are read as a whole."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import MAX_LOADED_BYTES, check_real, closed_on_error, import_extra
from undertow.sources.formats.arrays import ArraySource, axis_number, choose, times_name, usable_times, without
from undertow.sources.formats.base import CHUNK_BYTES, Indexed, Source, along, block_length
from undertow.sources.formats.validation import HDF5_MAGIC, check_hdf5_ends, hdf5_datasets
from undertow.sources.options import SourceOptions

_NUMERIC = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def open_mat(path: Path, options: SourceOptions) -> Source:
    """A MATLAB file, axes in MATLAB's order; time is the last axis unless ``time_axis`` says otherwise."""
    with path.open("rb") as file:
        beginning = file.read(1024)
    is_hdf5 = HDF5_MAGIC in (beginning[:8], beginning[512:520]) or beginning.startswith(b"MATLAB 7.3")
    if is_hdf5:
        check_hdf5_ends(path)
        file = import_extra("h5py", "matlab", "A MATLAB 7.3 file").File(path, "r")
        with closed_on_error(file):
            source: Source = HDF5Variable(file, path.name, options)
    else:
        source = _open_old(path, options)
    source.format, source.time_name = "mat", options.time or "time"
    return source


def _open_old(path: Path, options: SourceOptions) -> Source:
    matlab = import_extra("scipy.io", "matlab", "A MATLAB file")
    held = {key: (tuple(shape), kind) for key, shape, kind in matlab.whosmat(path)}
    arrays = {key: shape for key, (shape, kind) in held.items() if kind in _NUMERIC}
    candidates = {key: shape for key, shape in arrays.items() if sum(size > 1 for size in shape) > 1 or len(shape) > 2}
    chosen = choose(path.name, candidates or arrays, options.variable, ", ".join(held))
    if math.prod(arrays[chosen]) * 8 > 4 * MAX_LOADED_BYTES or min(arrays[chosen]) < 1:
        raise StreamError(f"{path.name} claims shape {arrays[chosen]} for {chosen}: save it with -v7.3")
    times = times_name(path.name, arrays, options.time)
    names = [chosen, *([times] if times else [])]
    loaded = matlab.loadmat(path, variable_names=names, verify_compressed_data_integrity=True)
    source = ArraySource(np.asarray(loaded[chosen]), path.name, options, default_axis=-1)
    source.times = usable_times(loaded[times], source.length) if times else None
    return source


class HDF5Variable(Indexed):
    """One variable of a version 7.3 file; HDF5 has the axes in the opposite order."""

    def __init__(self, file: Any, name: str, options: SourceOptions) -> None:
        held = hdf5_datasets(file, name)
        arrays = {key: tuple(item.shape)[::-1] for key, item in held.items()}
        candidates = {key: shape for key, shape in arrays.items() if sum(size > 1 for size in shape) > 1}
        chosen = choose(name, candidates, options.variable, ", ".join(file))
        self._file, self._data, shape = file, held[chosen], arrays[chosen]
        check_real(name, self._data.dtype)
        axis = axis_number(name, options.time_axis, shape, -1)
        self._axis = len(shape) - 1 - axis
        slice_shape, length = without(shape, axis), shape[axis]
        best = self._data.chunks[self._axis] if self._data.chunks else 1
        block = block_length(slice_shape, self._data.dtype.itemsize, best, CHUNK_BYTES)
        super().__init__(name, slice_shape, length, block=block)
        times = times_name(name, arrays, options.time)
        self.times = usable_times(held[times][()], length) if times and held[times].size == length else None

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        block = along(self._data, self._axis, start, stop)
        return block.transpose(0, *range(block.ndim - 1, 0, -1))

    def close(self) -> None:  # noqa: D102
        super().close()
        self._file.close()
