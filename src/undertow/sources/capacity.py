"""Labels of a mode that are not known beforehand: slots, taken in the order in which labels appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

from undertow.ladder import rung
from undertow.sources.base import Label, Stream, StreamError

MOST = 2**16
"""Slots of a mode that may be asked for."""
GROWS_TO = 4096
"""Slots that a mode grows to where nothing else was asked for."""
Capacity: TypeAlias = int | tuple[int, int]
"""Slots of a mode at first; or these and how many there may come to be."""


class LabelSlots(Sequence[Label]):
    """The labels in all slots, as far as they are known by now; `(free 3)` where none has come yet.

    It fills while a stream is read, so it is never copied. Who has had a slot keeps it: results are stored by slot.
    Where all are taken there are more, sizes of a ladder.

    Args:
        size: Slots at first.
        known: Labels that have a slot from the beginning.
        most: Slots that there may come to be; as many as at first where it is left out.

    Examples:
        >>> slots = LabelSlots(3, ["A"], 4)
        >>> slots.slot("B"), slots.slot("A"), list(slots)
        (1, 0, ['A', 'B', '(free 2)'])
        >>> slots.slot("C"), slots.slot("D"), slots.slot("E"), list(slots)
        (2, 3, -1, ['A', 'B', 'C', 'D'])
    """

    def __init__(self, size: int, known: Sequence[Label] = (), most: int | None = None) -> None:
        self.first, self.most = size, max(size, most or 0)
        self._known = tuple(map(str, known))
        self._labels = list(self._known)
        self._slots = {label: slot for slot, label in enumerate(self._labels)}

    @property
    def taken(self) -> int:
        """How many slots are."""
        return len(self._labels)

    def size(self, taken: int) -> int:
        """Slots that there are when this number is taken."""
        return self.first if taken <= self.first else max(taken, min(rung(taken), self.most))

    def slot(self, label: str) -> int:
        """Where it stands; −1 where no slot is free for it."""
        if label not in self._slots and self.taken < self.most:
            self._slots[label] = self.taken
            self._labels.append(label.encode("utf-8", "replace").decode())
        return self._slots.get(label, -1)

    def up_to(self, size: int) -> list[str]:
        """The labels of the first slots, of which there may be fewer by now."""
        known = self._labels[:size]
        return [*known, *(f"(free {slot})" for slot in range(len(known), size))]

    def __iter__(self) -> Iterator[Label]:
        return iter(self.up_to(len(self)))

    def __len__(self) -> int:
        return self.size(self.taken)

    @overload
    def __getitem__(self, slot: int) -> Label: ...
    @overload
    def __getitem__(self, slot: slice) -> Sequence[Label]: ...
    def __getitem__(self, slot: int | slice) -> Any:
        if isinstance(slot, slice) or slot < 0:
            return self.up_to(len(self))[slot]
        if slot >= len(self):
            raise IndexError(slot)
        return self._labels[slot] if slot < self.taken else f"(free {slot})"

    def __str__(self) -> str:
        """The same however many have come: it tells streams apart."""
        most = "" if self.most in (self.first, GROWS_TO) else f"..{self.most}"
        return f"capacity {self.first}{most}: {', '.join(self._known)}"


def any_slots(stream: Stream) -> bool:
    """Whether labels may come to a stream, so that its slices grow."""
    return any(isinstance(labels, LabelSlots) for labels in stream.labels)


def parse_capacity(given: Any) -> dict[str, Capacity] | None:
    """Slots per mode; texts ``src=16`` or ``src=16..64`` from a command line."""
    if given is None:
        return None
    pairs = given.items() if isinstance(given, Mapping) else (
        str(text).partition("=")[::2] for text in ([given] if isinstance(given, str) else given)
    )  # fmt: skip
    found: dict[str, Capacity] = {}
    for mode, slots in pairs:
        parts = slots if isinstance(slots, tuple | list) else str(slots).split("..")
        numbers = [int(part) if str(part).strip().isdigit() else 0 for part in parts]
        if not str(mode).strip() or len(numbers) > 2 or not 1 <= numbers[0] <= numbers[-1] <= MOST:
            raise StreamError(
                f"capacity must have the form src=16, or src=16..64 to grow to no more than that, with 1 to {MOST} "
                f"slots, got {mode}={slots}"
            )
        found[str(mode).strip()] = numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
    return found
