"""One array of the store, growing along time: complete chunks on disk, the unfinished one rewritten as it grows.

Chunks are written here rather than by zarr, which would read a partly filled chunk back and keep whatever is in its
unused part: this way the same rows always give the same bytes, and every file is replaced atomically.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.runs.store.folder import replace_file
from undertow.runs.store.growth import Growth, chunk_name

COMPRESSION: dict[str, Any] = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0}
"""Higher levels take two to four times as long and save one to four per cent."""


class ChunkedArray:
    """Rows of one variable, (T, *shape).

    Args:
        folder: Of the array.
        dtype: Of its numbers, or "str".
        growth: Shapes of rows; the first is that of a chunk, without time.
        chunk: Rows in a chunk.
        checksums: Whether chunks end in one.
    """

    def __init__(self, folder: Path, dtype: str, growth: Growth, chunk: int, *, checksums: bool) -> None:
        self.folder = folder
        self.length = 0
        self.growth = growth
        self._text = dtype == "str"
        self._dtype = np.dtype(object if self._text else dtype)
        self._block_shape = growth.steps[0][1]
        self._chunk = chunk
        self._checksums = checksums
        self._tail: list[Any] = []
        self._dirty = False

    def grow(self, shape: Sequence[int]) -> None:
        """Rows have this shape from here on; those before lack what is added."""
        self.growth = self.growth.then(self.length, shape)
        self._tail = [_padded(row, shape) for row in self._tail]
        self._dirty = bool(self._tail)

    def append(self, row: Any) -> None:
        """Take one more row; a chunk that is full is written immediately."""
        self._tail.append(row if self._text else np.asarray(row, self._dtype))
        self.length += 1
        self._dirty = True
        if len(self._tail) == self._chunk:
            self.flush()
            self._tail = []

    def flush(self) -> None:
        """Write the unfinished chunk too, as it is now."""
        if self._dirty and self._tail:
            index = (self.length - 1) // self._chunk
            for block in self.growth.blocks(index, self._chunk, self._block_shape):
                content = _encode(self._block(block), self._text)
                path = self.folder / chunk_name(index, block)
                replace_file(path, content + _checksum(content) if self._checksums else content)
        self._dirty = False

    def cut(self, length: int) -> None:
        """Drop all rows from ``length`` on and be ready to append there."""
        first = length // self._chunk
        kept = length % self._chunk
        wanted = {
            chunk_name(index, block): index
            for index in range(first + bool(kept))
            for block in self.growth.blocks(index, self._chunk, self._block_shape)
        }
        name = re.compile(r"c\.\d+" + r"\.\d+" * len(self._block_shape))
        there = {path.name for path in self.folder.glob("c.*") if name.fullmatch(path.name)}
        if missing := [chunk for chunk in wanted if chunk not in there]:
            raise FileNotFoundError(f"chunk {missing[0].removeprefix('c.').split('.')[0]} is not there")
        if self._checksums:
            for chunk, index in wanted.items():
                if index < first:
                    self._read(chunk)
        self._tail = self._read_tail(first, kept)
        self.length = length
        self._dirty = bool(kept)  # the chunk on disk may hold rows that were dropped just now
        for chunk in there - set(wanted):
            (self.folder / chunk).unlink()

    def _read_tail(self, index: int, kept: int) -> list[Any]:
        """The first rows of a chunk, from all files that they lie in."""
        if not kept:
            return []
        shape = self.growth.shape
        whole = np.empty((kept, *shape), self._dtype)
        for block in self.growth.blocks(index, self._chunk, self._block_shape):
            rows = _decode(self._read(chunk_name(index, block)), self._dtype, self._text)
            rows = rows.reshape(self._chunk, *self._block_shape)[:kept]
            where = self._where(block, shape)
            whole[(slice(None), *where)] = rows[(slice(None), *(slice(at.stop - at.start) for at in where))]
        return list(whole) if self._text else [np.array(row) for row in whole]

    def _where(self, block: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
        """Of a row, what lies in one file."""
        sizes = zip(block, self._block_shape, shape, strict=True)
        return tuple(slice(number * size, min((number + 1) * size, most)) for number, size, most in sizes)

    def _read(self, name: str) -> bytes:
        """The content of a chunk, less its checksum, which must be right."""
        content = (self.folder / name).read_bytes()
        if not self._checksums:
            return content
        if _checksum(content[:-4]) != content[-4:]:
            raise ValueError(f"the checksum of {name} differs")
        return content[:-4]

    def _block(self, block: Sequence[int]) -> NDArray[Any]:
        """One file of the unfinished chunk in full size, padded with what zarr takes for absent."""
        filler: Any = "" if self._text else (np.nan if self._dtype.kind == "f" else 0)
        whole = np.full((self._chunk, *self._block_shape), filler, self._dtype)
        where = self._where(block, self.growth.shape)
        inside = (slice(len(self._tail)), *(slice(at.stop - at.start) for at in where))
        whole[inside] = [row[where] for row in self._tail] if where else self._tail
        return whole


def _padded(row: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    """With what was not there yet: nothing is known of it."""
    padded = np.full(shape, np.nan, row.dtype)
    padded[tuple(map(slice, row.shape))] = row
    return padded


def _encode(block: NDArray[Any], text: bool) -> bytes:
    import numcodecs

    content = numcodecs.VLenUTF8().encode(block) if text else np.ascontiguousarray(block).view(np.uint8).reshape(-1)
    size = len(content)
    # One block: Blosc's threads would otherwise write their blocks in the order in which they happen to finish.
    codec = numcodecs.Blosc("zstd", clevel=1, shuffle=numcodecs.Blosc.SHUFFLE, blocksize=size)
    if not text:
        content = content.view(block.dtype)  # the size of a number, which the shuffle goes by
    return bytes(codec.encode(content))


def _checksum(content: bytes) -> bytes:
    """As Zarr's codec ``crc32c`` appends it."""
    import google_crc32c

    return int(google_crc32c.value(content)).to_bytes(4, "little")


def _decode(content: bytes, dtype: np.dtype[Any], text: bool) -> NDArray[Any]:
    import numcodecs

    plain = numcodecs.Blosc().decode(content)
    if text:
        return np.asarray(numcodecs.VLenUTF8().decode(plain), dtype=object)
    return np.frombuffer(plain, dtype)
