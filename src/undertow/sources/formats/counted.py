"""How many rows were left out, each counted once however often it is read."""

from __future__ import annotations

from collections.abc import Hashable

MOST_PLACES = 2**14
"""Places that are remembered: what was read longer ago is not read again."""


class Counted:
    """Rows that were left out, by the places where they stand.

    Examples:
        >>> left_out = Counted()
        >>> left_out.add("first batch", 3), left_out.add("first batch", 3), left_out.add("second batch", 1)
        (None, None, None)
        >>> left_out.rows
        4
    """

    def __init__(self) -> None:
        self.rows = 0
        self._at: dict[Hashable, int] = {}

    def add(self, where: Hashable, count: int) -> None:
        """Rows at a place, or the same again."""
        self.rows += count - self._at.pop(where, 0)
        self._at[where] = count
        if len(self._at) > MOST_PLACES:
            del self._at[next(iter(self._at))]
