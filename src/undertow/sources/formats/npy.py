"""``.npy``: one NumPy array, mapped into memory one slice at a time, so that its size does not matter."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_real
from undertow.sources.following import Follow
from undertow.sources.formats.base import Indexed, block_length
from undertow.sources.formats.variables import axis_number, without
from undertow.sources.options import Options

_LARGE = 2**30


class Layout:
    """Where an array lies in a file, read from its header without touching the data."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        version = npy_format.read_magic(file)
        if version == (1, 0):
            header = npy_format.read_array_header_1_0(file)
        elif version == (2, 0):
            header = npy_format.read_array_header_2_0(file)
        else:
            raise StreamError(f"{name} has version {version} of the npy format, which is for structured arrays only")
        self.shape: tuple[int, ...] = tuple(int(size) for size in header[0])
        self.fortran: bool = bool(header[1])
        self.dtype: np.dtype[Any] = header[2]
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

    def leads(self, axis: int) -> bool:
        """Whether slices along this axis lie in one piece, one after the other."""
        return axis == (len(self.shape) - 1 if self.fortran else 0)


class MappedArray(Indexed):
    """An array in a file, mapped anew for every slice: pages that were read do not pile up in memory."""

    format = "npy"

    def __init__(self, path: Path, name: str, start: int, layout: Layout, options: Options) -> None:
        axis = axis_number(name, options.time_axis, layout.shape, 0)
        shape, length = without(layout.shape, axis), layout.shape[axis]
        block = 1 if layout.leads(axis) else block_length(shape, layout.dtype.itemsize, 1024)
        super().__init__(name, shape, length, block=block, follow=options.follow)
        if not layout.leads(axis) and layout.size > _LARGE:
            self.notices.append(
                f"{name} has its slices scattered over the file, which is slow: save it with time first"
            )
        self._path, self._layout, self._axis = path, layout, axis
        self._start = start + layout.offset
        self._file = path.open("rb")

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        layout = self._layout
        available = os.fstat(self._file.fileno()).st_size - self._start
        if layout.leads(self._axis):
            piece = math.prod(self.shape) * layout.dtype.itemsize
            if stop * piece > available:  # mapping what is not there would kill the process, not raise
                raise StreamError(f"{self.name} became shorter while it was read: write it again")
            shape = (*self.shape, stop - start) if layout.fortran else (stop - start, *self.shape)
            return self._mapped(self._start + start * piece, shape)
        layout.check_fits(self.name, available)
        whole = np.moveaxis(self._mapped_view(self._start, layout.shape), self._axis, 0)
        return np.array(whole[start:stop])

    def _mapped_view(self, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
        order = "F" if self._layout.fortran else "C"
        return np.memmap(self._file, self._layout.dtype, "r", offset, shape, order)  # type: ignore[call-overload,no-any-return]

    def _mapped(self, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.moveaxis(np.array(self._mapped_view(offset, shape)), self._axis, 0)

    def close(self) -> None:  # noqa: D102
        super().close()
        self._file.close()


class NpyFile(MappedArray):
    """One ``.npy`` file, which may grow if its header grows with it."""

    def __init__(self, path: Path, options: Options) -> None:
        super().__init__(path, path.name, 0, _layout(path, options.follow), options)

    def refresh(self) -> int:  # noqa: D102
        try:
            layout = _layout(self._path, Follow())
        except (ValueError, OSError):  # in the middle of being written: look again later
            return self.length
        same = without(layout.shape, self._axis) == self.shape and layout.dtype == self._layout.dtype
        if not same or layout.fortran != self._layout.fortran or layout.offset != self._layout.offset:
            raise StreamError(f"{self.name} became another array while it was followed: start afresh")
        if layout.shape[self._axis] > self.length:
            file, self._file = self._file, self._path.open("rb")
            file.close()
            self._layout = layout
        return layout.shape[self._axis]


def _layout(path: Path, follow: Follow | None) -> Layout:
    with path.open("rb") as file:
        layout = Layout(file, path.name)
        layout.check_fits(path.name, os.fstat(file.fileno()).st_size - layout.offset)
        if follow is not None and not layout.leads(0):
            raise StreamError(f"{path.name} cannot be followed: only arrays in C order grow at their end")
    return layout


def open_npy(path: Path, options: Options) -> NpyFile:
    """A ``.npy`` file; the first axis is time unless ``time_axis`` says otherwise."""
    return NpyFile(path, options)
