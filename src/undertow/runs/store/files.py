"""Files that are either the old one or the new one, never half of one, whatever moment the process dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp"
"""How names of files end that are not finished; they may be removed once their writer is gone."""


class StoreError(ValueError):
    """A store cannot be made, read or gone on with; the message is one sentence that says why and what to do."""


def replace_file(path: Path, content: bytes | memoryview, *, durable: bool = True) -> None:
    """Put ``content`` into ``path`` in one move, once it is safe on the disk (where ``durable``)."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def sync_folders(folders: Iterable[Path]) -> None:
    """Make the names in these folders durable; not every system lets a folder be opened, and there it is not needed."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half done."""
    for path in folder.rglob(f"*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def only_writer(lock: Path) -> Iterator[None]:
    """Hold the store for one process; the system lets go of it however that process ends."""
    with open(lock, "ab") as file:
        if not _take(file):
            raise StoreError(
                f"{lock.parent.parent} is being written by another run: wait for it, or name another store"
            )
        yield


def _take(file: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # not a Unix: two runs into one store are the user's to avoid
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
