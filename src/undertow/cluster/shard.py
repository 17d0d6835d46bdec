"""A shard: many streams that are kept and learned together, as one fleet. Knows no engine.

Rows go in, complete slices with what the models say about them come out, and the whole is one string of bytes that an
engine keeps. The k-th new slice of every stream is learned in one call, whatever its time.
"""

from __future__ import annotations

import logging
import math
import zlib
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow.cluster import assembly, versions
from undertow.cluster.assembly import NEVER, Rows
from undertow.cluster.completed import Completed
from undertow.cluster.places import Labels, Placed, Places
from undertow.cluster.plan import Plan
from undertow.diagnostics import Flags, Status
from undertow.fleet import Fleet
from undertow.incidents import Change, Incidents
from undertow.incidents.growing import grown
from undertow.incidents.naming import Names
from undertow.serialization import container
from undertow.serialization.container import CheckpointError
from undertow.tracker.rearranging import emptied

SMALLEST_FLEET = 16
"""Members of a new fleet, most of which wait for their stream. Programs are compiled for each size, so there are few:
each is twice the last, before and after a restart."""
END = int(np.iinfo(np.int64).max)
"""As a watermark: everything is complete."""

_log = logging.getLogger("undertow.cluster")
_DROPPED = {
    "late": "came after their slice was complete",
    "unknown": "have a label that modes does not name, or none",
    "full": "have a label that modes does not name, or does not allow beside the others,",
}


