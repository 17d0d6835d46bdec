"""The folder of a store: whose it is, and what may be removed from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from undertow.runs.store.files import StoreError, remove_leftovers

PRIVATE = ".undertow"
"""Checkpoints and the lock lie in this folder of the store."""


def claim(folder: Path, *, resume: bool, overwrite: bool) -> Path:
    """Make the folder a store, or accept the one that is there; returns its private folder."""
    private = folder / PRIVATE
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"store must be a folder, got the file {folder}: name another one")
    if private.is_dir():
        if not (resume or overwrite) and any(folder.glob("zarr.json")):
            raise StoreError(
                f"{folder} holds results already: go on with --resume, start again with --overwrite, "
                "or name another store with --store"
            )
    elif folder.is_dir() and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty and was not made by undertow run: name another store with --store")
    private.mkdir(parents=True, exist_ok=True)
    return private


def holds_slices(folder: Path) -> bool:
    """Whether readers of the store would find any slice in it; in doubt they would."""
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
