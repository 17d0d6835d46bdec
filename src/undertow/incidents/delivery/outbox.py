"""What is still to be sent: an append-only file, durable before anything is sent.

A message has a key that follows from the stream, the incident and whether it opens or closes. A run that is killed and
goes on finds the same incidents and gives them the same keys, so nothing is sent twice that is known to have arrived.
If a process is killed after a message has arrived and before that is written down, it is sent again, with the same key:
at least once, and receivers that care leave out a key they know.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from undertow.serialization.container import CheckpointError, write_bytes

FILE = "outbox.jsonl"
KEYS = 100_000
"""Keys of delivered messages that are known: after a crash, what came since the newest checkpoint is found again."""
_SLACK = 2**20  # bytes that may be superfluous before the file is written anew


class Outbox(Protocol):
    """Messages by key, until every channel has taken them. May be used from several threads."""

    def add(self, key: str, content: dict[str, Any]) -> bool:
        """Keep a message until it is sent, durable when this returns; False if it is known already."""

    def done(self, key: str, name: str) -> None:
        """A channel has taken a message, or never will."""

    def pending(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """What a channel has not taken yet, oldest first."""

    def close(self) -> None:
        """Release everything."""


class FileOutbox:
    """In a file: messages while they wait, and the keys of those that were delivered.

    Args:
        folder: Where the file is.
        names: Of the channels that messages are for from now on.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._path, self._names = folder / FILE, tuple(names)
        self._lock = threading.Lock()
        self._known: dict[str, None] = {}
        self._waiting: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in names}
        self._compacted = 0
        self._read()
        self._file = open(self._path, "ab")  # noqa: SIM115 (open for as long as there is something to send)
        self._compact()

    @staticmethod
    def remove(folder: Path) -> None:
        """Forget everything: a run that starts anew tells everything anew."""
        (folder / FILE).unlink(missing_ok=True)

    def add(self, key: str, content: dict[str, Any]) -> bool:  # noqa: D102
        with self._lock:
            if key in self._known:
                return False
            self._append({"key": key, "message": content, "to": self._names})
            self._keep(key, content, self._names)
            return True

    def done(self, key: str, name: str) -> None:  # noqa: D102
        with self._lock:
            self._append({"done": key, "channel": name})
            self._waiting[name].pop(key, None)
            self._compact()

    def pending(self, name: str) -> list[tuple[str, dict[str, Any]]]:  # noqa: D102
        with self._lock:
            return list(self._waiting[name].items())

    def close(self) -> None:  # noqa: D102
        self._file.close()

    def _keep(self, key: str, content: dict[str, Any], names: Sequence[str]) -> None:
        self._known[key] = None
        for name in names:
            self._waiting.setdefault(name, {})[key] = content

    def _append(self, line: dict[str, Any]) -> None:
        self._file.write(_line(line))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _compact(self) -> None:
        """Write the file anew, whole or not at all, once most of it is about messages that were delivered."""
        if self._file.tell() <= 2 * self._compacted + _SLACK:
            return
        to: dict[str, list[str]] = {}
        contents = {key: content for waiting in self._waiting.values() for key, content in waiting.items()}
        for name, waiting in self._waiting.items():
            for key in waiting:
                to.setdefault(key, []).append(name)
        oldest = len(self._known) - KEYS
        self._known = {key: None for number, key in enumerate(self._known) if number >= oldest or key in to}
        lines = [
            _line({"key": key, "message": contents[key], "to": to[key]} if key in to else {"key": key})
            for key in self._known
        ]
        with contextlib.suppress(CheckpointError):  # then the old one goes on
            write_bytes(self._path, b"".join(lines))
        self._file.close()
        self._file = open(self._path, "ab")  # noqa: SIM115
        self._compacted = self._file.tell()

    def _read(self) -> None:
        """Everything up to the last whole line; what a kill left half written is cut off."""
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))
        for line in whole.decode("utf-8", "replace").split("\n"):
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "done" in one:
                self._waiting.get(one["channel"], {}).pop(one["done"], None)
            elif "message" in one:
                self._keep(one["key"], one["message"], one.get("to", self._names))
            elif "key" in one:
                self._known[one["key"]] = None


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
