"""Labels of a mode that are not known beforehand: a number of places, taken in the order in which labels appear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from undertow.sources.base import Label, StreamError

MOST = 2**16
"""Places of a mode."""


class Room(Sequence[Label]):
    """The labels at all places, as far as they are known by now; `(free 3)` where nobody has come yet.

    It fills while a stream is read, so it is never copied. Who has had a place keeps it: results are stored by place.

    Args:
        size: Places.
        known: Labels that have a place from the beginning.

    Examples:
        >>> room = Room(3, ["A"])
        >>> room.place("B"), room.place("A"), list(room)
        (1, 0, ['A', 'B', '(free 2)'])
        >>> room.place("C"), room.place("D")
        (2, -1)
    """

    def __init__(self, size: int, known: Sequence[Label] = ()) -> None:
        self._size, self._first = size, tuple(map(str, known))
        self._labels = list(self._first)
        self._places = {label: place for place, label in enumerate(self._labels)}

    @property
    def taken(self) -> int:
        """How many places are."""
        return len(self._labels)

    def place(self, label: str) -> int:
        """Where it stands; −1 where there is no room for it."""
        if label not in self._places and self.taken < self._size:
            self._places[label] = self.taken
            self._labels.append(label.encode("utf-8", "replace").decode())
        return self._places.get(label, -1)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Label: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Label]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._size))]
        if not -self._size <= place < self._size:
            raise IndexError(place)
        place %= self._size
        return self._labels[place] if place < self.taken else f"(free {place})"

    def __str__(self) -> str:
        """The same however many have come: it tells streams apart."""
        return f"room for {self._size}: {', '.join(self._first)}"


def parse_room(given: Any) -> dict[str, int] | None:
    """Places per mode; texts ``src=16`` from a command line."""
    if given is None:
        return None
    pairs = given.items() if isinstance(given, Mapping) else (
        str(text).partition("=")[::2] for text in ([given] if isinstance(given, str) else given)
    )  # fmt: skip
    found = {}
    for mode, places in pairs:
        number = int(places) if str(places).strip().isdigit() else 0
        if not str(mode).strip() or not 1 <= number <= MOST:
            raise StreamError(f"room must have the form src=16, with 1 to {MOST} places, got {mode}={places}")
        found[str(mode).strip()] = number
    return found
