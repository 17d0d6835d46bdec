"""Incidents in a store: one JSON line for each that opens, becomes another or closes; the last line of an id counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from undertow.incidents import Change
from undertow.runs.errors import StoreError
from undertow.runs.store.feedback import read_feedback
from undertow.runs.store.growing import START_AGAIN, GrowingFile

FILE = "incidents.jsonl"


class IncidentFile(GrowingFile):
    """The file, appended to as incidents happen."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / FILE)

    def add(self, changes: Iterable[Change]) -> None:
        """Append immediately."""
        lines = [json.dumps({"what": one.what, **one.incident.to_json()}, ensure_ascii=False) + "\n" for one in changes]
        if lines:
            self.write("".join(lines).encode())


def read_incidents(folder: Path) -> list[dict[str, Any]]:
    """All incidents of a store as they are now, oldest first, as `Incident.to_json` has them.

    With what users said about them. A last line that is half written is left out.
    """
    path = folder / FILE
    if not path.exists():
        return []
    found: dict[int, dict[str, Any]] = {}
    lines = path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            entry.pop("what", None)
            found[int(entry["id"])] = entry
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if number == len(lines):
                break
            raise StoreError(f"{path} is damaged at line {number}: restore it from a copy, or {START_AGAIN}") from error
    for id, false_alarm in read_feedback(folder):
        if id in found:
            found[id]["false_alarm"] = false_alarm
    return list(found.values())
