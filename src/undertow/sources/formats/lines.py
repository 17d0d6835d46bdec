"""Text in blocks of complete lines: from a file, compressed or not, growing or not, or from a pipe."""

from __future__ import annotations

import gzip
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.following import Follow
from undertow.sources.formats.history import RESEND

BLOCK_BYTES = 4 * 2**20
MAX_LINE_BYTES = 2**28


class LineBlocks(ABC):
    """Lines counted in bytes from the beginning."""

    name: str
    is_pipe = False

    @abstractmethod
    def first_line(self) -> bytes:
        """The first line; it is still part of the blocks."""

    @abstractmethod
    def sample(self, offset: int) -> bytes:
        """Some complete lines from the line that begins at ``offset``, if there are any; they stay in the blocks."""

    @abstractmethod
    def blocks(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Blocks of complete lines from the line that begins at ``offset``, each with the offset where it begins."""

    def lines(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Single lines with the offset after each."""
        for begin, block in self.blocks(offset):
            end = begin
            for line in block.splitlines(keepends=True):
                end += len(line)
                yield end, line

    def close(self) -> None:
        """Release files and end every wait for more."""
        return

    def check_line(self, size: int) -> None:
        """Refuse a line that no text file has."""
        if size > MAX_LINE_BYTES:
            raise StreamError(f"{self.name} has a line of more than {MAX_LINE_BYTES} bytes: check that it is text")


class LineFile(LineBlocks):
    """A file; with ``follow``, its end is waited for."""

    def __init__(self, path: Path, follow: Follow | None = None, *, growing: bool = False) -> None:
        """A line that does not end yet counts as not yet written if the file is followed or known to be growing."""
        self.name, self._path, self._follow = path.name, path, follow
        self._growing = growing or follow is not None
        self._compressed = path.suffix.lower() == ".gz"
        if self._compressed and follow is not None:
            raise StreamError(f"{path.name} cannot be followed: decompress it first")

    def first_line(self) -> bytes:  # noqa: D102
        line = self._read_line()
        if self._follow is not None and not line.endswith(b"\n"):
            self._follow.wait(lambda: self._read_line().endswith(b"\n"))
            line = self._read_line()
        return line

    def sample(self, offset: int) -> bytes:  # noqa: D102
        now = LineFile(self._path, growing=self._growing)  # does not wait for more
        return next(now.blocks(offset), (offset, b""))[1]

    def blocks(self, offset: int) -> Iterator[tuple[int, bytes]]:  # noqa: D102
        rest = b""
        with self._open() as file:
            file.seek(offset)
            while True:
                chunk = file.read(BLOCK_BYTES)
                if not chunk:
                    end = offset + len(rest)
                    if self._follow is None or not self._follow.wait(partial(self._grew, end)):
                        break
                rest += chunk
                cut = rest.rfind(b"\n") + 1
                self.check_line(len(rest) - cut)
                if cut:
                    yield offset, rest[:cut]
                    offset, rest = offset + cut, rest[cut:]
        if rest and not self._growing:
            yield offset, rest  # the last line need not end with a line break

    def close(self) -> None:  # noqa: D102
        if self._follow is not None:
            self._follow.stop()

    def _read_line(self) -> bytes:
        with self._open() as file:
            line: bytes = file.readline(MAX_LINE_BYTES + 1)
        self.check_line(len(line))
        return line

    def _open(self) -> Any:
        return gzip.open(self._path) if self._compressed else self._path.open("rb")

    def _grew(self, end: int) -> bool:
        size = os.path.getsize(self._path)
        if size < end:
            raise StreamError(f"{self.name} became shorter while it was followed: start from the beginning")
        return size > end


class LinePipe(LineBlocks):
    """A pipe, which can be read only once; to resume, it must be sent again from its beginning."""

    is_pipe = True

    def __init__(self, file: Any, name: str) -> None:
        self.name, self._file = name, file
        self._offset, self._kept = 0, b""
        self._ended = False

    def first_line(self) -> bytes:  # noqa: D102
        while b"\n" not in self._kept and self._more():
            self.check_line(len(self._kept))
        return self._kept[: self._kept.find(b"\n") + 1] or self._kept

    def sample(self, offset: int) -> bytes:  # noqa: D102
        while self._kept.find(b"\n", offset) < 0 and self._more():
            self.check_line(len(self._kept) - offset)
        end = self._kept.find(b"\n", offset) + 1  # one line, however many have arrived: a resumed run must see the same
        return self._kept[offset:end] if end else self._kept[offset:]

    def blocks(self, offset: int) -> Iterator[tuple[int, bytes]]:  # noqa: D102
        while self._kept or self._more():
            cut = self._kept.rfind(b"\n") + 1
            self.check_line(len(self._kept) - cut)
            if not cut and not self._ended and self._more():
                continue
            cut = cut or len(self._kept)
            block, begin = self._kept[:cut], self._offset
            self._kept, self._offset = self._kept[cut:], begin + cut
            wanted = block[max(0, offset - begin) :]
            if wanted:
                yield begin + len(block) - len(wanted), wanted
        if self._offset < offset:
            raise StreamError(f"{self.name} ended before the position to resume from: {RESEND}")

    def _more(self) -> bool:
        chunk = b"" if self._ended else self._file.read1(BLOCK_BYTES)
        self._ended = not chunk
        self._kept += chunk
        return bool(chunk)
