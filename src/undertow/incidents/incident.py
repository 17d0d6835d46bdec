"""What is reported to an operator: one dataclass, its JSON form and one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["entry", "entries", "row", "block", "slice", "dead", "silent", "change", "scene"]
"""One entry; several; a row, or a row and a column; a block, some rows by some columns; the whole slice; a sensor that
gives the same number for ever; one from which nothing comes any more; a level, or a whole scene, that has changed."""
Side = Literal["above", "below", "both"]
MOST_ENTRIES = 64
"""Entries that an incident lists; `count` says how many there are."""
_SIDES = {"above": "above what was expected", "below": "below what was expected", "both": "from what was expected"}


@dataclass(frozen=True)
class Incident:
    """Something that happened, from its first slice to its last.

    Attributes:
        id: 1, 2, 3, … within a stream.
        kind: One of `Kind`.
        since: Its first slice, counted from 0.
        last: The newest slice in which it was seen.
        until: Its last slice; None while it is open.
        since_time: Time of its first slice, as text or number; None where slices have no times.
        last_time: Of the newest.
        until_time: Of the last; None while it is open.
        where: In words, by the labels of the stream.
        rows: (mode, index) of the rows that it consists of, where it does.
        entries: Positions of the entries that were off, the farthest first, at most `MOST_ENTRIES`.
        labels: Labels of these, where the stream has any.
        count: How many entries have been off.
        std: Farthest distance of an entry from what was expected, in standard deviations; negative below it.
        amount: The same in units of the data.
        side: Whether entries lay "above", "below", or on "both" sides.
        surprise: −log of the probability that a clean slice shows anything like it.
        probability: How sure: the fraction of real ones among incidents like this one if real ones are as frequent as
            the false ones that are accepted.
        false_alarm: What a user said about it; None if nothing.

    Examples:
        >>> print(Incident(1, "entry", since=7, last=9, where="origin a, destination b", count=1, std=9.3, amount=41.0))
        origin a, destination b: 9.3 standard deviations (41) above what was expected since slice 7
    """

    id: int
    kind: Kind
    since: int
    last: int
    until: int | None = None
    since_time: str | float | None = None
    last_time: str | float | None = None
    until_time: str | float | None = None
    where: str = ""
    rows: tuple[tuple[int, int], ...] = ()
    entries: tuple[tuple[int, ...], ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    count: int = 0
    std: float = 0.0
    amount: float = 0.0
    side: Side = "above"
    surprise: float = 0.0
    probability: float = 0.0
    false_alarm: bool | None = None

    @property
    def open(self) -> bool:
        """Whether it still lasts."""
        return self.until is None

    @property
    def sentence(self) -> str:
        """What, where, how far and since when."""
        return f"{self._what()} {self._when()}"

    def __str__(self) -> str:
        return self.sentence

    def said(self, in_utc: bool) -> str:
        """The sentence; with the zone where the stream had one of its own, so that its times are others."""
        return f"{self} UTC" if in_utc and isinstance(self.since_time, str) else str(self)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the sentence."""
        return {**asdict(self), "open": self.open, "sentence": self.sentence}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Incident:
        """What `to_json` gave."""
        fields = {name: value for name, value in given.items() if name not in ("open", "sentence")}
        for name in ("rows", "entries", "labels"):
            fields[name] = tuple(tuple(one) for one in fields[name])
        return cls(**fields)

    def _what(self) -> str:
        if self.kind == "dead":
            return f"{self.where}: {'repeats one number' if self.count == 1 else 'repeat one number each'}"
        if self.kind == "silent":
            return f"{self.where}: silent"
        if self.kind == "scene":
            return "the whole scene has changed"
        size = f"{_rounded(self.std, 2)} standard deviations ({_rounded(self.amount, 3)}) {_SIDES[self.side]}"
        if self.kind == "change":
            return f"{self.where}: changed for good, {size}"
        return f"{self.where}: {'up to ' if self.count > 1 else ''}{size}"

    def _when(self) -> str:
        begin = _moment(self.since, self.since_time)
        if self.until is None:
            return f"since {begin}"
        end = _moment(self.until, self.until_time)
        return f"at {end}" if self.until == self.since else f"from {begin} to {end}"


@dataclass(frozen=True)
class Change:
    """That an incident has opened, has become another or has closed."""

    what: Literal["opened", "updated", "closed"]
    incident: Incident


def _moment(number: int, time: str | float | None) -> str:
    return f"slice {number}" if time is None else str(time)


def _rounded(number: float, digits: int) -> str:
    """The size of a number to this many digits, without an exponent unless it is very large or small."""
    size = float(f"{abs(number):.{digits}g}")
    return f"{size:,.0f}" if 100 <= size < 1e7 else f"{size:g}"
