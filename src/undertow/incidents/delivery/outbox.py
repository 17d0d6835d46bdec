"""What is still to be sent: an append-only file, durable before anything is sent.

A message has a key that follows from the stream, the incident and whether it opens or closes. A run that is killed and
goes on finds the same incidents and gives them the same keys, so nothing is sent twice that is known to have arrived.
If a process is killed after a message has arrived and before that is written down, it is sent again, with the same key:
at least once, and receivers that care leave out a key they know.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

FILE = "outbox.jsonl"


class Outbox:
    """Messages by key, with the channels that have taken them. May be used from several threads.

    Args:
        folder: Where its file is.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._messages: dict[str, dict[str, Any]] = {}
        self._done: set[tuple[str, str]] = set()
        self._read()
        self._file = open(self._path, "ab")  # noqa: SIM115 (open for as long as there is something to send)

    @staticmethod
    def remove(folder: Path) -> None:
        """Forget everything: a run that starts anew tells everything anew."""
        (folder / FILE).unlink(missing_ok=True)

    def add(self, key: str, content: dict[str, Any]) -> bool:
        """Keep a message until it is sent; False if it is known already."""
        with self._lock:
            if key in self._messages:
                return False
            self._append({"key": key, "message": content})
            self._messages[key] = content
            return True

    def done(self, key: str, name: str) -> None:
        """A channel has taken a message, or never will."""
        with self._lock:
            self._append({"done": key, "channel": name})
            self._done.add((key, name))

    def pending(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """What a channel has not taken yet, oldest first."""
        with self._lock:
            return [(key, content) for key, content in self._messages.items() if (key, name) not in self._done]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        """Everything up to the last whole line; what a kill left half written is cut off."""
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))
        for line in whole.decode("utf-8", "replace").splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if "message" in told:
                self._messages[told["key"]] = told["message"]
            elif "done" in told:
                self._done.add((told["done"], told["channel"]))
