"""``.npz``: one array of several, mapped where it is stored as it is, decompressed slice by slice otherwise."""

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
from undertow.sources.formats.arrays import ArraySource, axis_number, choose, times_name, usable_times, without
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.formats.npy import MappedArray, NpyHeader
from undertow.sources.options import SourceOptions, first_bytes

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MAX_TIMES_BYTES = 2**28


class CompressedArray(Source):
    """A compressed member whose slices follow one another: decompressed as far as needed, never all together."""

    def __init__(self, path: Path, member: str, header: NpyHeader, axis: int) -> None:
        super().__init__(path.name, without(header.shape, axis))
        check_length(path.name, header.shape[axis])
        self.length = header.shape[axis]
        self._path, self._member, self._header = path, member, header

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        slice_bytes = math.prod(self.shape) * self._header.dtype.itemsize
        first = count_in(position, "index", self.name)
        with zipfile.ZipFile(self._path) as archive, archive.open(self._member) as member:
            member.seek(self._header.offset + first * slice_bytes)
            for index in range(first, self.length or 0):
                content = _exactly(member, slice_bytes, self.name)
                load = partial(_as_array, content, self._header, self.shape)
                yield Raw(self.time_at(index), {"index": index + 1}, load)

    def identity(self) -> str:  # noqa: D102
        return first_bytes(self._path)


def open_npz(path: Path, options: SourceOptions) -> Source:
    """The array named by ``variable``, or the only one with two or more axes; ``time`` names the array of its times."""
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        read = {key: _header(archive, entry) for key, entry in members.items()}
        headers = {key: header for key, header in read.items() if header is not None}
        large = {key: header.shape for key, header in headers.items() if len(header.shape) > 1}
        chosen = choose(path.name, large, options.variable, ", ".join(headers))
        source = _open(path, archive, members[chosen], headers[chosen], options)
        source.times = _times(path.name, archive, members, options.time, source.length or 0)
    source.format, source.time_name = "npz", options.time or "time"
    return source


def _open(
    path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, header: NpyHeader, options: SourceOptions
) -> Source:
    header.check_fits(path.name, entry.file_size - header.offset)
    if entry.compress_type == zipfile.ZIP_STORED:
        start = _data_start(path, entry)
        if start + entry.file_size > path.stat().st_size:
            raise StreamError(f"{path.name} is cut short or damaged: write it again")
        return MappedArray(path, header, options, start)
    axis = axis_number(path.name, options.time_axis, header.shape, 0)
    if header.is_contiguous(axis):
        return CompressedArray(path, entry.filename, header, axis)
    if header.size > MAX_LOADED_BYTES:
        raise StreamError(
            f"{path.name} is compressed, and its slices along axis {axis} are scattered over {header.size} bytes: "
            "save it with numpy.savez, or with time as the first axis"
        )
    with archive.open(entry) as member:
        member.seek(header.offset)
        content = _exactly(member, header.size, path.name)
    return ArraySource(_as_array(content, header, header.shape), path.name, options)


def _header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NpyHeader | None:
    """The header of a member, None if it is not an array of numbers."""
    try:
        with archive.open(entry) as member:
            return NpyHeader(member, entry.filename)
    except StreamError:
        return None


def _times(
    name: str, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], wanted: str | None, length: int
) -> NDArray[Any] | None:
    found = times_name(name, members, wanted)
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


def _exactly(file: IO[bytes], count: int, name: str) -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise StreamError(f"{name} is cut short or damaged: write it again")
    return content


def _as_array(content: bytes, header: NpyHeader, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.frombuffer(content, header.dtype).reshape(shape, order=header.order)
