"""The folder of a store: whether it holds results, who may write it, and files that are replaced atomically."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from undertow.runs.errors import StoreError

PRIVATE = ".undertow"
"""Checkpoints and the lock are in this folder of the store."""
TEMPORARY = ".tmp"
"""How names of unfinished files end; they may be removed once their writer is gone."""


def holds_slices(folder: Path) -> bool:
    """Whether readers of the store would find any slice in it; assumed where its metadata cannot be read."""
    try:
        root = json.loads((folder / "zarr.json").read_bytes())
        return bool(root["consolidated_metadata"]["metadata"]["rank"]["shape"][0])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return True


def replace_file(path: Path, content: bytes | memoryview, *, durable: bool = True) -> None:
    """Replace ``path`` atomically, once ``content`` is on the disk (where ``durable``)."""
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


@contextlib.contextmanager
def only_writer(lock: Path) -> Iterator[None]:
    """Hold the store for one process; the system releases it however that process ends."""
    with open(lock, "ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not a Unix: two runs into one store are the user's to avoid
            pass
        except OSError:
            raise StoreError(
                f"{lock.parent.parent} is being written by another run: wait for it, or name another store"
            ) from None
        yield
