"""NIfTI: volumes over time (the last of four axes), or the images of one volume, read one at a time."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_length, check_real, check_slice_shape, import_extra
from undertow.sources.formats.arrays import axis_number, without
from undertow.sources.formats.base import Indexed, along
from undertow.sources.options import SourceOptions

_SECONDS = {"sec": 1.0, "msec": 1e-3, "usec": 1e-6}
_MAX_COMPRESSION = 1100  # gzip compresses by at most about a thousand


class NiftiFile(Indexed):
    """A 4-D file is a stream of volumes; a 3-D file one of images along its last axis."""

    format = "nifti"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        image = import_extra("nibabel", "mri", "A NIfTI file").load(path, keep_file_open=True)
        shape = tuple(int(size) for size in image.shape)
        dtype = np.dtype(image.header.get_data_dtype())
        check_real(path.name, dtype)
        self._data, self._axis = image.dataobj, axis_number(path.name, options.time_axis, shape, -1)
        slice_shape, length = without(shape, self._axis), shape[self._axis]
        check_slice_shape(path.name, slice_shape)
        check_length(path.name, length)
        _check_size(path, shape, math.prod(shape) * dtype.itemsize)
        super().__init__(path.name, slice_shape, length, without(tuple("xyztuvw"[: len(shape)]), self._axis))
        self._header: Any = None
        if len(shape) == 4 and self._axis == 3:
            self.times = _times(image.header, length)
            self._header, self._affine = image.header, image.affine

    @property
    def attributes(self) -> dict[str, str]:
        """Where the volumes lie, and in which units."""
        if self._header is None:
            return {}
        known = {
            "affine": np.asarray(self._affine, float).tolist(),
            "zooms": [float(size) for size in self._header.get_zooms()],
            "units": list(self._header.get_xyzt_units()),
            "codes": [int(self._header["qform_code"]), int(self._header["sform_code"])],
        }
        return {"nifti": json.dumps(known)}

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return along(self._data, self._axis, start, stop)


def _check_size(path: Path, shape: tuple[int, ...], needed: int) -> None:
    """Refuse a header that claims more than the file holds; what a compressed file holds shows only in reading."""
    compressed = path.suffix.lower() in (".gz", ".bz2", ".zst")
    if needed > path.stat().st_size * (_MAX_COMPRESSION if compressed else 1):
        raise StreamError(
            f"{path.name} claims shape {shape}, {needed} bytes, more than it can hold: it is cut short or damaged"
        )


def _times(header: Any, length: int) -> NDArray[Any] | None:
    step = float(header.get_zooms()[3])
    unit = header.get_xyzt_units()[1]
    if not 0 < step < 1e9 or unit not in (*_SECONDS, "unknown"):
        return None
    return np.arange(length) * (step * _SECONDS.get(unit, 1.0))
