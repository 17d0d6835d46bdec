"""Labels that come and go, of many streams: which label of a stream stands at which place of its slices.

A mode with a number of places in place of labels takes them as they come, each stream its own. A label has its place
as long as its stream has rows of it at least every `ttl`; whoever has the place next begins anew there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.cluster.plan import Plan
from undertow.ladder import rung

SEPARATOR = "\x1f"
"""Between the labels of a row, one for each mode."""
MOST_WAITING = 2**20
"""Different combinations of labels in rows that wait in a shard: with more, those that come last are dropped."""
Labels = tuple[tuple[str | None, ...], ...]
"""For every mode the labels at all places; None where a place is free."""


@dataclass
class Table:
    """Of one mode of one stream.

    Attributes:
        places: Of the labels that are there.
        heard: Time of the newest row of each.
        used: Places that were taken before, and are free.
        fresh: Places from this one on were never taken.
    """

    places: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    used: list[int] = field(default_factory=list)
    fresh: int = 0

    def retire(self, before: int) -> list[int]:
        """Free the places of all that were not heard of since; which these are."""
        gone = [label for label, time in self.heard.items() if time < before]
        freed = [self.places.pop(label) for label in gone]
        for label in gone:
            del self.heard[label]
        self.used += freed
        return freed

    def is_free(self, label: str, most: int) -> bool:
        """Whether it has a place, or would find one."""
        return label in self.places or self.fresh < most or bool(self.used)

    def place(self, label: str, most: int, time: int) -> tuple[int, bool]:
        """Where it stands, and whether somebody else stood there before; one is free.

        What was never taken comes first as far as arrays of the present size have it, then what was left, then more.
        """
        self.heard[label] = time
        if label in self.places:
            return self.places[label], False
        again = bool(self.used) and self.fresh >= self.size(most)
        self.places[label] = self.used.pop(0) if again else self.fresh
        self.fresh += not again
        return self.places[label], again

    def size(self, most: int) -> int:
        """Places that arrays have, a size of the ladder."""
        return min(rung(max(self.fresh, 1)), most)


@dataclass(frozen=True)
class Placed:
    """One slice.

    Attributes:
        entries: Of its rows, as if every mode had all places that it may come to have; −1 where none was free for a
            label.
        labels: Of the places that were ever taken.
        left: (mode, place) of those that somebody else has had.
        gone: (mode, place) of those that were freed with this slice.
    """

    entries: NDArray[np.int64]
    labels: Labels
    left: list[tuple[int, int]]
    gone: list[tuple[int, int]]


class Places:
    """Tables of all streams of a shard, and the combinations of labels in the rows that wait.

    Args:
        plan: Of the job.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tables: dict[str, list[Table]] = {}
        self._fixed = [{label: place for place, label in enumerate(known)} for known in plan.labels]
        self._words: dict[str, int] = {}
        self._known: list[str] = []

    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """A number for each combination of labels, −1 for those that are too many."""
        return np.array([self._number(word) for word in words], np.int64)

    def _number(self, word: str) -> int:
        if word not in self._words and len(self._words) < MOST_WAITING:
            self._words[word] = len(self._words)
            self._known.append(word)
        return self._words.get(word, -1)

    def shape(self) -> tuple[int, ...]:
        """Of slices that have all places which the streams have taken."""
        if not self._plan.grows:
            return self._plan.shape
        modes = zip(self._plan.labels, self._plan.shape, strict=True)
        return tuple(
            most if known else max((several[mode].size(most) for several in self._tables.values()), default=1)
            for mode, (known, most) in enumerate(modes)
        )

    def put(self, stream: str, time: int, numbers: NDArray[np.int64]) -> Placed:
        """The rows of the next slice of a stream."""
        tables = self._tables.setdefault(stream, [Table() for _ in self._plan.labels])
        different, which = np.unique(numbers, return_inverse=True)
        left: list[tuple[int, int]] = []
        since = None if self._plan.ttl is None else time - self._plan.ttl
        gone = [
            (mode, one)
            for mode, table in enumerate(tables)
            for one in (table.retire(since) if since is not None else ())
        ]
        entries = np.zeros(len(different), np.int64)
        for place in sorted(range(len(different)), key=lambda one: self._known[different[one]]):  # in whatever order
            entries[place] = self._entry(self._known[different[place]].split(SEPARATOR), tables, time, left)
        return Placed(entries[which], self._labels(tables), left, gone)

    def _entry(self, labels: list[str], tables: list[Table], time: int, left: list[tuple[int, int]]) -> int:
        """Which one it is; −1 where one of its labels finds no place, or holds a separator: then none takes a place."""
        known = list(zip(labels, self._plan.labels, tables, self._plan.shape, strict=False))
        if len(labels) != len(tables) or not all(
            label in fixed if fixed else table.is_free(label, size) for label, fixed, table, size in known
        ):
            return -1
        entry = 0
        for mode, (label, fixed, table, size) in enumerate(known):
            place, again = (self._fixed[mode][label], False) if fixed else table.place(label, size, time)
            left += [(mode, place)] if again else []
            entry = entry * size + place
        return entry

    def _labels(self, tables: list[Table]) -> Labels:
        found: list[tuple[str | None, ...]] = []
        for table, known in zip(tables, self._plan.labels, strict=True):
            at: dict[int, str] = {place: label for label, place in table.places.items()}
            found.append(known or tuple(at.get(place) for place in range(table.fresh)))
        return tuple(found)

    def forget(self, stream: str) -> None:
        """Leave nothing of a stream."""
        self._tables.pop(stream, None)

    def keep(self, waiting: NDArray[np.int64]) -> NDArray[np.int64]:
        """Only the combinations that rows wait with; their numbers from now on."""
        different, which = np.unique(waiting, return_inverse=True)
        self._know([self._known[number] for number in different.tolist()])
        return which.astype(np.int64)

    def to_json(self) -> str:
        """Everything."""
        tables = {
            stream: [[one.places, one.heard, one.used, one.fresh] for one in several]
            for stream, several in self._tables.items()
        }
        return json.dumps({"tables": tables, "words": self._known})

    def recall(self, content: str) -> None:
        """What `to_json` gave."""
        kept: dict[str, Any] = json.loads(content)
        self._tables = {stream: [Table(*one) for one in several] for stream, several in kept["tables"].items()}
        self._know(kept["words"])

    def _know(self, words: list[str]) -> None:
        self._known, self._words = words, {word: number for number, word in enumerate(words)}
