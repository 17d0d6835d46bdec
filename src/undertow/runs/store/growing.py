"""A text file that grows slice by slice, and can be cut back to where a checkpoint was.

Others can read it, so it holds no checksums: the checkpoint keeps that of everything so far.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping
from pathlib import Path

from undertow.runs.errors import StoreError

START_AGAIN = "run again with --overwrite to start from the beginning"
_CHECKSUM = "_checksum"
_PIECE = 1 << 20  # bytes read at a time


class GrowingFile:
    """One file, open for the whole run; what is added can be seen immediately."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab")  # noqa: SIM115
        self._checksum = 0

    def write(self, lines: bytes) -> None:
        """Append."""
        self._checksum = zlib.crc32(lines, self._checksum)
        self._file.write(lines)
        self._file.flush()

    def flush(self) -> None:
        """Write to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def marks(self) -> dict[str, int]:
        """Bytes in the file, and their checksum."""
        name = self._path.stem
        return {name: self._file.seek(0, os.SEEK_END), name + _CHECKSUM: self._checksum}

    def cut(self, marks: Mapping[str, int]) -> None:
        """Cut the file at earlier `marks`; at none of it the file is empty."""
        self._checksum = checked(self._path, marks)
        self._file.truncate(marks.get(self._path.stem, 0))

    def close(self) -> None:
        """Close the file; what could not be written was an error before."""
        with contextlib.suppress(OSError):
            self._file.close()


def checked(path: Path, marks: Mapping[str, int]) -> int:
    """The checksum of what was in a file at these marks.

    Raises:
        StoreError: It is not what was written. (Marks of an earlier version may have no checksum.)
    """
    left, checksum = marks.get(path.stem, 0), 0
    with open(path, "rb") as file:
        while left and (piece := file.read(min(left, _PIECE))):
            checksum = zlib.crc32(piece, checksum)
            left -= len(piece)
    if left:
        raise StoreError(f"{path} is shorter than it was when the run stopped: {START_AGAIN}")
    if checksum != marks.get(path.stem + _CHECKSUM, checksum):
        raise StoreError(
            f"{path} is damaged or was edited (its checksum differs): restore it from a copy, or {START_AGAIN}"
        )
    return checksum
