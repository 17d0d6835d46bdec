"""A source as the rest of Undertow gets it: parts selected, missing entries NaN, resized, times checked, resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Item, Label, StreamError
from undertow.sources.errors import check_real, foreign_position, one_sentence
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.options import Preparation
from undertow.sources.preparation import selecting
from undertow.sources.preparation.masking import Mask
from undertow.sources.preparation.resizing import Resizer, new_shape
from undertow.sources.preparation.timekeeping import TimeKeeper
from undertow.sources.times import from_json, to_json, usual_step

_EXACT_IN_SINGLE = ("?", "b", "B", "h", "H", "e", "f")  # types whose every value float32 holds exactly


class PreparedStream:
    """The :class:`~undertow.sources.base.Stream` that :func:`open_stream` returns; ``format`` is one of its formats."""

    def __init__(
        self, source: Source, preparation: Preparation, mask: Mask | None, canonical: Mapping[str, str]
    ) -> None:
        self._source, self._preparation, self._mask, self._canonical = source, preparation, mask, canonical
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
            self._parts[mode] = selecting.indices(part, source.shape[mode], source.labels[mode], source.dims[mode])
        cut = tuple(size if part is None else len(part) for size, part in zip(source.shape, self._parts, strict=True))
        self.shape = new_shape(preparation.resize, cut, source.dims, source.name)
        self.labels = tuple(map(_kept_labels, source.labels, self._parts, cut, self.shape))
        self._resizer = Resizer(cut, self.shape)
        self._step = self._known_step()
        self._keeper: TimeKeeper | None = None
        self._fingerprint: str | None = None

    @property
    def times(self) -> NDArray[Any] | None:
        """The times of all slices in the source, before any selection, where that is known without reading them."""
        return self._source.times

    @property
    def length(self) -> int | None:  # noqa: D102
        if self._preparation.late == "skip" or self._preparation.gaps == "fill":
            return None
        if self._when.first is None and self._when.last is None:
            return self._when.count(self._source.length, None)  # may have grown meanwhile
        return self._counted

    @property
    def notices(self) -> list[str]:  # noqa: D102
        return [*self._source.notices, *(self._keeper.notices() if self._keeper else [])]

    @property
    def fingerprint(self) -> str:
        """Digest of source and options. Checkpoints hold it: if its parts change, old stores cannot resume."""
        if self._fingerprint is None:
            with self._reading():
                content = [
                    self.name,
                    self.format,
                    self._source.identity(),
                    self.shape,
                    self.dims,
                    self.labels,
                    self.time_name,
                    dict(sorted(self._canonical.items())),
                    str(self._step) if self._preparation.gaps != "keep" else "",
                ]
                self._fingerprint = hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()
        return self._fingerprint

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
                    for time in keeper.missing_before(raw.time):
                        keeper.record(time)
                        yield Item(np.full(self.shape, np.nan), time, _position(index, inner, keeper))
                    keeper.record(raw.time)
                    yield Item(self._values(raw, index), raw.time, _position(index + 1, raw.position, keeper))
                index, inner = index + 1, raw.position

    def close(self) -> None:  # noqa: D102
        self._source.close()

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
        if array.shape != self._source.shape:
            raise StreamError(
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
        return self._resizer(values)

    def _cut(self, array: NDArray[Any]) -> NDArray[Any]:
        for mode, part in enumerate(self._parts):
            if part is not None:
                array = array.take(part, axis=mode)
        return array


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
