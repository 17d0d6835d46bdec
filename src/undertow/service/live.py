"""What pages watch: the newest only, so that a slow reader is never waited for."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import orjson

from undertow.service import frames
from undertow.service.hosted import Outcome

OVERVIEW_SECONDS = 0.25


@dataclass(eq=False)
class Watcher:
    """One page. It takes what is newest when it is ready for more; what came in between it has missed."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    watched: str | None = None
    frame: bytes | None = None


class Hub:
    """Passes outcomes from the inference thread to the pages of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._watchers: set[Watcher] = set()
        self._newest: dict[str, dict[str, Any]] = {}
        self._versions: dict[str, int] = {}
        self.changes = 0
        self.closing = False

    @property
    def pages(self) -> int:
        """Pages that watch."""
        return len(self._watchers)

    def join(self) -> Watcher:
        """A new page."""
        watcher = Watcher()
        with self._lock:
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """A page has gone."""
        with self._lock:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """Tell every page that this is the end."""
        self.closing = True
        with self._lock:
            for watcher in self._watchers:
                self._wake(watcher)

    def publish(self, name: str, outcome: Outcome) -> None:
        """A slice was learned."""
        header = {"stream": name, "sequence": outcome.sequence, "time": outcome.time, "numbers": outcome.numbers}
        with self._lock:
            self._newest[name] = {**header, "incidents_version": self._versions.get(name, 0)}
            self.changes += 1
            watching = [one for one in self._watchers if one.watched == name]
            if watching:
                frame = frames.framed(self._newest[name], outcome.body)
                for watcher in watching:
                    watcher.frame = frame
                    self._wake(watcher)

    def incidents_changed(self, name: str) -> None:
        """Pages should ask for the incidents again."""
        with self._lock:
            self._versions[name] = self._versions.get(name, 0) + 1
            if name in self._newest:
                self._newest[name] = {**self._newest[name], "incidents_version": self._versions[name]}
            self.changes += 1

    def forget(self, name: str) -> None:
        """A stream was deleted."""
        with self._lock:
            self._newest.pop(name, None)
            self.changes += 1

    def taken(self, watcher: Watcher) -> bytes | None:
        """The newest frame of what a page watches, once."""
        with self._lock:
            frame, watcher.frame = watcher.frame, None
            return frame

    def overview(self) -> bytes:
        """The newest numbers of every stream that was fed since the start."""
        with self._lock:
            return orjson.dumps({"type": "overview", "streams": list(self._newest.values())})

    def _wake(self, watcher: Watcher) -> None:
        self._loop.call_soon_threadsafe(watcher.event.set)
