"""A text file that grows slice by slice, and can be cut back to where a checkpoint was."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from undertow.runs.errors import StoreError

START_AGAIN = "run again with --overwrite to start from the beginning"


class GrowingFile:
    """One file, open for the whole run; what is added can be seen immediately."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab")  # noqa: SIM115

    def write(self, lines: bytes) -> None:
        """Append."""
        self._file.write(lines)
        self._file.flush()

    def flush(self) -> None:
        """Write to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def mark(self) -> int:
        """Bytes in the file."""
        return self._file.seek(0, os.SEEK_END)

    def cut(self, mark: int) -> None:
        """Cut the file at an earlier `mark`."""
        if self.mark() < mark:
            raise StoreError(f"{self._path} is shorter than it was when the run stopped: {START_AGAIN}")
        self._file.truncate(mark)

    def close(self) -> None:
        """Close the file; what could not be written was an error before."""
        with contextlib.suppress(OSError):
            self._file.close()