class Shard:
    """The streams of one shard, each a member of their fleet.

    Args:
        plan: Of the whole job.

    Attributes:
        names: Of the streams (n,).
        last: Time of the last slice of each that was learned (n,).
        heard: Time of the newest row of each (n,).
        until: The watermark: all slices up to it are complete.
        dropped: Rows that were late, rows with a label that is none of the plan's, and those for whose label no place
            was free.
        places: Of labels, where these come and go.
        shape: Of slices: as large as the stream with most labels needs it, sizes of a ladder.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = np.zeros(0, np.str_)
        self.last, self.heard, self._members = (np.zeros(0, np.int64) for _ in range(3))
        self.until: int = NEVER
        self.dropped = {"late": 0, "unknown": 0, "full": 0}
        self.places = Places(plan)
        self.shape = self.places.shape()
        self._waiting = Rows.none()
        self._told: dict[tuple[int, int], Placed] = {}  # labels of the slices that are being learned
        self._incidents: list[Incidents] = []
        self._fleet: Fleet | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def entries(self) -> int:
        """Of a slice."""
        return math.prod(self.shape)

    @property
    def due(self) -> int | None:
        """The watermark with which there is something to do though no row comes: a slice, or a silence, is complete."""
        times = [int(self._waiting.time.min())] if len(self._waiting) else []
        if self.plan.ttl is not None and len(self):
            times.append(int(self.heard.min()) + self.plan.ttl + 1)
        return min(times, default=None)

    def add(self, streams: Any, times: Any, entries: Any, values: Any) -> None:
        """Take rows: names of their streams, times, entries, and values.

        Entries are counted row by row, −1 where a label is not known; where labels come and go, they are numbers of
        `places`.
        """
        name, time, entry = np.asarray(streams, np.str_), np.asarray(times, np.int64), np.asarray(entries, np.int64)
        value = np.asarray(values, np.float64)
        early, known = time > self.until, (entry >= 0) & (self.plan.grows | (entry < self.plan.entries))
        kept = early & known  # what is not makes no stream
        names, stream = np.unique(name[kept], return_inverse=True)
        self._join(names[~np.isin(names, self.names)])
        order = np.argsort(self.names)
        place = order[np.searchsorted(self.names, names, sorter=order)] if len(names) else np.zeros(0, np.int64)
        rows = Rows(place[stream], time[kept], entry[kept], value[kept])
        late = assembly.late(rows, self.last)
        self._count("late", int(late.sum() + (~early).sum()))
        self._count("unknown", int((early & ~known).sum()))
        rows = rows[~late]
        np.maximum.at(self.heard, rows.stream, rows.time)
        self._waiting = self._waiting + rows

    def learn(self, until: int | None) -> Completed:
        """Learn the slices that are complete; `until` is the watermark, None where there is none."""
        silent = self._silent(until)
        done = assembly.closed(self._waiting, len(self), until) | silent[self._waiting.stream]
        rows, self._waiting = self._waiting[done], self._waiting[~done]
        if self.plan.grows:
            rows = self._placed(rows)
        self._make_fleet()
        found = assembly.slices(rows, self.entries)
        kept = [self._step(found, np.flatnonzero(found.turn == turn)) for turn in range(found.turn.max(initial=-1) + 1)]
        self.until = self.until if until is None else max(self.until, until)
        if silent.any():
            self._forget(silent)
        self._told = {}
        return Completed.together(kept, self.entries)

    def _placed(self, rows: Rows) -> Rows:
        """With entries in place of labels; the labels of each slice are kept until it is learned."""
        order = np.lexsort((rows.time, rows.stream))
        rows, entry = rows[order], np.zeros(len(rows), np.int64)
        changes = (np.diff(rows.stream, prepend=-1) != 0) | (np.diff(rows.time, prepend=NEVER) != 0)
        starts = np.flatnonzero(changes)
        for start, end in pairwise([*starts.tolist(), len(rows)]):
            stream, time = int(rows.stream[start]), int(rows.time[start])
            placed = self.places.put(str(self.names[stream]), time, rows.entry[start:end])
            entry[start:end] = placed.entries
            self._told[stream, time] = placed
        known = entry >= 0
        self._grow(self.places.shape())
        entry = np.ravel_multi_index(np.unravel_index(np.where(known, entry, 0), self.plan.shape), self.shape)
        waiting = self._waiting
        kept = self.places.keep(waiting.entry)
        self._waiting = Rows(waiting.stream, waiting.time, kept, waiting.value)
        self._count("full", int((~known).sum()))
        return Rows(rows.stream, rows.time, entry, rows.value)[known]

    def _grow(self, wanted: tuple[int, ...]) -> None:
        """Larger slices for all, where some stream needs them; they are never smaller again."""
        shape = tuple(map(max, wanted, self.shape))
        if shape == self.shape:
            return
        self.shape = shape
        if self._fleet is not None:
            self._fleet.extend(shape)
        self._incidents = [grown(one, shape) for one in self._incidents]

    def _emptied(self, stream: int, left: list[tuple[int, int]]) -> None:
        """Places of a stream that were left begin anew with who has them now."""
        assert self._fleet is not None
        rows = [[place for other, place in left if other == mode] for mode in range(len(self.shape))]
        self._fleet.rearrange(int(self._members[stream]), emptied(self.shape, rows))

    def _step(self, found: assembly.Slices, which: NDArray[np.intp]) -> Completed:
        """One slice of some streams."""
        assert self._fleet is not None
        stream, time, values = found.stream[which], found.time[which], found.values[which]
        if self.plan.ttl is not None:
            self._renew(stream[(self.last[stream] > NEVER) & (time > self.last[stream] + self.plan.ttl)])
        moments = zip(stream.tolist(), time.tolist(), strict=True)
        told = [self._told[moment] for moment in moments if self.plan.grows]
        for number, one in zip(stream.tolist(), told, strict=False):
            if one.left and self.last[number] > NEVER:
                self._emptied(number, one.left)
            for mode, place in one.gone if self._incidents else ():
                self._incidents[number].forget(mode, [place])  # nobody waits for them to be heard again
        shape, count, members = self.shape, len(which), len(self._fleet)
        own = np.searchsorted(self._fleet.members, self._members[stream])  # the others wait for a stream
        x = np.full((members, self.entries), np.nan)
        x[own] = values
        present = np.zeros(members, np.bool_)
        present[own] = True
        when = self._moments(time)
        times = None
        if self.plan.model == "tracker":
            times = dict(zip(self._fleet.members[own].tolist(), when, strict=True))
        result = self._fleet.update(x.reshape(members, *shape), present=present, time=times)
        mean, std, probability = (
            np.asarray(one, np.float64)[own].reshape(count, -1)
            for one in (result.mean, result.std, result.outlier_probability)
        )
        status = [Status(Flags(int(flags))).codes for flags in result.flags[own]]
        changes: list[list[Change]] = [[] for _ in own]
        if self._incidents:
            for row, (number, position, moment) in enumerate(zip(stream, own.tolist(), when, strict=True)):
                if told:
                    self._incidents[number].names = self._names(self._filled(told[row].labels))
                changes[row] = self._incidents[number].update(result[position], moment, values[row].reshape(shape))
        self.last[stream] = time
        return Completed(
            self.names[stream],
            time,
            values,
            mean,
            std,
            probability,
            status,
            changes,
            [self._filled(one.labels) for one in told],
        )

    def _moments(self, time: NDArray[np.int64]) -> list[Any]:
        """Dates, where times are dates."""
        return [np.datetime64(when, "us") if self.plan.dates else when for when in time.tolist()]

    def _join(self, names: NDArray[np.str_]) -> None:
        if not len(names):
            return
        size = _fleet_size(len(self) + len(names))
        if self._fleet is not None and size > len(self._fleet):
            self._fleet.join(size - len(self._fleet))
        self.names = np.concatenate([self.names, names])
        self._members = np.concatenate([self._members, self._free(len(names))])
        never = np.full(len(names), NEVER)
        self.last, self.heard = np.concatenate([self.last, never]), np.concatenate([self.heard, never])
        if self.plan.false_alarms is not None:
            self._incidents += [self._watch() for _ in names]

    def _make_fleet(self) -> None:
        """With the first slices: how many rows they have is not known before."""
        if self._fleet is None and len(self):
            self._fleet = Fleet(_fleet_size(len(self)), self.shape, model=self.plan.model, **self.plan.params)

    def _free(self, count: int) -> NDArray[np.int64]:
        """Some of the members who wait for a stream."""
        if self._fleet is None:
            return np.arange(len(self._members), len(self._members) + count)
        return np.setdiff1d(self._fleet.members, self._members)[:count]

    def _renew(self, streams: NDArray[np.int64]) -> None:
        """Those that come back after a silence, whether it was noticed meanwhile or not, start anew."""
        if len(streams):
            assert self._fleet is not None
            self._fleet.leave(self._members[streams])
            self._members[streams] = self._fleet.join(len(streams))
            for number in streams if self._incidents else ():
                self._incidents[number] = self._watch()

    def _watch(self) -> Incidents:
        plan = self.plan
        labels = None if plan.grows else plan.labels or None
        return Incidents(self.shape, labels, plan.false_alarms, dims=plan.modes or None)

    def _filled(self, labels: Labels) -> Labels:
        """With the places that nobody has taken yet."""
        return tuple((*mode, *[None] * (size - len(mode))) for mode, size in zip(labels, self.shape, strict=True))

    def _names(self, labels: Labels) -> Names:
        return Names.of(self.shape, [["" if one is None else one for one in mode] for mode in labels], self.plan.modes)

    def _silent(self, until: int | None) -> NDArray[np.bool_]:
        """Which streams have had no row for longer than the plan allows."""
        if self.plan.ttl is None or not len(self) or until == END:
            return np.zeros(len(self), np.bool_)
        now = int(self.heard.max()) if until is None else until
        return np.asarray(self.heard < now - self.plan.ttl)

    def _forget(self, silent: NDArray[np.bool_]) -> None:
        """Leave nothing of them."""
        assert self._fleet is not None
        self._fleet.leave(self._members[silent])
        self._fleet.join(int(silent.sum()))
        for name in self.names[silent].tolist():
            self.places.forget(name)
        self.names, self._members = self.names[~silent], self._members[~silent]
        self.last, self.heard = self.last[~silent], self.heard[~silent]
        if self._incidents:
            self._incidents = [one for one, away in zip(self._incidents, silent, strict=True) if not away]
        moved, waiting = np.cumsum(~silent) - 1, self._waiting
        self._waiting = Rows(moved[waiting.stream], waiting.time, waiting.entry, waiting.value)

    def _count(self, what: str, rows: int) -> None:
        if rows:
            self.dropped[what] += rows
            meaning = _DROPPED[what]
            _log.warning("%d rows %s and were dropped, %d so far in this shard", rows, meaning, self.dropped[what])

    def to_bytes(self) -> bytes:
        """Everything, in the checked container of all checkpoints, compressed: windows are empty at first."""
        watches = [one.to_bytes() for one in self._incidents]
        arrays: dict[str, NDArray[Any]] = {
            "names": self.names,
            "last": self.last,
            "heard": self.heard,
            "members": self._members,
            "fleet": np.frombuffer(self._fleet.to_bytes() if self._fleet is not None else b"", np.uint8),
            "incidents": np.frombuffer(b"".join(watches), np.uint8),
            "incidents.sizes": np.array([len(one) for one in watches], np.int64),
        }
        if self.plan.grows:
            arrays["places"] = np.frombuffer(self.places.to_json().encode(), np.uint8)
        arrays |= {f"waiting.{name}": getattr(self._waiting, name) for name in assembly.COLUMNS}
        header = {"kind": "Shard", "state_version": versions.STATE_VERSION, "plan": self.plan.header()}
        header |= {"until": self.until, "dropped": self.dropped}
        return zlib.compress(container.to_bytes(header, arrays), 1)

    @classmethod
    def from_bytes(cls, content: bytes, plan: Plan) -> Self:
        """The shard that `to_bytes` gave; it goes on exactly where it stopped.

        Raises:
            CheckpointError: They are damaged, of another version, or were made with other modes or another model.
        """
        name = f"of a shard ({len(content):,} bytes)"
        try:
            plain = zlib.decompress(content)
        except zlib.error:
            raise CheckpointError(f"checkpoint {name} is damaged: restore it from a copy or start afresh") from None
        header, arrays = versions.converted(container.from_bytes(plain, name), name)
        wanted = plan.header()
        for part, given in header["plan"].items():
            if given != wanted[part]:
                raise CheckpointError(
                    f"the state was made with {part}={given!r}, and now it is {wanted[part]!r}: "
                    "go on with the former, or begin with an empty checkpoint folder."
                )
        shard = cls(plan)
        shard.names, shard._members = arrays["names"], arrays["members"]
        shard.last, shard.heard = arrays["last"], arrays["heard"]
        shard.until, shard.dropped = int(header["until"]), {**shard.dropped, **header["dropped"]}
        if plan.grows:
            shard.places.recall(arrays["places"].tobytes().decode())
            shard.shape = shard.places.shape()
        shard._waiting = Rows(*(arrays[f"waiting.{part}"] for part in assembly.COLUMNS))
        if len(arrays["fleet"]):
            shard._fleet = Fleet.from_bytes(arrays["fleet"].tobytes())
            shard.shape = shard._fleet.shape
        shard._recall(arrays["incidents"].tobytes(), arrays["incidents.sizes"])
        return shard

    def _recall(self, content: bytes, sizes: NDArray[np.int64]) -> None:
        """Incidents, where they are looked for; who was not watched before is from now on."""
        if self.plan.false_alarms is None:
            return
        self._incidents = [self._watch() for _ in self.names]
        ends = np.cumsum(sizes)
        for one, size, end in zip(self._incidents, sizes.tolist(), ends.tolist(), strict=False):
            one.from_bytes(content[end - size : end])


def _fleet_size(streams: int) -> int:
    return max(SMALLEST_FLEET, 1 << (streams - 1).bit_length())
