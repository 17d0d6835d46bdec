"""`Incidents`: from one result after the other to incidents that open, last and close."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import files, silent
from undertow.incidents.clock import Clock, Moment, as_datetime
from undertow.incidents.dead import died
from undertow.incidents.finding import earlier, find
from undertow.incidents.grouping import within
from undertow.incidents.incident import Change, Incident
from undertow.incidents.naming import Names
from undertow.incidents.ongoing import enlarge, joins, measure, spoils
from undertow.incidents.rate import FalseAlarms, online_fdr, remembered, sure
from undertow.incidents.reading import Bools, Seen, read
from undertow.incidents.register import Register
from undertow.incidents.scores import CANDIDATES, FAMILIES, Scorer, Scores
from undertow.incidents.silence import Silence
from undertow.incidents.stuck import Stuck
from undertow.serialization.container import from_bytes, to_bytes

UNSETTLED, WARM_UP = 5, 30
"""Slices from which nothing is learned, and in which nothing is opened: a model must get to know its stream."""
LEAST_MEMORY, MOST_MEMORY = 1000.0, 20000.0
"""Slices that tails of families remember; as many as ten false incidents need, between these."""
LEAST_FACTOR, MOST_FACTOR = 1.25, 20.0
"""By which a false alarm raises the bar."""


class Incidents:
    """Groups what is wrong with a stream over time, rows and slices, at a rate of false incidents that the user sets.

    Args:
        shape: Of a slice.
        labels: For each mode the labels of its rows, or None.
        false_alarms: False incidents that are accepted on a clean stream: "1/day" (with times, or ``step``),
            "1/1000" (slices), or "fdr 10%": the fraction of false ones among all.
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
        self._register = Register(Names.of(shape, labels, dims))
        self.shape = self.names.shape
        self.false_alarms = FalseAlarms.parse(false_alarms)
        self._clock = Clock(step)
        self._scorer = Scorer(self.shape)
        self._stuck = Stuck.new(int(np.prod(self.shape)))
        self._silence = Silence.new(int(np.prod(self.shape)))
        self._slices = self._learned = 0
        self._found: list[int] = []
        self._alarms, self._tested = 0.0, 0.0
        self._feedback: list[dict[str, Any]] = []

    @property
    def names(self) -> Names:
        """Of modes and rows."""
        return self._register.names

    @names.setter
    def names(self, names: Names) -> None:
        self._register.names = names

    @property
    def open(self) -> tuple[Incident, ...]:
        """Incidents that last, oldest first."""
        return tuple(one.incident for one in self._register.open)

    @property
    def recent(self) -> tuple[Incident, ...]:
        """Closed incidents, the newest first; some hundred are kept."""
        return tuple(reversed(self._register.recent))

    @property
    def slices(self) -> int:
        """Slices seen."""
        return self._slices

    @property
    def count(self) -> int:
        """Incidents so far."""
        return self._register.count

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
        now = Moment(self._slices, shown, self._clock)
        self._slices += 1
        changes = self._listened(seen, now)
        if not seen.observed.any():
            return changes
        if not seen.repeats or self._learned > WARM_UP:
            self._learned += 1
        return changes + (self._repeated(seen, now) if seen.repeats else self._looked_at(seen, now))

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
        incident = self._register.find(id)
        if incident is None:
            raise KeyError(f"there is no incident {id} that is open or recent: look at `open` and `recent`")
        if bool(incident.false_alarm) == false_alarm:
            return []
        for one in [one for one in self._feedback if one["id"] == id]:
            self._feedback.remove(one)
            self._scorer.raise_bar(incident, 1 / one["factor"])
        if false_alarm:
            factor = min(max(LEAST_FACTOR, LEAST_FACTOR * incident.surprise / self._usual_bar()), MOST_FACTOR)
            self._scorer.raise_bar(incident, factor)
            given = {"id": id, "kind": incident.kind, "where": incident.where, "factor": factor, "slice": self._slices}
            self._feedback.append(given)
        said = replace(incident, false_alarm=false_alarm)
        if incident.open:
            lasting = next(one for one in self._register.open if one.incident.id == id)
            if incident.kind == "silent":  # nothing is expected of them until they are heard again
                self._silence.forget(lasting.members)
            return [self._register.close(lasting, said)]
        self._register.corrected(said)
        return [Change("updated", said)]

    def forget(self, mode: int, rows: Sequence[int] | NDArray[np.int64]) -> None:
        """Nothing is expected of these rows until they are heard again: their labels are gone.

        Args:
            mode: Counted from 0.
            rows: Their places in it.
        """
        gone = within(np.zeros(self.shape, bool), tuple((mode, int(row)) for row in rows)).ravel()
        self._silence.forget(gone)
        self._register.leave(gone)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything, exactly.

        Returns:
            Plain JSON, and arrays by name: what `restore` takes.
        """
        return files.packed(self)

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave; settings stay those of this object.

        Args:
            header: Its plain JSON.
            arrays: Its arrays by name.

        Raises:
            ValueError: It is of slices of another shape, or of another version.
        """
        files.restore(self, header, arrays)

    def to_bytes(self) -> bytes:
        """The state in the checked format of all checkpoints."""
        return to_bytes(*self.state())

    def from_bytes(self, content: bytes) -> None:
        """Go on from what `to_bytes` gave; settings stay those of this object.

        Args:
            content: The bytes.

        Raises:
            ValueError: It is of slices of another shape, or of another version.

        Examples:
            >>> import undertow as ut
            >>> watch, again = ut.Incidents((6, 5)), ut.Incidents((6, 5))
            >>> again.from_bytes(watch.to_bytes())
            >>> again.to_bytes() == watch.to_bytes()
            True
        """
        self.restore(*from_bytes(content, "of incidents"))

    def _listened(self, seen: Seen, now: Moment) -> list[Change]:
        """Who has fallen silent, and who is heard again."""
        self._silence.learn(seen.observed)
        changes, level = silent.heard(self._register, seen.observed, now), self._level()
        if self._learned > WARM_UP and level:
            changes += silent.fell_silent(self._register, self._silence, self._scorer.bars["entry"], level, now)
        return changes

    def _repeated(self, seen: Seen, now: Moment) -> list[Change]:
        """Of a slice that is the one before it again only sensors that have died are news.

        Were its innovations learned, which are next to nothing, every slice after a frozen stretch would be odd.
        """
        if seen.values is not None:
            self._stuck.learn(seen.values)
        changes, level = self._register.hold(seen, now), self._level()
        if self._slices > WARM_UP and level:
            changes += died(self._register, seen, self._stuck, self._scorer.bars["entry"], level, now)
        return changes

    def _looked_at(self, seen: Seen, now: Moment) -> list[Change]:
        if seen.values is not None:
            self._stuck.learn(seen.values)
        scores = self._scorer.score(seen.innovation, self._register.members(), seen.off)
        changes = self._register.go_on(seen, scores, self._stuck, now)
        level = self._level()
        alarmed = np.zeros(len(FAMILIES), bool)
        if self._learned > WARM_UP and level is not None:
            alarmed = scores.surprise >= -math.log(level / CANDIDATES)
            if alarmed.any():
                changes += self._opened(seen, scores, alarmed, level, now)
            changes += died(self._register, seen, self._stuck, self._scorer.bars["entry"], level, now)
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
        kept = ~self._register.members()
        # Of the alarms as many are false as were asked for: that fraction of them is learned from, the rest is real.
        asked = (level or 0.0) * self._tested + 1
        weight = np.where(alarmed, min(1.0, asked / (self._alarms + 1)), 1.0)
        memory = float(np.clip(10 / (level or 1.0), LEAST_MEMORY, MOST_MEMORY))
        # A slice that has been odd for so long that a new model would know the stream by now is how the stream is:
        # entries are learned again, or it would never end.
        again = not seen.off and any(
            one.incident.kind == "slice" and self._slices - one.incident.since > WARM_UP for one in self._register.open
        )
        self._scorer.learn(scores, seen.innovation, kept, weight, memory, again)
        self._tested = self._tested * (1 - 1 / memory) + 1
        self._alarms = self._alarms * (1 - 1 / memory) + bool(alarmed.any())

    def _opened(self, seen: Seen, scores: Scores, alarmed: Bools, level: float, now: Moment) -> list[Change]:
        """A new incident, or a larger one."""
        found = find(self._scorer, seen, scores, alarmed)
        if found is None:
            return []
        surprise = float(scores.surprise.max() - math.log(CANDIDATES))
        self._found = remembered(self._found, self._learned - WARM_UP)
        if any(spoils(one, found, seen) for one in self._register.open):
            return []
        for one in self._register.open:
            if joins(one, found, now.number):
                enlarge(one, found, self._register.belonging(found.kind, found.entries.ravel(), found.rows))
                most = max(one.incident.surprise, surprise)
                one.incident = replace(one.incident, surprise=most, last=now.number, last_time=now.time)
                one.calm = 0
                measure(one, seen, scores, self.names)
                return [Change("updated", one.incident)]
        back = earlier(self._scorer, scores, found) if alarmed[FAMILIES.index("lasting")] else 0
        entries, probability = found.entries.ravel(), sure(surprise, level)
        one = self._register.begin(found.kind, now.back(back), now, entries, surprise, probability, found.rows)
        measure(one, seen, scores, self.names)
        return [Change("opened", one.incident)]
