"""Modes, rows and entries by what they are called; by number where they have no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_NAMES = 6
SEPARATOR = "; "
"""Between the events of one slice."""


@dataclass(frozen=True)
class Names:
    """What the modes of a slice and their rows are called.

    Attributes:
        shape: Of a slice.
        dims: Name of every mode.
        coords: Labels along every mode; None where it has none.

    Examples:
        >>> names = Names.of((2, 9), dims=("src", "dst"), coords=(("A", "B"), None))
        >>> names.entry((1, 7)), names.position({"src": "B", "dst": 7})
        ('src B, dst 7', (1, 7))
    """

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: tuple[Sequence[Any] | None, ...]

    @classmethod
    def of(cls, shape: Sequence[int], labels: Any = None, *, dims: Any = None, coords: Any = None) -> Names:
        """From labels as models keep them (`dims`, `coords`), or from these two; what is missing is numbered."""
        dims, coords = getattr(labels, "dims", dims), getattr(labels, "coords", coords)
        numbered = tuple(f"mode_{number}" for number in range(1, len(shape) + 1))
        return cls(tuple(shape), tuple(map(str, dims or numbered)), tuple(coords or (None,) * len(shape)))

    @property
    def named(self) -> bool:
        """Whether there is any label."""
        return any(labels is not None for labels in self.coords)

    def label(self, mode: int, index: int) -> Any:
        """Of a row; its number where it has none."""
        labels = self.coords[mode]
        return int(index) if labels is None else labels[index]

    def row(self, mode: int, index: int) -> str:
        """A row in words."""
        return f"{self.dims[mode]} {self.label(mode, index)}"

    def entry(self, position: Sequence[int]) -> str:
        """An entry in words."""
        return ", ".join(self.row(mode, int(index)) for mode, index in enumerate(position))

    def position(self, entry: Any) -> tuple[int, ...]:
        """Where an entry lies.

        Args:
            entry: Labels by the name of their mode; a tuple with a label or a number for each mode; of slices with one
                mode also a single one.

        Raises:
            ValueError: There is no such entry.
        """
        if isinstance(entry, Mapping):
            if set(map(str, entry)) != set(self.dims):
                raise ValueError(
                    f"entry must have a label for each of {', '.join(self.dims)}, got "
                    f"{', '.join(map(str, entry)) or 'none'}."
                )
            given = tuple(entry[dim] for dim in self.dims)
        else:
            given = tuple(entry) if isinstance(entry, (tuple, list)) or hasattr(entry, "tolist") else (entry,)
        if len(given) != len(self.shape):
            raise ValueError(
                f"entry must have one label or number for each of {', '.join(self.dims)}, got {len(given)} of them."
            )
        return tuple(self.index(mode, one) for mode, one in enumerate(given))

    def index(self, mode: int, label: Any) -> int:
        """Where a row lies, by its label; by its number where the mode has no labels, or none that are numbers."""
        labels, size = self.coords[mode], self.shape[mode]
        if labels is not None:
            found = [place for place, one in enumerate(labels) if one == label or str(one) == str(label)]
            if found:
                return found[0]
        counted = labels is None or not any(hasattr(one, "__index__") for one in labels)
        number = label.__index__() if hasattr(label, "__index__") and not isinstance(label, bool) else size
        if counted and -size <= number < size:
            return int(number) % size
        some = range(size) if labels is None else labels
        known = ", ".join(map(str, some[:4])) + (", …" if size > 4 else "")
        raise ValueError(f"{self.dims[mode]} must be one of {known}, got {label!r}.")


def in_words(events: Any, names: Names) -> str:
    """What was wrong in a slice beyond single entries.

    Args:
        events: `undertow.tracker.events.Named`, or None.
        names: Of modes and rows.

    Returns:
        Such as "row off: origin router-03; changed: router-01 router-04"; "" if there is nothing.
    """
    if events is None:
        return ""
    rows = [names.row(mode, index) for mode, index in events.rows]
    found = [
        "slice off" if events.slice_off else "",
        _listed("row off", rows, len(rows)),
        _entries("changed", events.changed, names),
        _entries("dead", events.dead, names),
    ]
    return SEPARATOR.join(filter(None, found))


def _entries(what: str, positions: tuple[Any, ...], names: Names) -> str:
    if not len(positions):
        return ""
    first = zip(*(where[:_MOST_NAMES].tolist() for where in positions), strict=True)
    listed = [" ".join(str(names.label(mode, index)) for mode, index in enumerate(entry)) for entry in first]
    return _listed(what, listed, len(positions[0]))


def _listed(what: str, names: list[str], total: int) -> str:
    if not total:
        return ""
    more = f" and {total - _MOST_NAMES} more" if total > _MOST_NAMES else ""
    return f"{what}: {', '.join(names[:_MOST_NAMES]).replace(SEPARATOR, ' ')}{more}"
