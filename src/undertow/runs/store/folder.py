"""The folder of a store: whose it is, what may be removed from it, and files that are replaced atomically."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from undertow.runs.errors import StoreError

PRIVATE = ".undertow"
"""Checkpoints and the lock are in this folder of the store."""
TEMPORARY = ".tmp"
"""How names of unfinished files end; they may be removed once their writer is gone."""


def claim(folder: Path, *, resume: bool, overwrite: bool) -> Path:
    """Make the folder a store, or accept the one that is there; returns its private folder."""
    private = folder / PRIVATE
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"store must be a folder, got the file {folder}: name another one")
    if private.is_dir():
        if not (resume or overwrite) and any(folder.glob("zarr.json")):
            raise StoreError(
                f"{folder} holds results already: continue with --resume, start again with --overwrite, "
                "or name another store with --store"
            )
    elif folder.is_dir() and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty and was not made by undertow run: name another store with --store")
    private.mkdir(parents=True, exist_ok=True)
    return private


def holds_slices(folder: Path) -> bool:
    """Whether readers of the store would find any slice in it; assumed where its metadata cannot be read."""
    try:
        root = json.loads((folder / "zarr.json").read_bytes())
        return bool(root["consolidated_metadata"]["metadata"]["rank"]["shape"][0])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return True


def clear(folder: Path) -> None:
    """Remove the results and checkpoints of an earlier run, and nothing that a run did not write."""
    (folder / "zarr.json").unlink(missing_ok=True)  # first: without it no reader takes the rest for a store
    for path in folder.iterdir():
        if path.is_dir() and ((path / "zarr.json").exists() or path.name == "alerts"):
            shutil.rmtree(path)
        elif path.is_file() and path.name in ("alerts.csv", "alerts.jsonl"):
            path.unlink()
    for path in (folder / PRIVATE).glob("checkpoint-*"):
        path.unlink()
    remove_leftovers(folder)


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


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half done."""
    for path in folder.rglob(f"*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            path.unlink()


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
