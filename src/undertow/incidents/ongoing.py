"""Incidents that are open: which entries are theirs, whether they still last, how far they are off, where in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from undertow.incidents.finding import STRONG, UNUSUAL
from undertow.incidents.grouping import MOST, Bools, Group, is_block, touches
from undertow.incidents.incident import MOST_ENTRIES, Incident, Kind, Side
from undertow.incidents.naming import Names
from undertow.incidents.reading import Floats, Seen
from undertow.incidents.scores import Scores
from undertow.incidents.tails import combined, largest

STILL = 4.0
"""Surprise of an incident's entries from which on it still lasts."""
TOGETHER = 5
"""Slices within which what begins is taken for one incident."""
KEPT_SHARE = 0.5
"""Of the distance at the peak of an incident: what is expected has moved by as much if a change lasts."""
ONE_SIDE = 0.8
"""Of the entries: on one side if as many are."""


@dataclass
class Open:
    """An incident that lasts.

    Attributes:
        incident: As it is reported.
        members: Entries that belong to it, flat: nothing else is looked for there.
        counted: Those that have been off.
        peak: How far the farthest was, in standard deviations.
        place: Which it was, flat.
        expected: What it should have been then.
        after: What it should be in the first of the slices without it, None while there is none.
        calm: Slices without it.
        believed: The slice in which the model came to believe that its change lasts; -1 as long as it does not.
    """

    incident: Incident
    members: Bools
    counted: Bools
    peak: float = 0.0
    place: int = 0
    expected: float = 0.0
    after: float | None = None
    calm: int = 0
    believed: int = -1


NUMBERS = ("peak", "place", "expected", "after", "calm", "believed")
"""Of an open incident, beside its arrays."""


def still(one: Open, seen: Seen, scores: Scores) -> bool:
    """Whether its observed entries are odd, one of them or taken together."""
    if one.incident.kind == "slice":  # by what slices usually are: nothing is learned as long as it lasts
        return bool(seen.off) or scores.whole > STILL
    surprises = scores.entry[one.members & seen.observed]
    size = np.array([float(surprises.size)])
    together = combined(np.minimum(surprises, STILL).sum(keepdims=True), size)[0]
    return bool(max(together, largest(surprises, surprises.size)) > STILL)


def believed(one: Open, seen: Seen, scores: Scores) -> bool:
    """Whether the model believes that its change lasts."""
    unusual = one.members & seen.observed & (scores.entry > UNUSUAL)
    changed = seen.changed & one.members
    return bool(one.incident.kind != "dead" and changed.any() and changed.sum() > MOST * unusual.sum())


def known_as(one: Open, seen: Seen) -> Kind:
    """What an incident is called when it is closed: a change, if the model has followed it and it has not returned.

    Where the model did not say so it is followed soon, if at all: what is expected moves with the hours of the day,
    too, but not within a slice.
    """
    kind = one.incident.kind
    now = float(seen.expected[one.place])
    soon = now if one.believed >= 0 or one.after is None else one.after
    moved = [level - one.expected for level in (now, soon)]
    stays = min(part / (one.incident.amount or 1.0) for part in moved) > KEPT_SHARE
    if not stays or (one.believed < 0 and kind not in ("entry", "row", "block")):
        return kind
    return "scene" if kind == "slice" else "change"


def joins(one: Open, found: Group, number: int) -> bool:
    """Whether what was found is part of an incident that is open: it began just now, or lies beside it."""
    if one.incident.kind in ("dead", "silent"):
        return False
    if number - one.incident.since <= TOGETHER:
        return True
    whole = one.incident.kind in ("row", "slice") or found.kind in ("row", "slice")
    return not whole and touches(one.counted.reshape(found.entries.shape), found.entries)


def spoils(one: Open, found: Group, seen: Seen) -> bool:
    """Whether the rest of a slice is odd only because of an incident in a part of it, and by much less than that."""
    if found.kind != "slice" or one.incident.kind == "slice":
        return False
    rest = np.abs(seen.innovation[found.entries.ravel() & seen.observed & ~one.members])
    here = np.abs(seen.innovation[one.counted & seen.observed])
    return bool(rest.size and here.size and np.median(rest) < STRONG * np.median(here))


def enlarge(one: Open, found: Group, members: Bools) -> None:
    """With what was found in a later slice."""
    one.members = one.members | members
    one.counted = one.counted | found.entries.ravel()
    rows = tuple(sorted({*one.incident.rows, *found.rows}))
    kind: Kind
    if "slice" in (one.incident.kind, found.kind):
        kind, rows = "slice", ()
    elif rows:
        kind = "row"
    else:
        shaped = one.counted.reshape(found.entries.shape)
        kind = "block" if is_block(shaped, np.ones(shaped.shape, bool)) else "entries"
    one.incident = replace(one.incident, kind=kind, rows=rows)


def measure(one: Open, seen: Seen, scores: Scores, names: Names) -> None:
    """How far it is off and which entries are, with this slice."""
    here = one.members & seen.observed
    surprise = np.where(here, np.nan_to_num(scores.entry), -1.0)
    one.counted = one.counted | (here & (surprise > UNUSUAL + math.log(max(int(here.sum()), 1)) / 2))
    size = np.where(one.counted & seen.observed, np.abs(np.nan_to_num(seen.innovation)), 0.0)
    worst = int(np.argmax(size))
    amount = float(seen.amount[worst])
    if size[worst] > one.peak and abs(amount) >= abs(one.incident.amount):  # else the model has begun to follow
        one.peak, one.place, one.expected = float(size[worst]), worst, float(seen.expected[worst])
        above = float(np.mean(seen.innovation[one.counted & here] > 0))
        side: Side = "above" if above > ONE_SIDE else "below" if above < 1 - ONE_SIDE else "both"
        one.incident = replace(one.incident, std=float(seen.innovation[worst]), amount=amount, side=side)
    name(one, size, names)


def name(one: Open, size: Floats, names: Names) -> None:
    """In words: where it is, and which entries are off, the farthest first."""
    places = np.flatnonzero(one.counted)
    order = places[np.argsort(-size[places], kind="stable")]
    positions = np.stack(np.unravel_index(order, names.shape), axis=1).astype(np.int64)
    if one.incident.kind == "slice":
        where = "the whole slice"
    elif one.incident.rows:
        where = names.rows(one.incident.rows)
    elif one.incident.kind == "block":
        where = names.block(positions)
    else:
        where = names.entries(positions)
    listed = tuple(tuple(int(index) for index in position) for position in positions[:MOST_ENTRIES])
    labels = tuple(names.entry(position) for position in listed) if any(names.labels) else ()
    one.incident = replace(one.incident, where=where, entries=listed, labels=labels, count=len(places))
