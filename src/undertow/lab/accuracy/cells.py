"""Results of finished cells on disk, so that an interrupted run continues where it stopped.

One JSON file per cell, named by a digest of everything that determines the cell and written atomically. The key holds
the version of the package and a digest of the source files involved: a changed method is run again.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import undertow

Key = dict[str, Any]

_SHARED = (
    "datasets",
    "metrics.py",
    "experiments/case.py",
    "experiments/contest.py",
    "experiments/track.py",
    "experiments/yardstick.py",
    "experiments/judge.py",
    "experiments/contenders.py",
    "experiments/streams.py",
)
_OURS = ("model", "estimator.py", "panel.py", "functional.py", "telling.py", "units.py", "slices.py", "result.py")


class CellStore:
    """A folder of finished cells.

    folder  where they are kept
    fresh   do not look at what is there, only write
    """

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder = folder
        self.fresh = fresh
        self._written: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: Key) -> dict[str, Any] | None:
        """The result of a cell, or None if it has to be computed."""
        name = _digest(json.dumps(key, sort_keys=True))
        if self.fresh and name not in self._written:
            return None
        try:
            held = json.loads((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError):  # not there, or cut off by a full disk: compute it again
            return None
        return held["result"] if isinstance(held, dict) and held.get("key") == key else None

    def put(self, key: Key, result: dict[str, Any]) -> None:
        """Keep the result of a cell."""
        name = _digest(json.dumps(key, sort_keys=True))
        write_json(self.folder / f"{name}.json", {"key": key, "result": result})
        self._written.add(name)


def write_json(path: Path, content: Any) -> None:
    """All or nothing: a reader never sees half a file."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """All or nothing, and two runs in one folder do not meet."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@cache
def provenance(ours: bool) -> dict[str, str]:
    """The version, and a digest of the sources that a cell of ours, or of a rival, depends on."""
    root = Path(undertow.__file__).parent
    digest = hashlib.sha256()
    for part in (*_SHARED, *(_OURS if ours else ("baselines",))):
        place = root / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return {"version": undertow.__version__, "sources": digest.hexdigest()[:16]}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
