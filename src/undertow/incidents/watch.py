"""`Incidents`: from one result after the other to incidents that open, last and close."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import files, ongoing
from undertow.incidents.clock import Clock, as_datetime
from undertow.incidents.finding import earlier, find
from undertow.incidents.grouping import MOST, within
from undertow.incidents.incident import Change, Incident
from undertow.incidents.naming import Names
from undertow.incidents.ongoing import Open, believed, enlarge, followed, joins, measure, spoils, still
from undertow.incidents.rate import FalseAlarms, online_fdr, remembered
from undertow.incidents.reading import Bools, Seen, read
from undertow.incidents.scores import FAMILIES, Scorer, Scores
from undertow.incidents.stuck import Stuck
from undertow.serialization.container import from_bytes, to_bytes

UNSETTLED, WARM_UP = 5, 30
"""Slices from which nothing is learned, and in which nothing is opened: a model must get to know its stream."""
CALM = 10
"""Observed slices in a row without it, after which an incident is closed."""
LEAST_MEMORY, MOST_MEMORY = 1000.0, 20000.0
"""Slices that tails of families remember; as many as ten false incidents need, between these."""
RECENT = 100
"""Closed incidents that are kept, so that users can say something about them."""
LEAST_FACTOR, MOST_FACTOR = 1.25, 20.0
"""By which a false alarm raises the bar."""
CANDIDATES = len(FAMILIES) + 1
"""Among which the rate of false incidents is divided: the families, and dead sensors."""


class Incidents:
    """Groups what is wrong with a stream over time, rows and slices, at a rate of false incidents that the user sets.

    Args:
        shape: Of a slice.
        labels: For each mode the labels of its rows, or None.
        false_alarms: False incidents that are accepted on a clean stream: "1/day" (with times, or ``step``),
            "1/1000" (slices), or "fdr 10%": the share of false ones among all.
        step: Seconds between slices, where slices come without dates.
        dims: Names of the modes.

    Attributes:
        open: Incidents that last.
        recent: Those that were closed last, newest first.

    Examples:
        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> watch, draw = Incidents((6, 5), false_alarms="1/1000"), np.random.default_rng(0)
        >>> for t in range(100):
        ...     u = draw.normal(size=(6, 5))
        ...     u[2] += 8 if 80 <= t < 90 else 0
        ...     none = 0 * u
        ...     result = SimpleNamespace(mean=none, std=1 + none, innovations=u, outliers=u, outlier_probability=none)
        ...     for change in watch.update(result, values=u):
        ...         print(change.what, change.incident.kind, change.incident.rows, change.incident.until)
        opened row ((0, 2),) None
        closed row ((0, 2),) 89
    """

    def __init__(
        self,
        shape: Sequence[int],
        labels: Sequence[Sequence[Any] | None] | None = None,
        false_alarms: str | float | FalseAlarms | None = None,
        step: float | None = None,
        dims: Sequence[str] | None = None,
    ) -> None:
        self.names = Names.of(shape, labels, dims)
        self.shape = self.names.shape
        self.false_alarms = FalseAlarms.parse(false_alarms)
        self._clock = Clock(step)
        self._scorer = Scorer(self.shape)
        self._stuck = Stuck.new(int(np.prod(self.shape)))
        self._open: list[Open] = []
        self._recent: list[Incident] = []
        self._slices = self._learned = 0
        self._count = 0
        self._found: list[int] = []
        self._alarms, self._tested = 0.0, 0.0
        self._feedback: list[dict[str, Any]] = []

    @property
    def open(self) -> tuple[Incident, ...]:
        """Incidents that last, oldest first."""
        return tuple(one.incident for one in self._open)

    @property
    def recent(self) -> tuple[Incident, ...]:
        """Closed incidents, the newest first; some hundred are kept."""
        return tuple(reversed(self._recent))

    @property
    def slices(self) -> int:
        """Slices seen."""
        return self._slices

    @property
    def count(self) -> int:
        """Incidents so far."""
        return self._count

    @property
    def feedbacks(self) -> tuple[dict[str, Any], ...]:
        """What users said: id, kind and place of each false alarm, and the factor by which the bar was raised."""
        return tuple(dict(one) for one in self._feedback)

    def update(self, result: Any, time: Any = None, values: Any = None) -> list[Change]:
        """Take one more slice.

        Args:
            result: What the model's ``update`` returned for it.
            time: Of the slice.
            values: The slice itself, if it is at hand: sizes in units of the data are exact then.

        Returns:
            What has changed: incidents that opened, became another, or closed.

        Raises:
            ValueError: The result is of another shape, or the rate cannot be kept without times. Nothing has changed.
        """
        seen = read(result, self.shape, values)
        if self.false_alarms.kind == "time" and self._clock.step is None and as_datetime(time) is None:
            self.false_alarms.per_slice(None)
        shown = self._clock.tick(time)
        number = self._slices
        self._slices += 1
        if not seen.observed.any():
            return []
        self._learned += 1
        return self._looked_at(seen, number, shown)

    def feedback(self, id: int, false_alarm: bool = True) -> list[Change]:
        """Say that an incident was a false alarm (or, after all, was none).

        The bar is raised for its entries, rows or slices: the same would not be an incident again, something larger is.
        An open one is closed.

        Args:
            id: Of an incident that is open or recent.
            false_alarm: False takes it back.

        Returns:
            The incident as it is now: closed, if it was open; else updated.

        Raises:
            KeyError: There is no such incident any more.
        """
        incident = next((one for one in (*self.open, *self._recent) if one.id == id), None)
        if incident is None:
            raise KeyError(f"there is no incident {id} that is open or recent: look at `open` and `recent`")
        if bool(incident.false_alarm) == false_alarm:
            return []
        for one in [one for one in self._feedback if one["id"] == id]:
            self._feedback.remove(one)
            self._raise_bar(incident, 1 / one["factor"])
        if false_alarm:
            factor = min(max(LEAST_FACTOR, LEAST_FACTOR * incident.surprise / self._usual_bar()), MOST_FACTOR)
            self._raise_bar(incident, factor)
            told = {"id": id, "kind": incident.kind, "where": incident.where, "factor": factor, "slice": self._slices}
            self._feedback.append(told)
        said = replace(incident, false_alarm=false_alarm)
        if incident.open:
            self._close(next(one for one in self._open if one.incident.id == id), said)
            return [Change("closed", self._recent[-1])]
        self._recent[[one.id for one in self._recent].index(id)] = said
        return [Change("updated", said)]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything, exactly: plain JSON, and arrays by name."""
        return files.packed(self)

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave; settings stay those of this object.

        Raises:
            ValueError: It is of slices of another shape, or of another version.
        """
        files.restore(self, header, arrays)

    def to_bytes(self) -> bytes:
        """The state in the checked format of all checkpoints."""
        return to_bytes(*self.state())

    def from_bytes(self, content: bytes) -> None:
        """Go on from what `to_bytes` gave."""
        self.restore(*from_bytes(content, "of incidents"))

    def _looked_at(self, seen: Seen, number: int, time: str | float | None) -> list[Change]:
        owned = np.zeros(seen.observed.size, bool)
        for one in self._open:
            owned |= one.members
        if seen.values is not None:
            self._stuck.learn(seen.values)
        scores = self._scorer.score(seen.innovation, owned, seen.off)
        changes = self._last(seen, scores, number, time)
        level = self._level()
        alarmed = np.zeros(len(FAMILIES), bool)
        if self._learned > WARM_UP and level is not None:
            alarmed = scores.surprise >= -math.log(level / CANDIDATES)
            if alarmed.any():
                changes += self._opened(seen, scores, alarmed, level, number, time)
            changes += self._dead(seen, level, number, time)
        if self._learned > UNSETTLED:
            self._learn(seen, scores, alarmed, level)
        return changes

    def _level(self) -> float | None:
        """Probability of a false incident that this slice may have; None while the step is not known."""
        if self.false_alarms.kind == "fdr":
            return online_fdr(self._learned - WARM_UP, self._found, self.false_alarms.value)
        if self.false_alarms.kind == "time" and self._clock.step is None:
            return None
        return self.false_alarms.per_slice(self._clock.step)

    def _usual_bar(self) -> float:
        level = self._level() or 1e-3
        return -math.log(level / CANDIDATES)

    def _learn(self, seen: Seen, scores: Scores, alarmed: NDArray[np.bool_], level: float | None) -> None:
        kept = np.ones(seen.observed.size, bool)
        for one in self._open:
            kept &= ~one.members
        # Of the alarms as many are false as were asked for: that share of them is learned from, the rest is real.
        asked = (level or 0.0) * self._tested + 1
        weight = np.where(alarmed, min(1.0, asked / (self._alarms + 1)), 1.0)
        memory = float(np.clip(10 / (level or 1.0), LEAST_MEMORY, MOST_MEMORY))
        # A slice that has been odd for so long that a new model would know the stream by now is how the stream is:
        # entries are learned again, or it would never end.
        again = not seen.off and any(
            one.incident.kind == "slice" and self._slices - one.incident.since > WARM_UP for one in self._open
        )
        self._scorer.learn(scores, seen.innovation, kept, weight, memory, again)
        self._tested = self._tested * (1 - 1 / memory) + 1
        self._alarms = self._alarms * (1 - 1 / memory) + bool(alarmed.any())

    def _last(self, seen: Seen, scores: Scores, number: int, time: str | float | None) -> list[Change]:
        """What becomes of the incidents that are open."""
        changes = []
        for one in list(self._open):
            here = one.members & seen.observed
            if not here.any():
                continue
            if one.incident.kind == "dead":
                same = seen.dead if seen.values is None else self._stuck.run > 0
                lasts = bool((one.members & same).any())
                gone = not lasts
            else:
                lasts, gone = still(one, seen, scores), False
            if lasts:
                one.calm = 0
                one.incident = replace(one.incident, last=number, last_time=time)
                measure(one, seen, scores, self.names)
            else:
                one.calm += 1
            kind = believed(one, seen, scores)
            if kind is not None:
                self._close(one, replace(one.incident, kind=kind, last=number, last_time=time))
            elif gone or one.calm >= CALM:
                self._close(one, replace(one.incident, kind="change") if followed(one, seen) else one.incident)
            else:
                continue
            changes.append(Change("closed", self._recent[-1]))
        return changes

    def _opened(
        self, seen: Seen, scores: Scores, alarmed: Bools, level: float, number: int, time: str | float | None
    ) -> list[Change]:
        """A new incident, or a larger one."""
        found = find(self._scorer, seen, scores, alarmed)
        if found is None:
            return []
        surprise = float(scores.surprise.max() - math.log(CANDIDATES))
        sure = _sure(surprise, level)
        self._found = remembered(self._found, self._learned - WARM_UP)
        members = found.entries | within(found.entries, found.rows)
        if found.kind == "slice":
            members = np.ones(self.shape, bool)
        if any(spoils(one, found, seen) for one in self._open):
            return []
        for one in self._open:
            if joins(one, found, number):
                enlarge(one, found, members.ravel())
                one.incident = replace(
                    one.incident, surprise=max(one.incident.surprise, surprise), last=number, last_time=time
                )
                one.calm = 0
                measure(one, seen, scores, self.names)
                return [Change("updated", one.incident)]
        since = number - earlier(self._scorer, scores, found) if alarmed[FAMILIES.index("lasting")] else number
        began = time if since == number else self._clock.before(number - since)
        self._count += 1
        incident = Incident(self._count, found.kind, since, number, since_time=began, last_time=time, rows=found.rows)
        incident = replace(incident, surprise=surprise, probability=sure)
        one = Open(incident, members.ravel(), found.entries.ravel().copy())
        measure(one, seen, scores, self.names)
        self._open.append(one)
        return [Change("opened", one.incident)]

    def _dead(self, seen: Seen, level: float, number: int, time: str | float | None) -> list[Change]:
        """Sensors that have died, as one incident for all that do in the same slice.

        By how long they stay at one number usually; without the values, as the model says.
        """
        dead, surprise, run = seen.dead, 0.0, 0
        if seen.values is not None:
            unusual = np.where(seen.observed, self._stuck.surprise() / self._scorer.bars["entry"], 0.0)
            dead = unusual > math.log(CANDIDATES * unusual.size / level)
            surprise = float(unusual.max() - math.log(CANDIDATES * unusual.size))
        known = np.zeros(seen.dead.size, bool)
        for one in self._open:
            known |= one.members if one.incident.kind in ("dead", "slice") else False
        fresh = dead & ~known
        if not fresh.any():
            return []
        if seen.values is not None:
            run = int(self._stuck.run[fresh].max())
        changes = []
        for one in list(self._open):
            if one.incident.kind not in ("dead", "slice") and (one.members & fresh).sum() > MOST * one.counted.sum():
                one.incident = replace(one.incident, kind="dead", rows=(), last=number, last_time=time)
                one.members = one.members & dead
                one.counted = one.members.copy()
                ongoing.name(one, np.zeros(fresh.size), self.names)
                fresh &= ~one.members
                changes.append(Change("updated", one.incident))
        if fresh.any():
            self._count += 1
            since, began = number - run, self._clock.before(run) if run else time
            incident = Incident(self._count, "dead", since, number, since_time=began, last_time=time)
            incident = replace(incident, surprise=surprise, probability=_sure(surprise, level) if run else 1.0)
            one = Open(incident, fresh.copy(), fresh.copy())
            ongoing.name(one, np.zeros(fresh.size), self.names)
            self._open.append(one)
            changes.append(Change("opened", one.incident))
        return changes

    def _close(self, one: Open, incident: Incident) -> None:
        self._open.remove(one)
        closed = replace(incident, until=incident.last, until_time=incident.last_time)
        self._recent = [*self._recent, closed][-RECENT:]

    def _raise_bar(self, incident: Incident, factor: float) -> None:
        bars = self._scorer.bars
        if incident.kind in ("slice", "scene"):
            bars["slice"] = bars["slice"] * factor
            return
        where = np.zeros(self.shape, bool)
        for position in incident.entries:
            where[position] = True
        for mode, index in incident.rows:
            bars["row"][self._scorer.place_of(mode, index)] *= factor
        inside = (where | within(where, incident.rows)).ravel()
        for name in ("entry", "lasting"):
            bars[name] = np.where(inside, bars[name] * factor, bars[name])


def _sure(surprise: float, level: float) -> float:
    """Share of real ones among incidents like this one, if real ones are as frequent as the false ones accepted."""
    return 1 / (1 + math.exp(min(-surprise - math.log(level), 700.0)))
