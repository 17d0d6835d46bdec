"""Long tables, one row an entry (time, a label per mode, value), as a stream of slices.

A first pass finds the labels and the times. Rows in the order of their times are then read as they come; others are
sorted into a temporary file first, with 16 bytes a row.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Label, StreamError
from undertow.sources.capacity import GROWS_TO, LabelSlots
from undertow.sources.errors import MAX_SLICE_ENTRIES, shortened
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.formats.counted import Counted
from undertow.sources.formats.history import RunningDigest
from undertow.sources.formats.rows import Batch, Rows, mapped
from undertow.sources.formats.sorted_rows import SortedRows
from undertow.sources.formats.survey import Survey, time_runs
from undertow.sources.options import SourceOptions
from undertow.sources.times import plain_time, shown_time, to_json

_MAX_SLICE_ROWS = 2**23


class Table(Source):
    """Slices of a long table."""

    format = "table"

    def __init__(
        self,
        rows: Rows,
        labels: Sequence[tuple[Label, ...] | LabelSlots],
        options: SourceOptions,
        survey: Survey | None,
    ) -> None:
        sizes = tuple(len(known) for known in labels)
        if math.prod(sizes) > MAX_SLICE_ENTRIES:
            raise StreamError(
                f"{rows.name} has {'×'.join(map(str, sizes))} labels, and slices may have {MAX_SLICE_ENTRIES} entries: "
                "choose other columns for the modes, or give the labels that matter"
            )
        super().__init__(rows.name, sizes, rows.columns.modes, tuple(labels))
        self._most = tuple(known.most if isinstance(known, LabelSlots) else len(known) for known in labels)
        self._most_rows = max(_MAX_SLICE_ROWS, 2 * math.prod(self._most))
        self._check_rows(max(survey.counts.values(), default=0) if survey is not None else 0, rows)
        self._rows, self.is_pipe, self._rule = rows, rows.is_pipe, options.duplicates
        self._numbers = [{str(label): number for number, label in enumerate(known)} for known in labels]
        self._slots = [known if isinstance(known, LabelSlots) else None for known in labels]
        self._without_slot = Counted()
        if any(self._slots) and survey is not None and not survey.in_order:
            raise StreamError(
                f"{rows.name} has rows that are not in the order of their times, and capacity is for labels that come: "
                "sort it, or leave capacity out so that all labels are found in a first pass"
            )
        self._survey = survey
        self._sorted: SortedRows | None = None
        self._is_followed, self._on_bad = options.follow is not None, options.on_bad
        self.time_name = rows.columns.time
        if survey is not None and options.follow is None:
            self.length = len(survey.counts)
            times = survey.times
            self.times = np.array(times, dtype=object if isinstance(times[0], str) else survey.dtype) if times else None
            if not survey.in_order:
                self.notices.append(f"rows of {rows.name} were not in the order of their times and were sorted first")

    @property
    def _must_sort(self) -> bool:
        return self._survey is not None and self.length is not None and not self._survey.in_order

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        history = RunningDigest(self.name, position, is_pipe=self._rows.is_pipe)
        done = rows = 0
        if position is not None and history.is_known:
            done, rows = (count_in(position, key, self.name) for key in ("slices", "rows"))
        elif position is not None and ("place" in position or not self._must_sort):
            self.notices.append(history.unchecked())
            yield from self._read_unchecked(position)
            return
        elif position is not None:
            done = count_in(position, "slice", self.name)
            self.notices.append(history.unchecked())
        slices = counted = 0
        shape = self.shape
        for each in self._slices_sorted() if self._must_sort else self._slices_in_order():
            added = 0
            if slices + 1 == done and history.is_known:  # the last slice done: has its time got more rows since?
                added = counted + len(each.values) - rows
                each = each.first(rows - counted)
            shape = self._shape_with(each.entries, shape)
            history.add(*each.content())
            slices, counted = slices + 1, counted + len(each.values)
            if slices == done and history.is_known:
                if counted != rows:
                    raise history.other_data()
                history.check()
                self._note_reopened(each.time, added)
            if slices > done:
                marks: dict[str, JSON] = {"slices": slices, "rows": counted, **history.marks()}
                yield self._raw(each, each.after | marks, shape)
        if slices < done:
            raise history.ended_early()

    def identity(self) -> str:  # noqa: D102
        return _identity(next(iter(self._survey.counts)), False) if self._survey and self._survey.counts else ""

    def former_identities(self) -> tuple[str, ...]:
        """Followed tables had none, and whether the rows were sorted was part of it."""
        return ("", *([_identity(self.times[0], True)] if self._must_sort and self.times is not None else []))

    def close(self) -> None:  # noqa: D102
        self._rows.close()
        if self._sorted is not None:
            self._sorted.close()

    def _read_unchecked(self, position: Mapping[str, JSON]) -> Iterator[Raw]:
        """From a position of an earlier version, which has no digest."""
        for each in self._slices_in_order(*(count_in(position, key, self.name) for key in ("place", "skip"))):
            yield self._raw(each, each.after, self.shape)

    def _slices_in_order(self, start: int = 0, skip: int = 0) -> Iterator[_Rows]:
        """Successive rows of one time. In a followed table those of the newest time wait until the next begins."""
        entries: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float64]] = []
        waiting = 0
        time: Any = None
        after: dict[str, JSON] = {"place": start, "skip": skip}
        for batch in self._rows.from_row(start, skip):
            numbers, numbers_values = self._entries(batch)
            begin = 0
            for run_time, count in time_runs(batch.times):
                if entries and run_time != time:
                    yield _Rows(time, np.concatenate(entries), np.concatenate(values), after)
                    entries, values, waiting = [], [], 0
                waiting += count
                self._check_rows(waiting, self._rows)
                entries.append(numbers[begin : begin + count])
                values.append(numbers_values[begin : begin + count])
                begin += count
                time, after = run_time, {"place": batch.start, "skip": batch.offset + begin}
        if entries and self._is_followed:
            self.notices.append(
                f"the rows of {self.time_name} {shown_time(time)} at the end of {self.name} wait for the next "
                f"{self.time_name}, since more of them may come: continue with --resume, without --follow if the table "
                "is complete"
            )
        elif entries:
            yield _Rows(time, np.concatenate(entries), np.concatenate(values), after)

    def _slices_sorted(self) -> Iterator[_Rows]:
        assert self._survey is not None
        if self._sorted is None:
            self._sorted = SortedRows(self._rows, self._survey, self._entries)
        for index, time in enumerate(self._sorted.times):
            block = self._sorted.slice(index)
            yield _Rows(time, block["entry"], block["value"], {"slice": index + 1})

    def _raw(self, rows: _Rows, after: dict[str, JSON], shape: tuple[int, ...]) -> Raw:
        time = plain_time(rows.time)
        return Raw(time, after, lambda: self._dense(time, rows.entries, rows.values, shape))

    def _shape_with(self, entries: NDArray[np.int64], shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of slices that have room for these entries, too: by what was read so far alone, so the same on every way."""
        if not any(self._slots) or not len(entries):
            return shape
        taken = [int(where.max()) + 1 for where in np.unravel_index(entries, self._most)]
        modes = zip(shape, self._slots, taken, strict=True)
        return tuple(size if slots is None else max(size, slots.size(most)) for size, slots, most in modes)

    def _check_rows(self, count: int, rows: Rows) -> None:
        """The rows of one time are held in memory together."""
        if count > self._most_rows:
            raise StreamError(
                f"{rows.name} has more than {self._most_rows} rows for one {rows.columns.time}, many for each entry: "
                "add them up first, or name another column for the times"
            )

    def _note_reopened(self, time: Any, added: int) -> None:
        """Rows that came after the slice of their time was done: it cannot be undone."""
        if not added:
            return
        what = f"{added} more {'row' if added == 1 else 'rows'} of {self.time_name} {shown_time(time)}"
        if self._on_bad == "stop":
            raise StreamError(
                f"{self.name} has got {what}, whose slice was done when the table ended there: leave these rows out "
                "with --on-bad skip (on_bad='skip'), or start again with --overwrite and --follow, which holds the "
                "newest time back until the next begins"
            )
        self.notices.append(f"{what} came to {self.name} after that slice was done and were left out")

    def skipped_rows(self) -> list[str]:  # noqa: D102
        full = self._without_slot.rows
        names = ", ".join(dim for dim, slots in zip(self.dims, self._slots, strict=True) if slots is not None)
        rows = "1 row was" if full == 1 else f"{full} rows were"
        most = ", ".join(str(slots.most) for slots in self._slots if slots is not None)
        why = f"since {names} had no slot free for their labels: give a larger --capacity than {most}"
        said = f"{rows} left out of {self.name}, {why}"
        return [*self._rows.left_out(), *([said] if full else [])]

    def _entries(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The index of each row's entry in a flattened slice, and its value: NaN where a label is not known."""
        flat, known = np.zeros(len(batch), dtype=np.int64), np.ones(len(batch), dtype=np.bool_)
        modes = zip(self.dims, self._most, self._numbers, self._slots, batch.modes, strict=True)
        for dim, size, numbers, slots, mode in modes:
            texts = mode.dictionary.to_pylist()
            if slots is not None:
                numbers = {text: slots.slot(text) for text in _as_they_come(mode, texts)}
            number = mapped(mode, {text: numbers.get(text, -1) for text in texts}, np.int64)
            flat = flat * size + np.maximum(number, 0)
            unknown = number < 0
            if unknown.any() and slots is not None:
                self._without_slot.add((batch.start, batch.offset, dim), int(unknown.sum()))
                known &= ~unknown
            elif unknown.any():
                first = texts[mode.indices[int(np.argmax(unknown))].as_py()]
                self._rows.bad(
                    (batch.start, batch.offset, dim),
                    int(unknown.sum()),
                    f"the label {first!r} in {dim}, which is not in labels",
                    "add it, or leave labels out so that they are found in a first pass, or give a --capacity",
                )
                known &= ~unknown
        return flat, batch.values if known.all() else np.where(known, batch.values, np.nan)

    def _dense(
        self, time: Any, entries: NDArray[np.int64], values: NDArray[np.float64], shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        seen = ~np.isnan(values)
        entries, values = entries[seen], values[seen]
        if shape != self._most:
            entries = np.ravel_multi_index(np.unravel_index(entries, self._most), shape)
        flat = np.full(math.prod(shape), np.nan)
        different, first = np.unique(entries, return_index=True)
        if len(different) == len(entries):
            flat[entries] = values
        elif self._rule in ("sum", "mean"):
            flat[different] = 0
            np.add.at(flat, entries, values)
            if self._rule == "mean":
                flat[different] /= np.unique(entries, return_counts=True)[1]
        elif self._rule == "last":
            flat[entries] = values  # in their order: the last stays
        else:
            again = np.setdiff1d(np.arange(len(entries)), first)[0]
            where = np.unravel_index(int(entries[again]), shape)
            labels = ", ".join(str((known or ())[int(i)]) for known, i in zip(self.labels, where, strict=True))
            self._rows.bad(
                ("repeated", str(time)),
                len(entries) - len(different),
                f"two rows for {labels} at {self.time_name} {shown_time(time)}",
                "use --duplicates sum (duplicates='sum'), mean or last, or keep one",
            )
            flat[different] = values[first]
        return flat.reshape(shape)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of one slice, and where the table continues after them."""

    time: Any
    entries: NDArray[np.int64]
    values: NDArray[np.float64]
    after: dict[str, JSON]

    def first(self, count: int) -> _Rows:
        return _Rows(self.time, self.entries[: max(0, count)], self.values[: max(0, count)], self.after)

    def content(self) -> tuple[bytes, bytes, bytes]:
        """What the digest of the table is made of."""
        return json.dumps(to_json(plain_time(self.time))).encode(), self.entries.tobytes(), self.values.tobytes()


def _as_they_come(mode: Any, texts: list[str]) -> list[str]:
    """The labels of some rows in the order in which they appear."""
    indices = mode.indices.to_numpy(zero_copy_only=False)
    return [texts[index] for index in indices[np.sort(np.unique(indices, return_index=True)[1])].tolist()]


def _identity(first_time: Any, is_sorted: bool) -> str:
    return hashlib.sha256(json.dumps([str(first_time), is_sorted]).encode()).hexdigest()


def open_table(rows: Rows, options: SourceOptions, first_pass: Rows | None) -> Table:
    """A table whose labels are given, or found in a first pass over the same rows."""
    survey = None if first_pass is None else Survey(first_pass)
    labels: list[tuple[Label, ...] | LabelSlots] = []
    for number, mode in enumerate(rows.columns.modes):
        given = (options.labels or {}).get(mode)
        if (capacity := (options.capacity or {}).get(mode)) is not None:
            first, most = capacity if isinstance(capacity, tuple) else (capacity, GROWS_TO)
            if given is not None and len(given) > first:
                raise StreamError(f"capacity of {mode} must hold its {len(given)} labels, got {first}: give more")
            labels.append(LabelSlots(first, given or (), most))
        elif given is not None:
            labels.append(given)
        elif survey is not None:
            labels.append(_as_labels(list(survey.labels[number])))
        else:
            raise StreamError(f"{rows.name} can be read only once: give the labels of {mode} with labels=…")
        if not labels[-1]:
            raise StreamError(f"{rows.name} has no rows to find the labels of {mode} in: give them with labels=…")
    for name in ("labels", "capacity"):
        unknown = [key for key in getattr(options, name) or {} if key not in rows.columns.modes]
        if unknown:
            raise StreamError(f"{name} names {shortened(unknown)}, but the modes are {', '.join(rows.columns.modes)}")
    _bound(labels)
    table = Table(rows, labels, options, survey)
    table.time_zone = None if first_pass is None else first_pass.time_zone
    return table


def _bound(labels: Sequence[tuple[Label, ...] | LabelSlots]) -> None:
    """Let several modes that grow not grow beyond the largest slice together."""
    slots = [known for known in labels if isinstance(known, LabelSlots)]
    while math.prod(known.most if isinstance(known, LabelSlots) else len(known) for known in labels) > (
        MAX_SLICE_ENTRIES
    ):
        widest = max(slots, key=lambda known: known.most / known.first, default=None)
        if widest is None or widest.most == widest.first:
            return  # too many at first: the table says so
        widest.most = max(widest.first, widest.most // 2)


def _as_labels(texts: list[str]) -> tuple[Label, ...]:
    """Numbers where all of them are written as such, in order; texts in alphabetical order otherwise."""
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
            return tuple(sorted(numbers))
    return tuple(sorted(texts))
