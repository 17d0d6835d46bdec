"""Events in words: what a tracker noticed beyond single entries, by the labels of the stream."""

from __future__ import annotations

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
