"""Slots: arrays of small models have room for a few more slices and components than are used, from a ladder of sizes.

So models with similar windows and ranks share programs, which take seconds to compile. Results are the same to
rounding. An empty slot costs as much as any other, so large windows have none.
"""

from __future__ import annotations

import math

from undertow.config import Config
from undertow.model.settings import Slots

LARGE_WINDOW = 100_000
"""Entries of a window from which on it has no empty slots, and programs for few components and for nearly full data are
worth compiling instead: a slice takes longer there."""


def rung(size: int) -> int:
    """The smallest of 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, … that is not below a size."""
    step = 1 << max(0, size.bit_length() - 3)
    steps = -(-size // step)
    return step * (8 if steps == 7 else steps)


def slots(config: Config, shape: tuple[int, ...], entries: int | None = None) -> Slots:
    """What the arrays of a model have room for; with `entries` only observed ones are kept, that many at most."""
    rank = config.rank_limit(shape, sparse=entries is not None)
    small = config.window * math.prod(shape) < LARGE_WINDOW and entries is None
    if small and config.start == "warm" and config.memory == "window":
        return Slots(rung(config.window), rung(rank))
    return Slots(config.window, rank)
