"""What users said about incidents of a run: a JSON line each, taken in when the run goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

from undertow.runs.errors import StoreError
from undertow.runs.store.folder import PRIVATE

FILE = "feedback.jsonl"


def add_feedback(folder: Path, id: int, false_alarm: bool) -> None:
    """Durable when this returns; a run that is going on at the moment is not disturbed.

    Raises:
        StoreError: It cannot be written.
    """
    line = json.dumps({"id": id, "false_alarm": false_alarm}).encode() + b"\n"
    try:
        with open(folder / PRIVATE / FILE, "a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # what a kill left half written
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = (error.strerror or "it cannot be used").lower()
        raise StoreError(f"{folder} cannot take an answer ({reason}): make it writable, or free space") from error


def read_feedback(folder: Path) -> list[tuple[int, bool]]:
    """Number of the incident, and whether it was a false alarm; oldest first."""
    path = folder / PRIVATE / FILE
    if not path.exists():
        return []
    *lines, _ = path.read_text().split("\n")  # a last line that is half written is not there yet
    said = []
    for line in lines:
        try:
            one = json.loads(line)
            said.append((int(one["id"]), bool(one["false_alarm"])))
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{path} is damaged: remove it, and answer again") from error
    return said


def forget_feedback(private: Path) -> None:
    """A run that starts anew has heard nothing."""
    (private / FILE).unlink(missing_ok=True)
