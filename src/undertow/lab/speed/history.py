"""The history of runs: one JSON object per line, the oldest first."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]

FORMAT = 2
"""Lines of another format are left alone and not read."""


def append(path: Path, record: Record) -> None:
    """Add one line atomically: two runs that end together do not mix, and a reader sees all of it or nothing."""
    line = json.dumps({"format": FORMAT, **record}, allow_nan=False, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes()[-1:] not in (b"", b"\n"):  # a full disk cut the last line off
        line = "\n" + line
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)


def read(path: Path) -> list[Record]:
    """All lines that can be read; what was cut off, or written by another version, is skipped."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("format") == FORMAT:
            records.append(record)
    return records


def comparable(records: list[Record], device: Record) -> list[Record]:
    """Those made on this device."""
    return [record for record in records if record.get("device") == device]
