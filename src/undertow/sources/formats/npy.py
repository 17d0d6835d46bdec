"""``.npy``: one NumPy array, mapped into memory one slice at a time, so that its size does not matter."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_real
from undertow.sources.formats.arrays import axis_number, without
from undertow.sources.formats.base import Indexed, block_length
from undertow.sources.options import SourceOptions

_LARGE = 2**30


class NpyHeader:
    """Where an array lies in a file, read without touching the data."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        version = npy_format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise StreamError(f"{name} has version {version} of the npy format, which is for structured arrays only")
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        self.shape: tuple[int, ...] = tuple(int(size) for size in shape)
        self.order: Literal["C", "F"] = "F" if fortran else "C"
        self.dtype: np.dtype[Any] = dtype
        check_real(name, self.dtype)
        if any(size < 0 for size in self.shape):
            raise StreamError(f"{name} claims the shape {self.shape}: check the file, it is damaged")
        self.offset = file.tell()
        self.size = math.prod(self.shape) * self.dtype.itemsize

    def check_fits(self, name: str, available: int) -> None:
        """Refuse an array that claims more than the file holds."""
        if self.size > available:
            raise StreamError(
                f"{name} claims shape {self.shape}, {self.size} bytes, but holds only {max(0, available)}: "
                "it is cut short or damaged, write it again"
            )

    def is_contiguous(self, axis: int) -> bool:
        """Whether slices along this axis are contiguous, one after the other."""
        return axis == (len(self.shape) - 1 if self.order == "F" else 0)


class MappedArray(Indexed):
    """An array in a file, mapped again for every slice: pages that were read do not accumulate in memory."""

    format = "npy"

    def __init__(self, path: Path, header: NpyHeader, options: SourceOptions, start: int = 0) -> None:
        name, axis = path.name, axis_number(path.name, options.time_axis, header.shape, 0)
        shape, contiguous = without(header.shape, axis), header.is_contiguous(axis)
        block = 1 if contiguous else block_length(shape, header.dtype.itemsize, 1024)
        super().__init__(name, shape, header.shape[axis], block=block, follow=options.follow)
        if not contiguous and header.size > _LARGE:
            self.notices.append(
                f"{name} has its slices scattered over the file, which is slow: save it with time first"
            )
        self._path, self._header, self._axis = path, header, axis
        self._start = start + header.offset
        self._file = path.open("rb")

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        header = self._header
        available = os.fstat(self._file.fileno()).st_size - self._start
        if not header.is_contiguous(self._axis):
            header.check_fits(self.name, available)
            return np.array(self._mapped(self._start, header.shape)[start:stop])
        slice_bytes = math.prod(self.shape) * header.dtype.itemsize
        if stop * slice_bytes > available:  # mapping what is not there would kill the process, not raise
            raise StreamError(f"{self.name} became shorter while it was read: write it again")
        shape = list(header.shape)
        shape[self._axis] = stop - start
        return np.array(self._mapped(self._start + start * slice_bytes, tuple(shape)))

    def _mapped(self, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
        view = np.memmap(self._file, self._header.dtype, "r", offset, shape, self._header.order)
        return np.moveaxis(view, self._axis, 0)

    def close(self) -> None:  # noqa: D102
        super().close()
        self._file.close()


class NpyFile(MappedArray):
    """One ``.npy`` file, which may grow if its header grows with it; time is its first axis by default."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        header = _read_header(path)
        if options.follow is not None:
            _check_growing(path.name, header)
        super().__init__(path, header, options)

    def refresh(self) -> int:  # noqa: D102
        old, axis = self._header, self._axis
        try:
            new = _read_header(self._path)
            _check_growing(self.name, new)
        except (ValueError, OSError):  # in the middle of being written: try again later
            return self.length
        same = without(new.shape, axis) == self.shape and new.dtype == old.dtype
        if not same or (new.order, new.offset) != (old.order, old.offset):
            raise StreamError(f"{self.name} became another array while it was followed: start from the beginning")
        if new.shape[axis] > self.length:
            self._file.close()
            self._file, self._header = self._path.open("rb"), new
        return new.shape[axis]


def _read_header(path: Path) -> NpyHeader:
    with path.open("rb") as file:
        header = NpyHeader(file, path.name)
        header.check_fits(path.name, os.fstat(file.fileno()).st_size - header.offset)
    return header


def _check_growing(name: str, header: NpyHeader) -> None:
    if not header.is_contiguous(0):
        raise StreamError(f"{name} cannot be followed: only arrays in C order grow at their end")
