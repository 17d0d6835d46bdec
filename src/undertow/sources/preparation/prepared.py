"""A source as the rest of Undertow gets it: parts selected, missing entries NaN, resized, times checked, resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, BadInputError, Item, Label, StreamError
from undertow.sources.brokers.source import BrokerSource
from undertow.sources.capacity import LabelSlots
from undertow.sources.errors import check_real, foreign_position, left_out, one_sentence
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.options import Preparation, SourceOptions
from undertow.sources.preparation import selecting
from undertow.sources.preparation.masking import Mask
from undertow.sources.preparation.resizing import Resizer, new_shape
from undertow.sources.preparation.timekeeping import TimeKeeper
from undertow.sources.times import from_json, to_json, usual_step

_EXACT_IN_SINGLE = ("?", "b", "B", "h", "H", "e", "f")  # types whose every value float32 holds exactly


class PreparedStream:
    """The :class:`~undertow.sources.base.Stream` that :func:`open_stream` returns; ``format`` is one of its formats."""

    def __init__(self, source: Source, preparation: Preparation, mask: Mask | None, options: SourceOptions) -> None:
        self._source, self._preparation, self._mask, self._options = source, preparation, mask, options
        self.name, self.format, self.dims, self.time_name = source.name, source.format, source.dims, source.time_name
        chosen = dict(preparation.select)
        part = None
        for key in (source.time_name, "time"):
            if key in chosen and key not in source.dims:
                part = chosen.pop(key)
        self._when = selecting.time_selection(part, source.length, source.time_name)
        self._counted = self._when.count(source.length, source.times)
        self._parts: list[NDArray[np.intp] | None] = [None] * len(source.shape)
        for name, part in chosen.items():
            mode = selecting.mode_number(name, source.dims)
            if isinstance(source.labels[mode], LabelSlots):
                raise StreamError(f"select cannot choose among labels of {name} that are still to come: leave it out")
            self._parts[mode] = selecting.indices(part, source.shape[mode], source.labels[mode], source.dims[mode])
        cut = tuple(size if part is None else len(part) for size, part in zip(source.shape, self._parts, strict=True))
        self.shape = new_shape(preparation.resize, cut, source.dims, source.name)
        self._grows = any(isinstance(known, LabelSlots) for known in source.labels)
        if self._grows and (self.shape != cut or mask is not None):
            raise StreamError("resize and mask need the size of a slice, and capacity lets it grow: leave one out")
        labels = map(_kept_labels, source.labels, self._parts, cut, self.shape)
        self.labels = tuple(map(self._encodable, source.dims, labels))
        self._resizer = Resizer(cut, self.shape)
        self._step = self._known_step()
        self._keeper: TimeKeeper | None = None
        self._fingerprints: tuple[str, ...] = ()
        self._skipped, self._first_skipped, self._infinite = 0, "", 0

    @property
    def times(self) -> NDArray[Any] | None:
        """The times of all slices in the source, before any selection, where that is known without reading them."""
        return self._source.times

    @property
    def attributes(self) -> dict[str, str]:
        """What else the source knows: the unit of its values, and where volumes lie unless they were cut or resized."""
        zone = {} if self.time_zone is None else {"time_zone": self.time_zone}
        known = self._source.attributes
        return zone | {name: text for name, text in known.items() if self._whole or name == "units"}

    @property
    def _whole(self) -> bool:
        """Whether slices are neither cut nor resized."""
        return not self._preparation.select and self._preparation.resize is None

    @property
    def time_zone(self) -> str | None:
        """Of the times in the source; they are given in UTC then."""
        return self._source.time_zone

    @property
    def length(self) -> int | None:  # noqa: D102
        if self._preparation.late == "skip" or self._preparation.gaps == "fill":
            return None
        if self._when.first is None and self._when.last is None:
            return self._when.count(self._source.length, None)  # may have grown meanwhile
        return self._counted

    @property
    def notices(self) -> list[str]:  # noqa: D102
        notices = [
            *self._source.notices,
            *self._source.skipped_rows(),
            *(self._keeper.notices() if self._keeper else []),
        ]
        if self._skipped:
            notices.append(left_out("slice", self._skipped, self.name, self._first_skipped))
        if self._infinite:
            values = "infinite value was" if self._infinite == 1 else "infinite values were"
            notices.append(f"{self._infinite} {values} taken as missing in {self.name}")
        if not self._whole and "nifti" in self._source.attributes:
            notices.append(f"slices of {self.name} are cut or resized: where its volumes lie (the affine) is not kept")
        return notices

    @property
    def fingerprint(self) -> str:
        """Digest of source and options, but for those that only say what happens to bad input.

        Checkpoints hold it: if its parts change, old stores cannot resume.
        """
        return self._all_fingerprints()[0]

    @property
    def former_fingerprints(self) -> tuple[str, ...]:
        """What earlier versions gave for the same stream."""
        return self._all_fingerprints()[1:]

    @property
    def remedies(self) -> dict[str, str]:
        """The options that only say what happens to bad input; a run may be resumed with others."""
        return {
            **self._preparation.remedies(),
            "on_bad": self._options.on_bad,
            "duplicates": str(self._options.duplicates or "refuse"),
        }

    def restarted(self, position: Mapping[str, JSON]) -> dict[str, JSON]:
        """The position at the beginning of a pipe whose content follows what was read before this position."""
        if not self._source.is_pipe:
            raise StreamError(
                f"{self.name} is no pipe, and only a pipe brings nothing but new data: leave new_data out"
            )
        return {**position, "source": None}

    def slices(self, position: Mapping[str, JSON] | None = None) -> Iterator[Item]:  # noqa: D102
        index, inner, last = self._start(position)
        prepared = self._preparation
        keeper = self._keeper = TimeKeeper(self.name, prepared.late, prepared.gaps, self._step, last)
        with self._reading():
            raws = self._source.read(inner)
            while not self._when.is_over(index):
                raw = next(raws, None)
                if raw is None:
                    self._note_early_end(index)
                    return
                if self._when.wants(index, raw.time) and keeper.accepts(raw.time):
                    values = self._usable(raw, index)
                    if values is not None:
                        for time in keeper.missing_before(raw.time):
                            keeper.record(time)
                            yield Item(np.full(values.shape, np.nan), time, _position(index, inner, keeper))
                        keeper.record(raw.time)
                        yield Item(values, raw.time, _position(index + 1, raw.position, keeper))
                index, inner = index + 1, raw.position

    def done(self, position: Mapping[str, JSON] | None) -> None:
        """Everything up to this position is safe: a broker may let go of it. Nothing else needs to know."""
        inner = (position or {}).get("source")
        if isinstance(self._source, BrokerSource) and isinstance(inner, dict):
            self._source.done(inner)

    def close(self) -> None:  # noqa: D102
        self._source.close()

    def _all_fingerprints(self) -> tuple[str, ...]:
        """The present one first."""
        if not self._fingerprints:
            with self._reading():
                identities = (self._source.identity(), *self._source.former_identities())
                former = self._options.canonical() | self._preparation.canonical()
                present = self._options.remedied().canonical() | self._preparation.remedied().canonical()
                step = str(self._step) if self._preparation.gaps != "keep" else ""
                every = [self._fingerprint(each, present, "") for each in identities]
                every += [self._fingerprint(each, former, step) for each in identities]
                self._fingerprints = tuple(dict.fromkeys(every))
        return self._fingerprints

    def _fingerprint(self, identity: str, options: dict[str, str], step: str) -> str:
        named = [self.name, self.format, identity, self.shape, self.dims, self.labels, self.time_name]
        content = [*named, dict(sorted(options.items())), step]
        return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()

    def _usable(self, raw: Raw, index: int) -> NDArray[np.floating[Any]] | None:
        """The values of a slice; None if it is bad and to be skipped."""
        try:
            return self._values(raw, index)
        except BadInputError as error:
            if self._options.on_bad == "stop":
                raise StreamError(f"{error}, or leave such slices out with --on-bad skip (on_bad='skip')") from error
            self._skipped += 1
            self._first_skipped = self._first_skipped or str(error).partition(": ")[0]
            return None

    def _without_infinity(self, values: NDArray[np.floating[Any]], index: int) -> NDArray[np.floating[Any]]:
        """Infinite values are missing, or end the stream."""
        if not np.isinf([np.fmax.reduce(values, axis=None), np.fmin.reduce(values, axis=None)]).any():
            return values
        infinite = np.isinf(values)
        count = int(infinite.sum())
        if self._options.on_bad == "stop":
            which = "an infinite value" if count == 1 else f"{count} infinite values"
            raise StreamError(
                f"slice {index} of {self.name} holds {which}: take them as missing with --missing-value inf,-inf "
                "(missing_value='inf,-inf') or --on-bad skip (on_bad='skip')"
            )
        self._infinite += count
        values[infinite] = np.nan
        return values

    def _encodable(self, dim: str, labels: tuple[Label, ...] | None) -> tuple[Label, ...] | None:
        """Labels without halves of characters (lone surrogates), which no file can hold."""
        halves = dict.fromkeys(label for label in labels or () if isinstance(label, str) and _is_half(label))
        if not halves:
            return labels
        first = next(iter(halves))
        what = f"{self.name} has the label {first!a} in {dim}, which holds half of a character (a lone surrogate)"
        if self._options.on_bad == "stop":
            raise StreamError(
                f"{what}: give other labels, or put a question mark there with --on-bad skip (on_bad='skip')"
            )
        self._source.notices.append(f"{what}: there is a question mark in its place")
        return tuple(label.encode("utf-8", "replace").decode() if label in halves else label for label in labels or ())

    def _note_early_end(self, index: int) -> None:
        claimed = self._source.length
        if claimed is not None and index < claimed:
            note = f"{self.name} claims to hold {claimed} slices, but it ended after {index}"
            if note not in self._source.notices:
                self._source.notices.append(note)

    def _reading(self) -> AbstractContextManager[None]:
        return one_sentence(f"{self.name} could not be read", "check that it is complete and not damaged")

    def _known_step(self) -> Any:
        """The step of the times, after the selection of every k-th slice."""
        step, gaps = self._preparation.step, self._preparation.gaps
        if step is None:
            step = usual_step(self._source.times)
            step = None if step is None else step * self._when.step
        if step is None and gaps != "keep":
            raise StreamError(
                f"gaps={gaps!r} needs the distance between the times of {self.name}: give step, "
                "for example step='5min' or step=1"
            )
        return step

    def _start(self, position: Mapping[str, JSON] | None) -> tuple[int, dict[str, JSON] | None, Any]:
        if position is None:
            return 0, None, None
        inner = position.get("source")
        if inner is not None and not isinstance(inner, dict):
            raise foreign_position(self.name)
        return count_in(position, "index", self.name), inner, from_json(self.name, position.get("last"))

    def _values(self, raw: Raw, index: int) -> NDArray[np.floating[Any]]:
        array = np.asarray(raw.load())
        check_real(self.name, array.dtype)
        if array.shape != self._source.shape and not self._grows:
            raise BadInputError(
                f"{self.name} must have slices of one shape, {self._source.shape}, but slice {index} has "
                f"{array.shape}: resize or leave it out"
            )
        mask = None if self._mask is None else self._mask(index)
        array = self._cut(array)
        narrow = array.dtype.newbyteorder("=").char in _EXACT_IN_SINGLE
        with np.errstate(over="ignore"):
            values: NDArray[np.floating[Any]] = np.array(array, np.float32 if narrow else np.float64, order="C")
        for missing in self._preparation.missing_value:
            values[_equal(array, missing)] = np.nan
        if mask is not None:
            values[~self._cut(mask)] = np.nan
        values = values if array.dtype.kind in "biu" else self._without_infinity(values, index)
        return values if self._grows else self._resizer(values)

    def _cut(self, array: NDArray[Any]) -> NDArray[Any]:
        for mode, part in enumerate(self._parts):
            if part is not None:
                array = array.take(part, axis=mode)
        return array


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _kept_labels(
    known: tuple[Label, ...] | None, part: NDArray[np.intp] | None, cut: int, size: int
) -> tuple[Label, ...] | None:
    if size != cut:
        return None  # an average over several entries has none of their labels
    return known if part is None else tuple(int(i) if known is None else known[i] for i in part)


def _position(index: int, inner: dict[str, JSON] | None, keeper: TimeKeeper) -> dict[str, JSON]:
    return {"index": index, "source": inner, "last": to_json(keeper.last)}


def _equal(array: NDArray[Any], value: float) -> NDArray[np.bool_]:
    """Where the array holds the value in its own precision: 0.1 is found among single precision numbers too."""
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(array == np.asarray(value).astype(array.dtype))
    return np.asarray(array == value)  # integers are compared as numbers: -1 does not become 255
