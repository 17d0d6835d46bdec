"""The slices of a stream that are kept as they came, and when they ask for another frame."""

from __future__ import annotations

import math

import numpy as np

from undertow.engine.history import CONSTANT_WINDOWS
from undertow.inputs.dense import Slice
from undertow.tracker.ahead import sampled
from undertow.tracker.frame import Frame, choose, misled, usual_slices
from undertow.tracker.regime import changed
from undertow.tracker.scales import LINEAR

RECENT = 20
"""Slices that are kept as they came: from these the frame is chosen, and learned anew where it changes."""
RECENT_BYTES = 64_000_000
"""Fewer of them where slices are large, but three at least."""
CONSTANT_FOR = RECENT // CONSTANT_WINDOWS
"""Half as many slices as are learned of a stream that has never been anything but one slice repeated."""
FEWEST_SAMPLED, CLOSE = 300, 0.6
"""Observations in a sample of three slices from which on it says how large they are, and the part of the limits of a
frame within which that is beyond doubt."""
QUICK = 4
"""One in four of the sample of a slice is asked first: mostly that is beyond doubt."""
BEGINNING = 5
"""Slices after which it is looked, each time, whether the stream has been another one since then."""
MOST = 0.5
"""Fraction of the entries that must move for a stream that has been constant to begin anew: who walks through a still
picture does not."""
REVIEWS = (2, 3, BEGINNING, 10)
"""Slices after which the frame is reviewed; later on each time their number has doubled."""


def remembered(recent: tuple[Slice, ...], given: Slice, used: int) -> tuple[tuple[Slice, ...], int]:
    """The recent slices and this one, as many as are kept, and how many were learned from.

    Where the stream is of another nature since a few slices, only those: reviews begin anew, with one of this slice.
    """
    recent, used = (*recent, given)[-_kept(given.values.nbytes + given.mask.nbytes) :], used + 1
    if used <= RECENT or used % BEGINNING or len(recent) < RECENT:
        return recent, used
    some = _some_entries(recent)
    older, newer = usual_slices(some[:-BEGINNING]), usual_slices(some[-BEGINNING:])
    return (recent[-BEGINNING:], BEGINNING) if changed(older, newer) else (recent, used)


def was_constant(recent: tuple[Slice, ...]) -> bool:
    """Whether the newest slice is the first that brings something else, in most entries, of a stream that has been
    one slice again and again: of its noise nothing is known yet."""
    if len(recent) < 3:
        return False
    *before, last, given = recent
    return not any(_moved(one, last) for one in before) and _moved(last, given) > MOST


def _moved(one: Slice, other: Slice) -> float:
    """Fraction that differs of what is observed in both slices."""
    both = one.mask & other.mask
    moved = int(np.count_nonzero(both & (one.values != other.values)))
    return moved / max(int(np.count_nonzero(both)), 1)


def recent_bytes(shape: tuple[int, ...]) -> int:
    """The most memory that recent slices take."""
    size = 9 * math.prod(shape)
    return _kept(size) * size


def _kept(size: int) -> int:
    """How many slices of `size` bytes are kept."""
    return max(3, min(RECENT, RECENT_BYTES // size))


def next_frames(current: Frame | None, recent: tuple[Slice, ...], used: int) -> tuple[Frame, ...]:
    """Frames to be tried on the newest of these slices; none, or the current one, where nothing is to be done."""
    if current is not None and not is_reviewed(used) and not _another_size(current, recent):
        return ()
    # A stream that has just begun, or begun anew, owes nothing to the scale in use.
    anew = choose(recent) if used <= BEGINNING else None
    wanted = choose(recent, current, anew.scale if anew else None)
    if wanted is None:
        return ()
    if wanted.scale == LINEAR:
        return (wanted,)
    return wanted, choose(recent, current, LINEAR) or wanted


def learned_nonsense(current: Frame | None, recent: tuple[Slice, ...], used: int) -> bool:
    """Whether the first slices, which are all still there, are to be learned anew for what was grossly off in them."""
    return current is not None and is_reviewed(used) and len(recent) == used and misled(recent)


def is_reviewed(used: int) -> bool:
    """Whether the frame is reviewed once this number of slices were learned from."""
    return used in REVIEWS or (used % RECENT == 0 and (used // RECENT).bit_count() == 1)


def _another_size(current: Frame, recent: tuple[Slice, ...]) -> bool:
    """Whether the last three slices, and most of the recent ones, agree that unit or origin are wrong by far."""
    three = recent[-3:]
    if len(three) < 3 or _clearly_the_same_size(current, three):
        return False
    return all(choose(one, current, current.scale) not in (None, current) for one in (three, recent))


def _clearly_the_same_size(current: Frame, three: tuple[Slice, ...]) -> bool:
    """Whether some entries of large slices say so beyond doubt: to order all of them takes longer than to learn."""
    for part in (QUICK, 1):
        some = _some_entries(three, part)
        if some is three:
            return False
        enough = sum(int(np.count_nonzero(one.mask)) for one in some) >= FEWEST_SAMPLED
        if enough and choose(some, current, current.scale, CLOSE) == current:
            return True
    return False


def _some_entries(slices: tuple[Slice, ...], part: int = 1) -> tuple[Slice, ...]:
    """Some entries of large slices, or one in `part` of these, flat, the same of all; small slices as they are."""
    places = sampled(slices[0].values.size)
    if places is None:
        return slices
    places = places[::part]
    return tuple(Slice(one.values.ravel()[places], one.mask.ravel()[places]) for one in slices)
