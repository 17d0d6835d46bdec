"""The folder of kept programs. What is in it is run as code, so it must be the user's alone.

One file per program: a magic word, a checksum, what the program is (`identity`), and the program, compressed. Files
are written beside their place and renamed into it: whoever reads at the same time finds the old one, the new one or
none, never half of one. When the folder is full, what was not used for longest goes.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import stat
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "UNDERTOW_CACHE"
"""Environment variable: "off", or another folder."""
LARGEST = 256 * 2**20
"""Bytes that the files may have together."""
_MAGIC = b"undertow program 1\n"
_DIGEST = hashlib.sha256().digest_size
_SUFFIX, _HALF_WRITTEN = ".program", ".part"
_ABANDONED = 3600.0
"""Seconds after which a file that is still half-written belongs to nobody."""

_log = logging.getLogger("undertow.programs")


@dataclass(frozen=True)
class Folder:
    """A folder of kept programs. Nothing here raises an error for what is on disk: a program is there or is not.

    Attributes:
        path: The folder.
        largest: Bytes that its files may have together.
    """

    path: Path
    largest: int = LARGEST

    @classmethod
    def of_user(cls) -> Folder | None:
        """The folder that the environment names, or the one in the user's cache directory; None if it says "off"."""
        chosen = os.environ.get(VARIABLE)
        if chosen is not None and chosen.strip().lower() in ("", "off", "0", "no", "false"):
            return None
        if chosen is not None:
            return cls(Path(chosen).absolute())
        home = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not home.is_absolute():  # unset, or as the specification has it, to be ignored
            try:
                home = Path.home() / ".cache"
            except RuntimeError:  # a user without a home
                return None
        return cls(home / "undertow" / "programs")

    def read(self, described: str) -> bytes | None:
        """The program of this description, if there is a sound one."""
        name = _name(described)
        try:
            with self._opened() as folder:
                content = _read(name, folder)
        except OSError as error:
            _log.debug("%s: %s", self.path / name, error)
            return None
        start = len(_MAGIC) + _DIGEST
        digest, body = content[len(_MAGIC) : start], content[start:]
        if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != digest:
            _log.debug("%s is damaged", self.path / name)
            return None
        end = 8 + int.from_bytes(body[:8], "little")
        if body[8:end] != described.encode():
            _log.debug("%s is another program", self.path / name)
            return None
        return zlib.decompress(body[end:])

    def write(self, described: str, program: bytes) -> None:
        """Keep a program; where that is impossible, go on without."""
        words = described.encode()
        body = len(words).to_bytes(8, "little") + words + zlib.compress(program, 1)
        content = _MAGIC + hashlib.sha256(body).digest() + body
        if len(content) > self.largest:
            return
        name = _name(described)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                _write(name, content, folder)
                self._make_room(folder)
        except OSError as error:
            _log.debug("%s cannot be kept: %s", self.path / name, error)

    def remove(self, described: str) -> None:
        """Keep a program no longer."""
        with contextlib.suppress(OSError), self._opened() as folder:
            os.unlink(_name(described), dir_fd=folder)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The folder itself, not what another may put in its place meanwhile; an OSError where it cannot be trusted."""
        if os.open not in os.supports_dir_fd or not hasattr(os, "getuid"):
            raise OSError("this system does not say whose a folder is")
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _check_owner(os.fstat(folder), 0o077)
            yield folder
        finally:
            os.close(folder)

    def _make_room(self, folder: int) -> None:
        """Remove what was not used for longest, and what was never finished."""
        found = []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # another process makes room too
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if name.endswith(_SUFFIX):
                    found.append((status.st_mtime_ns, status.st_size, name))
                elif name.endswith(_HALF_WRITTEN) and time.time() - status.st_mtime > _ABANDONED:
                    os.unlink(name, dir_fd=folder)
        total = sum(size for _, size, _ in found)
        for _, size, name in sorted(found):
            if total <= self.largest:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            total -= size


def _name(described: str) -> str:
    return hashlib.sha256(described.encode()).hexdigest() + _SUFFIX


def _check_owner(status: os.stat_result, forbidden: int) -> None:
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & forbidden:
        raise PermissionError("others may change it, or own it")


def _read(name: str, folder: int) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        _check_owner(status, 0o022)
        with contextlib.suppress(OSError):
            os.utime(file.fileno())  # used just now
        return file.read()


def _write(name: str, content: bytes, folder: int) -> None:
    beside = f"{secrets.token_hex(8)}{_HALF_WRITTEN}"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
