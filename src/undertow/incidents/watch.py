"""`Incidents`: from one result after the other to incidents that open, last and close."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.clock import Clock, as_datetime
from undertow.incidents.grouping import MOST, Group, group, is_block, touches, within
from undertow.incidents.incident import MOST_ENTRIES, Change, Incident, Kind, Side
from undertow.incidents.naming import Names
from undertow.incidents.rate import FalseAlarms, online_fdr, remembered
from undertow.incidents.reading import Bools, Floats, Seen, read
from undertow.incidents.scores import FAMILIES, LASTING, Scorer, Scores
from undertow.incidents.stuck import Stuck
from undertow.incidents.tails import combined, largest
from undertow.serialization.container import from_bytes, to_bytes

UNSETTLED, WARM_UP = 5, 30
"""Slices from which nothing is learned, and in which nothing is opened: a model must get to know its stream."""
UNUSUAL = 2.0
"""Surprise from which on an entry counts as unusual: one in seven does in a clean slice."""
STILL = 4.0
"""Surprise of an incident's entries from which on it still lasts."""
CALM = 10
"""Observed slices in a row without it, after which an incident is closed."""
TOGETHER = 5
"""Slices within which what begins is taken for one incident."""
SHARE = 0.01
"""False-discovery rate among the entries of a slice that is known to hold something."""
LEAST_MEMORY, MOST_MEMORY = 1000.0, 20000.0
"""Slices that tails of families remember; as many as ten false incidents need, between these."""
RECENT = 100
"""Closed incidents that are kept, so that users can say something about them."""
LEAST_FACTOR, MOST_FACTOR = 1.25, 20.0
"""By which a false alarm raises the bar."""
CANDIDATES = len(FAMILIES) + 1
"""Among which the rate of false incidents is divided: the families, and dead sensors."""
KEPT_SHARE = 0.5
"""Of the distance at the peak of an incident: what is expected has moved by as much if a change lasts."""
STATE_VERSION = 1


@dataclass
class _Open:
    """An open incident: its entries, those that have been off, the farthest of them, and slices without it."""

    incident: Incident
    members: Bools
    counted: Bools
    peak: float = 0.0
    calm: int = 0
    place: int = 0
    expected: float = 0.0


