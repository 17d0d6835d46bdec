"""MATLAB's ``.mat``: version 7.3 is HDF5 and read slice by slice; older ones hold at most 2 GB and are read at once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import MAX_LOADED_BYTES, check_real, optional
from undertow.sources.formats.arrays import ArraySource
from undertow.sources.formats.base import CHUNK_BYTES, Indexed, Source, block_length
from undertow.sources.formats.hdf5 import MAGIC, datasets
from undertow.sources.formats.variables import TIME_NAMES, axis_number, choose, usable_times, without
from undertow.sources.options import Options

_NUMERIC = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def open_mat(path: Path, options: Options) -> Source:
    """A MATLAB file, axes in MATLAB's order; time is the last axis unless ``time_axis`` says otherwise."""
    with path.open("rb") as file:
        beginning = file.read(1024)
    is_hdf5 = MAGIC in (beginning[:8], beginning[512:520]) or beginning.startswith(b"MATLAB 7.3")
    source = _open_new(path, options) if is_hdf5 else _open_old(path, options)
    source.format = "mat"
    return source


def _open_new(path: Path, options: Options) -> Source:
    h5py = optional("h5py", "matlab", "A MATLAB 7.3 file")
    file = h5py.File(path, "r")
    try:
        return HDF5Variable(file, path, options)
    except BaseException:
        file.close()
        raise


def _open_old(path: Path, options: Options) -> Source:
    matlab = optional("scipy.io", "matlab", "A MATLAB file")
    held = {key: (tuple(shape), kind) for key, shape, kind in matlab.whosmat(path)}
    arrays = {key: shape for key, (shape, kind) in held.items() if kind in _NUMERIC}
    candidates = {key: shape for key, shape in arrays.items() if sum(size > 1 for size in shape) > 1 or len(shape) > 2}
    chosen = choose(path.name, candidates or arrays, options.variable, ", ".join(held))
    if math.prod(arrays[chosen]) * 8 > 4 * MAX_LOADED_BYTES or min(arrays[chosen]) < 1:
        raise StreamError(f"{path.name} claims shape {arrays[chosen]} for {chosen}: save it with -v7.3")
    beside = _times_name(arrays, options.time, path.name)
    names = [chosen, *([beside] if beside else [])]
    loaded = matlab.loadmat(path, variable_names=names, verify_compressed_data_integrity=True)
    source = ArraySource(np.asarray(loaded[chosen]), path.name, options, default_axis=-1)
    source.times = usable_times(loaded[beside], source.length) if beside else None
    source.time_name = options.time or "time"
    return source


class HDF5Variable(Indexed):
    """One variable of a version 7.3 file; HDF5 has the axes the other way round."""

    format = "mat"

    def __init__(self, file: Any, path: Path, options: Options) -> None:
        self._file = file
        held = datasets(self._file, path.name)
        arrays = {key: tuple(item.shape)[::-1] for key, item in held.items()}
        candidates = {key: shape for key, shape in arrays.items() if sum(size > 1 for size in shape) > 1}
        chosen = choose(path.name, candidates, options.variable, ", ".join(self._file))
        self._data = held[chosen]
        check_real(path.name, self._data.dtype)
        shape = arrays[chosen]
        axis = axis_number(path.name, options.time_axis, shape, -1)
        self._axis = len(shape) - 1 - axis
        slice_shape, length = without(shape, axis), shape[axis]
        best = self._data.chunks[self._axis] if self._data.chunks else 1
        block = block_length(slice_shape, self._data.dtype.itemsize, best, CHUNK_BYTES)
        super().__init__(path.name, slice_shape, length, block=block)
        beside = _times_name(arrays, options.time, path.name)
        self.times = usable_times(held[beside][()], length) if beside and held[beside].size == length else None
        self.time_name = options.time or "time"

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        where: list[slice] = [slice(None)] * self._data.ndim
        where[self._axis] = slice(start, stop)
        block = np.moveaxis(np.asarray(self._data[tuple(where)]), self._axis, 0)
        return block.transpose(0, *range(block.ndim - 1, 0, -1))

    def close(self) -> None:  # noqa: D102
        super().close()
        self._file.close()


def _times_name(arrays: dict[str, tuple[int, ...]], wanted: str | None, name: str) -> str | None:
    if wanted is not None and wanted not in arrays:
        raise StreamError(f"{name} holds no array {wanted!r} for the times: it holds {', '.join(arrays)}")
    return wanted or next((key for key in arrays if key.lower() in TIME_NAMES), None)
