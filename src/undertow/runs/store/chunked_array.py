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

COMPRESSION: dict[str, Any] = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0}
"""Higher levels take two to four times as long and save one to four per cent."""


class ChunkedArray:
    """Rows of one variable, (T, *shape)."""

    def __init__(self, folder: Path, dtype: str, shape: Sequence[int], chunk: int, *, checksums: bool) -> None:
        self.folder = folder
        self.length = 0
        self._text = dtype == "str"
        self._dtype = np.dtype(object if self._text else dtype)
        self._shape = tuple(shape)
        self._chunk = chunk
        self._checksums = checksums
        self._tail: list[Any] = []
        self._dirty = False

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
            content = _encode(self._block(), self._text)
            replace_file(self._path(index), content + _checksum(content) if self._checksums else content)
        self._dirty = False

    def cut(self, length: int) -> None:
        """Drop all rows from ``length`` on and be ready to append there."""
        first = length // self._chunk
        kept = length % self._chunk
        name = re.compile(r"c\.(\d+)" + r"\.0" * len(self._shape))
        chunks = {int(found[1]): path for path in self.folder.glob("c.*") if (found := name.fullmatch(path.name))}
        if missing := set(range(first + bool(kept))) - set(chunks):
            raise FileNotFoundError(f"chunk {min(missing)} is not there")
        if self._checksums:
            for index in range(first):
                self._read(index)
        self._tail = []
        if kept:
            rows = _decode(self._read(first), self._dtype, self._text)
            rows = rows.reshape(self._chunk, *self._shape)[:kept]
            self._tail = list(rows) if self._text else [np.array(row) for row in rows]
        self.length = length
        self._dirty = bool(kept)  # the chunk on disk may hold rows that were dropped just now
        for index, path in chunks.items():
            if index >= first + bool(kept):
                path.unlink()

    def _read(self, index: int) -> bytes:
        """The content of a chunk, less its checksum, which must be right."""
        path = self._path(index)
        content = path.read_bytes()
        if not self._checksums:
            return content
        if _checksum(content[:-4]) != content[-4:]:
            raise ValueError(f"the checksum of {path.name} differs")
        return content[:-4]

    def _block(self) -> NDArray[Any]:
        """The unfinished chunk in full size, padded with what zarr takes for absent."""
        filler: Any = "" if self._text else (np.nan if self._dtype.kind == "f" else 0)
        block = np.full((self._chunk, *self._shape), filler, self._dtype)
        block[: len(self._tail)] = self._tail
        return block

    def _path(self, index: int) -> Path:
        return self.folder / ".".join(["c", str(index), *["0"] * len(self._shape)])


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
