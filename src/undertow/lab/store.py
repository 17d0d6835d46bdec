"""Finished results on disk, so that an interrupted run continues where it stopped.

One JSON file per result, named by a digest of everything that determines it and written atomically. The key holds a
digest of the code (`undertow.lab.provenance`): what has changed is run again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

Key = dict[str, Any]


class ResultStore:
    """A folder of finished results.

    Args:
        folder: where they are kept.
        fresh: do not read what earlier runs left, only write.
    """

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder = folder
        self.fresh = fresh
        self._written: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: Key) -> dict[str, Any] | None:
        """The result kept under a key, or None if it has to be computed."""
        name = _digest(json.dumps(key, sort_keys=True))
        if self.fresh and name not in self._written:
            return None
        try:
            held = json.loads((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError):  # not there, or cut off by a full disk: compute it again
            return None
        return held["result"] if isinstance(held, dict) and held.get("key") == key else None

    def put(self, key: Key, result: dict[str, Any]) -> None:
        """Keep a result."""
        name = _digest(json.dumps(key, sort_keys=True))
        write_json(self.folder / f"{name}.json", {"key": key, "result": result})
        self._written.add(name)


def write_json(path: Path, content: Any) -> None:
    """All or nothing: a reader never sees half a file."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """All or nothing, and two runs in one folder do not interfere."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
