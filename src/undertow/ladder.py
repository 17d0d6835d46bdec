"""Sizes of what grows: few of them, since programs are compiled for each."""

from __future__ import annotations


def rung(size: int) -> int:
    """The next size of the ladder 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third of the places is free.

    Examples:
        >>> [rung(size) for size in (5, 9, 13, 100)]
        [6, 12, 16, 128]
    """
    power = 1 << (size - 1).bit_length()
    return power * 3 // 4 if power >= 4 and size <= power * 3 // 4 else power
