"""The incidents of one stream: which last, which were closed lately, how many there have been."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from undertow.incidents import ongoing
from undertow.incidents.clock import Moment
from undertow.incidents.grouping import Rows, within
from undertow.incidents.incident import Change, Incident, Kind
from undertow.incidents.naming import Names
from undertow.incidents.ongoing import Open
from undertow.incidents.reading import Bools, Seen
from undertow.incidents.scores import Scores
from undertow.incidents.stuck import Stuck

CALM = 10
"""Observed slices in a row without it, after which an incident is closed; and slices after its change was believed,
since what a model has just taken over does not fit well at first."""
RECENT = 100
"""Closed incidents that are kept, so that users can say something about them."""


@dataclass
class Register:
    """Incidents of a stream.

    Attributes:
        names: Of its modes and rows.
        open: Those that last, oldest first.
        recent: Those that were closed last, oldest first.
        count: How many there have been.
    """

    names: Names
    open: list[Open] = field(default_factory=list)
    recent: list[Incident] = field(default_factory=list)
    count: int = 0

    def members(self, kinds: tuple[Kind, ...] = ()) -> Bools:
        """Entries of incidents that last, flat; where no kinds are given, of those that concern what is observed."""
        found = np.zeros(int(np.prod(self.names.shape)), bool)
        for one in self.open:
            if one.incident.kind in kinds or not (kinds or one.incident.kind == "silent"):
                found |= one.members
        return found

    def find(self, id: int) -> Incident | None:
        """One that is open or recent."""
        return next((one for one in (*(one.incident for one in self.open), *self.recent) if one.id == id), None)

    def begin(
        self,
        kind: Kind,
        since: Moment,
        now: Moment,
        entries: Bools,
        surprise: float,
        probability: float,
        rows: Rows = (),
    ) -> Open:
        """A new one, of these entries (flat) and of all entries of these rows."""
        self.count += 1
        incident = Incident(
            self.count,
            kind,
            since.number,
            now.number,
            since_time=since.time,
            last_time=now.time,
            rows=rows,
            surprise=surprise,
            probability=probability,
        )
        made = Open(incident, self.belonging(kind, entries, rows), entries.copy())
        self.open.append(made)
        return made

    def belonging(self, kind: Kind, entries: Bools, rows: Rows) -> Bools:
        """What an incident has to itself: its entries, and all of its rows, or of the slice."""
        if kind == "slice":
            return np.ones(entries.size, bool)
        return np.asarray(entries | within(entries.reshape(self.names.shape), rows).ravel())

    def close(self, one: Open, incident: Incident) -> Change:
        """One that lasts no more, as it is reported."""
        self.open.remove(one)
        closed = replace(incident, until=incident.last, until_time=incident.last_time)
        self.recent = [*self.recent, closed][-RECENT:]
        return Change("closed", closed)

    def leave(self, gone: Bools) -> None:
        """Nobody waits for these entries (n,) to be heard again."""
        for one in self.open:
            if one.incident.kind == "silent":
                one.members = one.members & ~gone

    def corrected(self, incident: Incident) -> None:
        """A recent one, about which something was said."""
        self.recent[[one.id for one in self.recent].index(incident.id)] = incident

    def go_on(self, seen: Seen, scores: Scores, stuck: Stuck, now: Moment) -> list[Change]:
        """What becomes of those that last: still there, calm, closed, or believed to be how the stream is now."""
        changes = []
        for one in list(self.open):
            if one.incident.kind == "silent" or not (one.members & seen.observed).any():
                continue
            if one.incident.kind == "dead":
                same = seen.dead if seen.values is None else stuck.run > 0
                lasts = bool((one.members & same).any())
                gone = not lasts
            else:
                lasts, gone = ongoing.still(one, seen, scores), False
            if lasts:
                one.calm, one.after = 0, None
                one.incident = replace(one.incident, last=now.number, last_time=now.time)
                ongoing.measure(one, seen, scores, self.names)
            else:
                one.calm += 1
                one.after = float(seen.expected[one.place]) if one.after is None else one.after
            if one.believed < 0 and ongoing.believed(one, seen, scores):
                one.believed = now.number
            if 0 <= one.believed <= now.number - CALM or gone or one.calm >= CALM:
                changes.append(self._ended(one, seen))
        return changes

    def hold(self, seen: Seen, now: Moment) -> list[Change]:
        """When a slice is the one before it again: what was odd in that goes on, what was calm stays so."""
        changes = []
        for one in list(self.open):
            if one.incident.kind == "silent" or not (one.members & seen.observed).any():
                continue
            if not one.calm:
                one.incident = replace(one.incident, last=now.number, last_time=now.time)
            else:
                one.calm += 1
            if 0 <= one.believed <= now.number - CALM or one.calm >= CALM:
                changes.append(self._ended(one, seen))
        return changes

    def _ended(self, one: Open, seen: Seen) -> Change:
        return self.close(one, replace(one.incident, kind=ongoing.known_as(one, seen)))
