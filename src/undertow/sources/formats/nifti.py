"""NIfTI: volumes over time (the last of four axes), or the pictures of one volume, read one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_length, check_real, check_slice_shape, optional
from undertow.sources.formats.base import Indexed
from undertow.sources.formats.variables import axis_number, without
from undertow.sources.options import Options

_SECONDS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6}


class NiftiFile(Indexed):
    """A 4-D file is a stream of volumes; a 3-D file one of pictures along its last axis."""

    format = "nifti"

    def __init__(self, path: Path, options: Options) -> None:
        nibabel = optional("nibabel", "mri", "A NIfTI file")
        image = nibabel.load(path, keep_file_open=True)
        shape = tuple(int(size) for size in image.shape)
        check_real(path.name, np.dtype(image.header.get_data_dtype()))
        self._axis = axis_number(path.name, options.time_axis, shape, -1)
        slice_shape, length = without(shape, self._axis), shape[self._axis]
        check_slice_shape(path.name, slice_shape)
        check_length(path.name, length)
        _check_size(path, image, shape)
        dims = tuple(name for axis, name in enumerate("xyztuvw"[: len(shape)]) if axis != self._axis)
        super().__init__(path.name, slice_shape, length, dims)
        self._data = image.dataobj
        if len(shape) == 4 and self._axis == 3:
            self.times = _times(image.header, length)

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        where: list[Any] = [slice(None)] * len(self._data.shape)
        where[self._axis] = slice(start, stop)
        return np.moveaxis(np.asarray(self._data[tuple(where)]), self._axis, 0)


def _check_size(path: Path, image: Any, shape: tuple[int, ...]) -> None:
    """Refuse a header that claims more than the file holds; how much a packed file holds is seen only in reading."""
    needed = int(np.prod([float(size) for size in shape])) * np.dtype(image.header.get_data_dtype()).itemsize
    packed = path.suffix.lower() in (".gz", ".bz2", ".zst")
    available = path.stat().st_size * (1100 if packed else 1)  # gzip packs by at most about a thousand
    if needed > available:
        raise StreamError(
            f"{path.name} claims shape {shape}, {needed} bytes, more than it can hold: it is cut short or damaged"
        )


def _times(header: Any, length: int) -> NDArray[Any] | None:
    step = float(header.get_zooms()[3])
    unit = header.get_xyzt_units()[1]
    if not 0 < step < 1e9 or unit not in (*_SECONDS, "unknown"):
        return None
    return np.arange(length) * (step * _SECONDS.get(unit, 1.0))


def open_nifti(path: Path, options: Options) -> NiftiFile:
    """A ``.nii`` or ``.nii.gz`` file."""
    return NiftiFile(path, options)
