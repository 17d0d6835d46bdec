"""Events in words: what a tracker noticed beyond single entries, by the labels of the stream."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from undertow.runs.store.layout import Layout
from undertow.view import names


def in_words(events: Any, layout: Layout) -> str:
    """The events of one slice, `undertow.tracker.events.Named` or None, by the names that the store has."""
    return names.in_words(events, names.Names.of(layout.shape, dims=layout.dims, coords=layout.labels))


@dataclass
class Event:
    """Something that was said of one slice, or of several in a row."""

    what: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"slice {self.first}{f'–{self.last}' if self.last > self.first else ''}: {self.what}"


class Chronicle:
    """Events in the order in which they began: what is said again of the next slice is the same one.

    Args:
        most: How many are kept, the newest; None for all.
    """

    def __init__(self, most: int | None = None) -> None:
        self.events: deque[Event] = deque(maxlen=most)
        self._lasting: dict[str, Event] = {}

    def add(self, index: int, text: str) -> None:
        """What `in_words` gave for a slice."""
        lasting = {}
        for what in filter(None, text.split(names.SEPARATOR)):
            event = self._lasting.get(what)
            if event is None:
                self.events.append(event := Event(what, index, index))
            event.last, lasting[what] = index, event
        self._lasting = lasting
