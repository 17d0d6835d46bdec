"""Which entries belong together: a row, a row and a column, a block, a slice, or just some entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.incident import Kind

MOST = 0.5
"""A row or a slice is off if more than this fraction of its observed entries is; a block, if it is filled so far."""
FEWEST = 4
"""Observed entries from which on that can be said of a row or a slice."""
Bools = NDArray[np.bool_]
Rows = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Group:
    """What was found in one slice: its kind, the rows that it consists of, its entries (of a slice's shape)."""

    kind: Kind
    rows: Rows
    entries: Bools


def group(off: Bools, likely: Bools, observed: Bools, candidates: Rows, whole: bool) -> Group | None:
    """Put the entries that are off into one group.

    Args:
        off: Entries that are off for sure.
        likely: Entries that are more than usually off; these decide whether a row is off as a whole.
        observed: Entries that were observed.
        candidates: (mode, index) of rows that are off when taken as one.
        whole: Whether the slice as a whole is.

    Returns:
        None where there is nothing.
    """
    unusual = off | likely
    if whole or (observed.sum() >= FEWEST and off.sum() > MOST * observed.sum()):
        return Group("slice", (), observed & unusual)
    rows, inside = _rows(unusual, observed, candidates)
    if rows and (inside & observed).sum() > MOST * observed.sum():
        return Group("slice", (), observed & unusual)
    if rows:
        # What lies outside of a failing row begins with it, and so belongs to it.
        return Group("row", rows, (off | (inside & unusual)) & observed)
    if not off.any():
        return None
    if off.sum() == 1:
        return Group("entry", (), off)
    return Group("block" if is_block(off, observed) else "entries", (), off)


def is_block(off: Bools, observed: Bools, fraction: float = MOST) -> bool:
    """Whether the entries fill most of the smallest box of rows that holds them, with two rows in two modes at least.

    In one mode there are no blocks: any set of entries would be one.
    """
    sets = [np.unique(where) for where in np.nonzero(off)]
    if sum(len(one) > 1 for one in sets) < 2:
        return False
    box = np.ix_(*sets)
    return bool(off[box].sum() > fraction * max(observed[box].sum(), 1))


def within(off: Bools, rows: Rows) -> Bools:
    """The entries of these rows."""
    inside = np.zeros(off.shape, bool)
    for mode, index in rows:
        inside[(slice(None),) * mode + (index,)] = True
    return inside


def touches(one: Bools, other: Bools) -> bool:
    """Whether two sets of entries meet: in every mode some of their rows are the same or neighbours."""
    for mode in range(one.ndim):
        axes = tuple(axis for axis in range(one.ndim) if axis != mode)
        near = np.atleast_1d(one.any(axis=axes))
        near = near | np.append(near[1:], False) | np.insert(near[:-1], 0, False)
        if not (near & other.any(axis=axes)).any():
            return False
    return True


def _rows(unusual: Bools, observed: Bools, candidates: Rows) -> tuple[Rows, Bools]:
    """Those of the candidates most of whose entries are unusual; where they are most of a mode, fewer of another."""
    kept = []
    for mode, index in candidates:
        place = (slice(None),) * mode + (index,)
        seen, bad = observed[place].sum(), (unusual & observed)[place].sum()
        if seen >= FEWEST and bad > MOST * seen:
            kept.append((mode, index))
    # A block of rows that spans a whole mode makes every row of the other modes look off: fewer rows say the same.
    for mode in range(unusual.ndim):
        mine = [row for row in kept if row[0] == mode]
        others = tuple(row for row in kept if row[0] != mode)
        if len(mine) > MOST * unusual.shape[mode] and others:
            kept = list(others)
    rows = tuple(kept)
    return rows, within(observed, rows)
