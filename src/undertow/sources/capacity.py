"""Labels of a mode that are not known beforehand: a number of slots, taken in the order in which labels appear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from undertow.sources.base import Label, StreamError

MOST = 2**16
"""Slots of a mode."""


class LabelSlots(Sequence[Label]):
    """The labels in all slots, as far as they are known by now; `(free 3)` where none has come yet.

    It fills while a stream is read, so it is never copied. Who has had a slot keeps it: results are stored by slot.

    Args:
        size: Slots.
        known: Labels that have a slot from the beginning.

    Examples:
        >>> slots = LabelSlots(3, ["A"])
        >>> slots.slot("B"), slots.slot("A"), list(slots)
        (1, 0, ['A', 'B', '(free 2)'])
        >>> slots.slot("C"), slots.slot("D")
        (2, -1)
    """

    def __init__(self, size: int, known: Sequence[Label] = ()) -> None:
        self._size, self._first = size, tuple(map(str, known))
        self._labels = list(self._first)
        self._slots = {label: slot for slot, label in enumerate(self._labels)}

    @property
    def taken(self) -> int:
        """How many slots are."""
        return len(self._labels)

    def slot(self, label: str) -> int:
        """Where it stands; −1 where no slot is free for it."""
        if label not in self._slots and self.taken < self._size:
            self._slots[label] = self.taken
            self._labels.append(label.encode("utf-8", "replace").decode())
        return self._slots.get(label, -1)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, slot: int) -> Label: ...
    @overload
    def __getitem__(self, slot: slice) -> Sequence[Label]: ...
    def __getitem__(self, slot: int | slice) -> Any:
        if isinstance(slot, slice):
            return [self[one] for one in range(*slot.indices(self._size))]
        if not -self._size <= slot < self._size:
            raise IndexError(slot)
        slot %= self._size
        return self._labels[slot] if slot < self.taken else f"(free {slot})"

    def __str__(self) -> str:
        """The same however many have come: it tells streams apart."""
        return f"capacity {self._size}: {', '.join(self._first)}"


def parse_capacity(given: Any) -> dict[str, int] | None:
    """Slots per mode; texts ``src=16`` from a command line."""
    if given is None:
        return None
    pairs = given.items() if isinstance(given, Mapping) else (
        str(text).partition("=")[::2] for text in ([given] if isinstance(given, str) else given)
    )  # fmt: skip
    found = {}
    for mode, slots in pairs:
        number = int(slots) if str(slots).strip().isdigit() else 0
        if not str(mode).strip() or not 1 <= number <= MOST:
            raise StreamError(f"capacity must have the form src=16, with 1 to {MOST} slots, got {mode}={slots}")
        found[str(mode).strip()] = number
    return found
