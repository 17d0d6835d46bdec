"""Events in words: what a tracker noticed beyond single entries, by the labels of the stream."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from undertow.runs.store.layout import Layout

SEPARATOR = "; "
"""Between the events of one slice."""
_MOST_NAMES = 6


def in_words(events: Any, layout: Layout) -> str:
    """The events of one slice.

    Args:
        events: `undertow.tracker.events.Named`, or None.
        layout: Of the store: names of modes and labels.

    Returns:
        Such as "row off: origin router-03; changed: router-01 router-04"; "" if there is nothing.
    """
    if events is None:
        return ""
    rows = [f"{layout.dims[mode]} {_label(layout, mode, index)}" for mode, index in events.rows]
    found = [
        "slice off" if events.slice_off else "",
        _listed("row off", rows, len(rows)),
        _entries("changed", events.changed, layout),
        _entries("dead", events.dead, layout),
    ]
    return SEPARATOR.join(filter(None, found))


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
        for what in filter(None, text.split(SEPARATOR)):
            event = self._lasting.get(what)
            if event is None:
                self.events.append(event := Event(what, index, index))
            event.last, lasting[what] = index, event
        self._lasting = lasting


def _entries(what: str, positions: tuple[Any, ...], layout: Layout) -> str:
    if not len(positions):
        return ""
    first = zip(*(where[:_MOST_NAMES].tolist() for where in positions), strict=True)
    names = [" ".join(_label(layout, mode, index) for mode, index in enumerate(entry)) for entry in first]
    return _listed(what, names, len(positions[0]))


def _listed(what: str, names: list[str], total: int) -> str:
    if not total:
        return ""
    more = f" and {total - _MOST_NAMES} more" if total > _MOST_NAMES else ""
    return f"{what}: {', '.join(names[:_MOST_NAMES])}{more}"


def _label(layout: Layout, mode: int, index: int) -> str:
    labels = layout.labels[mode]
    return str(index if labels is None else labels[index]).replace(SEPARATOR, " ")
