"""What is timed: something that takes in slice after slice."""

from __future__ import annotations

import copy
from typing import Self

from undertow.lab.speed.slices import Floats


class Subject:
    """One method on one stream. Only `feed` must be written; what is not known is None.

    A subject replaces what it has learned and never changes it in place, so that a shallow copy is a snapshot and the
    same slice can be timed again from the same state.
    """

    slices: int = 1
    """Slices of data that one feed takes in; a fleet takes one of every stream."""

    def feed(self, t: int) -> int | None:
        """Do slice t and wait until it is done. Returns the sweeps that it took, if the method has such a thing."""
        raise NotImplementedError

    def warm(self, t: int) -> None:
        """Take in slice t before anything is timed; methods that remember nothing but the data may do less."""
        self.feed(t)

    def low_rank(self) -> Floats | None:
        """The last slice fed as the method explains it, in the unit of the data."""
        return None

    def flops(self, iterations: int) -> float | None:
        """Floating-point operations of the matrix products in a feed of this many sweeps."""
        return None

    def memory(self) -> int | None:
        """Bytes that one feed needs at most, as the compiler plans them."""
        return None

    def pinned(self, sweeps: int) -> Self:
        """A snapshot that takes this many sweeps at every feed, whether they are needed or not, if that can be set."""
        return self.snapshot()

    def snapshot(self) -> Self:
        """The subject as it is now; what is fed to one of the two, the other does not see."""
        return copy.copy(self)