_NUMBERS = ("peak", "calm", "place", "expected")


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
        self._open: list[_Open] = []
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
        header = {
            "version": STATE_VERSION,
            "shape": list(self.shape),
            "false_alarms": self.false_alarms.text,
            "slices": self._slices,
            "learned": self._learned,
            "count": self._count,
            "found": self._found,
            "alarms": self._alarms,
            "tested": self._tested,
            "clock": self._clock.state(),
            "feedback": self._feedback,
            "recent": [one.to_json() for one in self._recent],
            "open": [
                {"incident": one.incident.to_json(), **{name: getattr(one, name) for name in _NUMBERS}}
                for one in self._open
            ],
        }
        arrays = self._scorer.arrays() | self._stuck.arrays()
        size, count = int(np.prod(self.shape)), len(self._open)
        for name in ("members", "counted"):
            arrays[f"open.{name}"] = np.array([getattr(one, name) for one in self._open]).reshape(count, size) > 0
        return header, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave; settings stay those of this object.

        Raises:
            ValueError: It is of slices of another shape, or of another version.
        """
        if header.get("version") != STATE_VERSION or tuple(header.get("shape", ())) != self.shape:
            raise ValueError(
                f"the state must be one of incidents of slices of shape {self.shape}, got shape {header.get('shape')} "
                f"and version {header.get('version')}"
            )
        scorer = Scorer(self.shape)
        scorer.restore(dict(arrays))
        opened = [
            _Open(
                Incident.from_json(one["incident"]),
                np.array(arrays["open.members"][position], bool),
                np.array(arrays["open.counted"][position], bool),
                **{name: one[name] for name in _NUMBERS},
            )
            for position, one in enumerate(header["open"])
        ]
        self._stuck.restore(dict(arrays))
        self._clock.restore(header["clock"])
        self._scorer, self._open = scorer, opened
        self._recent = [Incident.from_json(one) for one in header["recent"]]
        self._slices, self._learned, self._count = (int(header[name]) for name in ("slices", "learned", "count"))
        self._found = [int(one) for one in header["found"]]
        self._alarms, self._tested = float(header["alarms"]), float(header["tested"])
        self._feedback = [dict(one) for one in header["feedback"]]

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
        self._scorer.learn(scores, seen.innovation, kept, weight, memory)
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
                still = bool((one.members & same).any())
                gone = not still
            else:
                still, gone = self._still(one, here, seen, scores), False
            if still:
                one.calm = 0
                one.incident = replace(one.incident, last=number, last_time=time)
                self._measured(one, seen, scores)
            else:
                one.calm += 1
            believed = self._believed(one, seen, scores)
            if believed is not None:
                self._close(one, replace(one.incident, kind=believed, last=number, last_time=time))
            elif gone or one.calm >= CALM:
                self._close(one, replace(one.incident, kind="change") if _lasts(one, seen) else one.incident)
            else:
                continue
            changes.append(Change("closed", self._recent[-1]))
        return changes

    def _still(self, one: _Open, here: Bools, seen: Seen, scores: Scores) -> bool:
        surprises = scores.entry[here]
        if one.incident.kind == "slice" and seen.off:
            return True
        size = np.array([float(surprises.size)])
        together = combined(np.minimum(surprises, STILL).sum(keepdims=True), size)[0]
        return bool(max(together, largest(surprises, surprises.size)) > STILL)

    def _believed(self, one: _Open, seen: Seen, scores: Scores) -> Kind | None:
        """What an incident becomes once its change is believed to last; None as long as it is not."""
        unusual = one.members & seen.observed & (scores.entry > UNUSUAL)
        believed = seen.changed & one.members
        if one.incident.kind == "dead" or not believed.any() or believed.sum() <= MOST * unusual.sum():
            return None
        return "scene" if one.incident.kind == "slice" else "change"

    def _opened(
        self, seen: Seen, scores: Scores, alarmed: Bools, level: float, number: int, time: str | float | None
    ) -> list[Change]:
        """A new incident, or a larger one."""
        found = self._group(seen, scores, alarmed)
        if found is None:
            return []
        surprise = float(scores.surprise.max() - math.log(CANDIDATES))
        sure = _sure(surprise, level)
        self._found = remembered(self._found, self._learned - WARM_UP)
        members = found.entries | within(found.entries, found.rows)
        if found.kind == "slice":
            members = np.ones(self.shape, bool)
        for one in self._open:
            if self._joins(one, found, number):
                self._enlarge(one, found, members.ravel())
                one.incident = replace(
                    one.incident, surprise=max(one.incident.surprise, surprise), last=number, last_time=time
                )
                one.calm = 0
                self._measured(one, seen, scores)
                return [Change("updated", one.incident)]
        since = number - self._earlier(scores, found) if alarmed[FAMILIES.index("lasting")] else number
        began = time if since == number else self._clock.before(number - since)
        self._count += 1
        incident = Incident(self._count, found.kind, since, number, since_time=began, last_time=time, rows=found.rows)
        incident = replace(incident, surprise=surprise, probability=sure)
        one = _Open(incident, members.ravel(), found.entries.ravel().copy())
        self._measured(one, seen, scores)
        self._open.append(one)
        return [Change("opened", one.incident)]

    def _group(self, seen: Seen, scores: Scores, alarmed: Bools) -> Group | None:
        entry, lasting, row, whole = alarmed
        off = np.zeros(scores.free.size, bool)
        if entry or row:
            off |= _significant(np.where(scores.free, scores.entry, np.nan), at_least=bool(entry))
        if lasting:
            off |= _significant(scores.lasting, at_least=True)
        rows = (
            self._scorer.rows_at(np.flatnonzero(_significant(scores.row, at_least=bool(row)))) if entry or row else ()
        )
        likely = scores.free & (scores.entry > UNUSUAL)
        all_off = bool(whole) and (
            seen.off_share > MOST or likely.sum() > MOST * scores.free.sum() or not (entry or row or lasting)
        )
        shaped = [array.reshape(self.shape) for array in (off, likely, scores.free)]
        found = group(shaped[0], shaped[1], shaped[2], rows, all_off)
        if found is None and row:  # a row of which each entry is a little off
            best = self._scorer.rows_at(np.array([int(np.nanargmax(scores.row))]))
            inside = within(shaped[0], best) & shaped[2]
            return Group("row", best, inside & (shaped[1] | (scores.entry.reshape(self.shape) > 1)))
        return found

    def _joins(self, one: _Open, found: Group, number: int) -> bool:
        """Whether what was found is part of an incident that is open: it began just now, or lies beside it."""
        if one.incident.kind == "dead":
            return False
        if number - one.incident.since <= TOGETHER:
            return True
        spread = one.incident.kind in ("row", "slice") or found.kind in ("row", "slice")
        return not spread and touches(one.counted.reshape(self.shape), found.entries)

    def _enlarge(self, one: _Open, found: Group, members: Bools) -> None:
        one.members = one.members | members
        one.counted = one.counted | found.entries.ravel()
        rows = tuple(sorted({*one.incident.rows, *found.rows}))
        kind: Kind
        if "slice" in (one.incident.kind, found.kind):
            kind, rows = "slice", ()
        elif rows:
            kind = "row"
        else:
            shaped = one.counted.reshape(self.shape)
            kind = "block" if is_block(shaped, np.ones(self.shape, bool)) else "entries"
        one.incident = replace(one.incident, kind=kind, rows=rows)

    def _earlier(self, scores: Scores, found: Group) -> int:
        """How many slices ago entries that stay off began to be so, by the one that is off most."""
        worst = int(np.argmax(np.where(found.entries.ravel() & scores.free, np.nan_to_num(scores.lasting), -1)))
        past = self._scorer.recent[1:, worst]
        same = np.sign(past) == np.sign(past[-1])
        run = LASTING - 1 if same.all() else int(np.argmin(same[::-1]))
        return run if found.entries.ravel()[worst] and (np.abs(past[::-1][:run]) > 1).all() else 0

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
                self._named(one, np.zeros(fresh.size))
                fresh &= ~one.members
                changes.append(Change("updated", one.incident))
        if fresh.any():
            self._count += 1
            since, began = number - run, self._clock.before(run) if run else time
            incident = Incident(self._count, "dead", since, number, since_time=began, last_time=time)
            incident = replace(incident, surprise=surprise, probability=_sure(surprise, level) if run else 1.0)
            one = _Open(incident, fresh.copy(), fresh.copy())
            self._named(one, np.zeros(fresh.size))
            self._open.append(one)
            changes.append(Change("opened", one.incident))
        return changes

    def _measured(self, one: _Open, seen: Seen, scores: Scores) -> None:
        """How far it is off and which entries are, with this slice."""
        here = one.members & seen.observed
        surprise = np.where(here, np.nan_to_num(scores.entry), -1.0)
        one.counted = one.counted | (here & (surprise > UNUSUAL + math.log(max(int(here.sum()), 1)) / 2))
        size = np.where(one.counted & seen.observed, np.abs(np.nan_to_num(seen.innovation)), 0.0)
        worst = int(np.argmax(size))
        if size[worst] > one.peak:
            one.peak, one.place = float(size[worst]), worst
            one.expected = float(seen.expected[worst])
            sides = np.sign(seen.innovation[one.counted & here])
            above = float(np.mean(sides > 0)) if sides.size else 1.0
            side: Side = "above" if above > 0.8 else "below" if above < 0.2 else "both"
            one.incident = replace(
                one.incident,
                std=float(seen.innovation[worst]),
                amount=float(seen.amount[worst]),
                side=side,
            )
        self._named(one, size)

    def _named(self, one: _Open, size: Floats) -> None:
        """In words: where it is, and which entries are off, the farthest first."""
        places = np.flatnonzero(one.counted)
        order = places[np.argsort(-size[places], kind="stable")]
        positions = np.stack(np.unravel_index(order, self.shape), axis=1).astype(np.int64)
        kind = one.incident.kind
        if kind == "slice":
            where = "the whole slice"
        elif one.incident.rows:
            where = self.names.rows(one.incident.rows)
        elif kind == "block":
            where = self.names.block(positions)
        else:
            where = self.names.entries(positions)
        listed = tuple(tuple(int(index) for index in position) for position in positions[:MOST_ENTRIES])
        labels = tuple(self.names.entry(position) for position in listed) if any(self.names.labels) else ()
        one.incident = replace(one.incident, where=where, entries=listed, labels=labels, count=len(places))

    def _close(self, one: _Open, incident: Incident) -> None:
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


def _lasts(one: _Open, seen: Seen) -> bool:
    """Whether what is expected has followed an incident, so that there is nothing odd about it any more."""
    moved = seen.expected[one.place] - one.expected
    return one.incident.kind in ("entry", "row", "block") and moved / (one.incident.amount or 1.0) > KEPT_SHARE


def _significant(surprise: Floats, at_least: bool) -> Bools:
    """Benjamini and Hochberg: which are off, given that something is; the largest if ``at_least`` one must be."""
    known = ~np.isnan(surprise)
    values = np.where(known, surprise, -np.inf)
    order = np.argsort(-values, kind="stable")
    number = int(known.sum())
    limits = -np.log(SHARE * np.arange(1, values.size + 1) / max(number, 1))
    passing = np.flatnonzero(values[order] >= limits)
    found = np.zeros(values.size, bool)
    found[order[: (passing[-1] + 1 if passing.size else 0)]] = True
    if at_least and number:
        found[order[0]] = True
    return found
