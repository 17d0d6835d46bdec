"""``.npz``: one array of several, mapped where it is stored as it is, unpacked slice by slice where it is packed."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import MAX_LOADED_BYTES, check_length
from undertow.sources.formats.arrays import ArraySource
from undertow.sources.formats.base import Raw, Source, first_bytes, integer, plain_time
from undertow.sources.formats.npy import Layout, MappedArray
from undertow.sources.formats.variables import TIME_NAMES, axis_number, choose, usable_times, without
from undertow.sources.options import Options

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MAX_TIMES_BYTES = 2**28


class PackedArray(Source):
    """A compressed member whose slices follow one another: unpacked as far as needed, never all at once."""

    format = "npz"

    def __init__(self, path: Path, name: str, member: str, layout: Layout, axis: int) -> None:
        super().__init__(name, without(layout.shape, axis))
        check_length(name, layout.shape[axis])
        self.length = layout.shape[axis]
        self._path, self._member, self._layout, self._axis = path, member, layout, axis

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        index = integer(self.name, position, "index")
        piece = math.prod(self.shape) * self._layout.dtype.itemsize
        with zipfile.ZipFile(self._path) as archive, archive.open(self._member) as member:
            _skip(member, self._layout.offset + index * piece)
            while index < (self.length or 0):
                content = _exactly(member, piece, self.name)
                time = None if self.times is None else plain_time(self.times[index])
                index += 1
                yield Raw(time, {"index": index}, partial(self._array, content))

    def _array(self, content: bytes) -> NDArray[Any]:
        flat = np.frombuffer(content, self._layout.dtype)
        return flat.reshape(self.shape, order="F" if self._layout.fortran else "C")

    def identity(self) -> str:  # noqa: D102
        return first_bytes(self._path)


def open_npz(path: Path, options: Options) -> Source:
    """The array named by ``variable``, or the only one with two or more axes; ``time`` names the array of its times."""
    with zipfile.ZipFile(path) as archive:
        layouts = {
            entry.filename.removesuffix(".npy"): layout
            for entry in archive.infolist()
            if (layout := _layout(archive, entry)) is not None
        }
        big = {key: layout.shape for key, layout in layouts.items() if len(layout.shape) > 1}
        chosen = choose(path.name, big, options.variable, ", ".join(layouts))
        entry = archive.getinfo(f"{chosen}.npy" if f"{chosen}.npy" in archive.namelist() else chosen)
        layout, source = layouts[chosen], _open(path, archive, entry, layouts[chosen], options)
        times = _times(archive, options.time, layout.shape, source.length or 0)
    source.format = "npz"
    source.time_name = options.time or "time"
    source.times = times
    return source


def _open(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, layout: Layout, options: Options) -> Source:
    name = path.name
    layout.check_fits(name, entry.file_size - layout.offset)
    if entry.compress_type == zipfile.ZIP_STORED:
        start = _data_start(path, entry)
        if start + entry.file_size > path.stat().st_size:
            raise StreamError(f"{name} is cut short or damaged: write it again")
        return MappedArray(path, name, start, layout, options)
    axis = axis_number(name, options.time_axis, layout.shape, 0)
    if layout.leads(axis):
        return PackedArray(path, name, entry.filename, layout, axis)
    if layout.size > MAX_LOADED_BYTES:
        raise StreamError(
            f"{name} is compressed, and its slices along axis {axis} are scattered over {layout.size} bytes: "
            "save it with numpy.savez, or with time as the first axis"
        )
    with archive.open(entry) as member:
        _skip(member, layout.offset)
        flat = np.frombuffer(_exactly(member, layout.size, name), layout.dtype)
    return ArraySource(flat.reshape(layout.shape, order="F" if layout.fortran else "C"), name, options)


def _layout(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Layout | None:
    """The header of a member, None if it is something else than an array of numbers."""
    try:
        with archive.open(entry) as member:
            return Layout(member, entry.filename)
    except StreamError:
        return None


def _times(archive: zipfile.ZipFile, wanted: str | None, shape: tuple[int, ...], length: int) -> NDArray[Any] | None:
    members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
    if wanted is not None and wanted not in members:
        raise StreamError(f"{archive.filename} holds no array {wanted!r} for the times: it holds {', '.join(members)}")
    found = wanted or next((key for key in members if key.lower() in TIME_NAMES), None)
    if found is None or members[found].file_size > _MAX_TIMES_BYTES:
        return None
    with archive.open(members[found]) as member:
        content = member.read(_MAX_TIMES_BYTES + 1)
    times = usable_times(npy_format.read_array(io.BytesIO(content), allow_pickle=False), length)
    if times is None and wanted is not None:
        raise StreamError(f"{wanted} must hold one time per slice, {length} of them: name another array with time=…")
    return times


def _data_start(path: Path, entry: zipfile.ZipInfo) -> int:
    """Where a stored member begins; its local header repeats the name and may have other extra fields."""
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        fields = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if fields[0] != b"PK\x03\x04":
        raise StreamError(f"{path.name} is damaged: write it again")
    return int(entry.header_offset + _LOCAL_HEADER.size + fields[9] + fields[10])


def _skip(file: IO[bytes], count: int) -> None:
    while count > 0:
        piece = file.read(min(count, 2**20))
        if not piece:
            raise StreamError("the file is cut short or damaged: write it again")
        count -= len(piece)


def _exactly(file: IO[bytes], count: int, name: str) -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise StreamError(f"{name} is cut short or damaged: write it again")
    return content
