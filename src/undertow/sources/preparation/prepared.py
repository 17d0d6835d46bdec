"""A source as the rest of Undertow sees it: parts selected, gaps marked as NaN, resized, times watched, resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Item, Label, StreamError
from undertow.sources.errors import check_real, told_in_one_sentence
from undertow.sources.formats.base import Raw, Source, integer
from undertow.sources.preparation import selecting
from undertow.sources.preparation.resizing import Resizer, new_shape
from undertow.sources.preparation.times import TimeKeeper, from_json, to_json, usual_step

Mask = Callable[[int], NDArray[np.bool_] | None]
_EXACT_IN_SINGLE = ("?", "b", "B", "h", "H", "e", "f")  # types whose every value float32 holds exactly


@dataclass(frozen=True)
class Preparation:
    """What is done to each slice, whatever its format; :func:`open_stream` explains each option."""

    select: dict[str | int, Any]
    resize: Any = None
    missing_values: tuple[float, ...] = ()
    late: str = "keep"
    gaps: str = "keep"
    step: Any = None


class PreparedStream:
    """The :class:`~undertow.sources.base.Stream` that :func:`open_stream` gives back."""

    def __init__(self, source: Source, preparation: Preparation, mask: Mask | None, options: dict[str, Any]) -> None:
        self._source, self._plan, self._mask, self._options = source, preparation, mask, options
        chosen = dict(preparation.select)
        part = None
        for key in (source.time_name, "time"):
            if key in chosen and key not in source.dims:
                part = chosen.pop(key)
        self._when = selecting.time_selection(part, source.length, source.time_name)
        self._counted = self._when.count(source.length, source.times)
        self._parts = self._selected_parts(chosen)
        sizes = tuple(size if part is None else len(part) for size, part in zip(source.shape, self._parts, strict=True))
        self._shape = new_shape(preparation.resize, sizes, source.dims, source.name)
        self._resizer = Resizer(sizes, self._shape)
        self._cut_shape = sizes
        self._step = self._known_step()
        self._keeper: TimeKeeper | None = None
        self._fingerprint: str | None = None

    @property
    def name(self) -> str:  # noqa: D102
        return self._source.name

    @property
    def format(self) -> str:
        """Which of the known formats it has."""
        return self._source.format

    @property
    def shape(self) -> tuple[int, ...]:  # noqa: D102
        return self._shape

    @property
    def dims(self) -> tuple[str, ...]:  # noqa: D102
        return self._source.dims

    @property
    def labels(self) -> tuple[tuple[Label, ...] | None, ...]:  # noqa: D102
        made: list[tuple[Label, ...] | None] = []
        for known, part, cut, size in zip(self._source.labels, self._parts, self._cut_shape, self._shape, strict=True):
            if size != cut:
                made.append(None)  # an average over several entries has none of their labels
            elif part is None:
                made.append(known)
            else:
                made.append(tuple(int(i) if known is None else known[i] for i in part))
        return tuple(made)

    @property
    def time_name(self) -> str:  # noqa: D102
        return self._source.time_name

    @property
    def times(self) -> NDArray[Any] | None:
        """The times of all slices in the source, before any selection, where that is known without reading them."""
        return self._source.times

    @property
    def length(self) -> int | None:  # noqa: D102
        if self._plan.late == "skip" or self._plan.gaps == "fill":
            return None
        if self._when.first is None and self._when.last is None:
            return self._when.count(self._source.length, None)  # may have grown meanwhile
        return self._counted

    @property
    def notices(self) -> list[str]:  # noqa: D102
        return [*self._source.notices, *(self._keeper.notices() if self._keeper else [])]

    @property
    def fingerprint(self) -> str:  # noqa: D102
        if self._fingerprint is None:
            with self._reading():
                content = [
                    self._source.name,
                    self._source.format,
                    self._source.identity(),
                    self._shape,
                    self.dims,
                    self.labels,
                    self.time_name,
                    {key: str(value) for key, value in sorted(self._options.items())},
                    str(self._step) if self._plan.gaps != "keep" else "",
                ]
                self._fingerprint = hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()
        return self._fingerprint

    def slices(self, position: Mapping[str, JSON] | None = None) -> Iterator[Item]:  # noqa: D102
        index, inner, last = self._start(position)
        keeper = self._keeper = TimeKeeper(self.name, self._plan.late, self._plan.gaps, self._step, last)
        with self._reading():
            raws = self._source.read(inner)
            while not self._when.is_over(index):
                raw = next(raws, None)
                if raw is None:
                    self._note_early_end(index)
                    return
                if self._when.wants(index, raw.time) and keeper.accepts(raw.time):
                    for time in keeper.missing_before(raw.time):
                        keeper.passed(time)
                        yield Item(np.full(self._shape, np.nan), time, self._position(index, inner, keeper))
                    keeper.passed(raw.time)
                    yield Item(self._values(raw, index), raw.time, self._position(index + 1, raw.position, keeper))
                index, inner = index + 1, raw.position

    def close(self) -> None:  # noqa: D102
        self._source.close()

    def _note_early_end(self, index: int) -> None:
        claimed = self._source.length
        if claimed is not None and index < claimed:
            note = f"{self.name} says that it holds {claimed} slices, but it ended after {index}"
            if note not in self._source.notices:
                self._source.notices.append(note)

    def _reading(self) -> Any:
        return told_in_one_sentence(f"{self.name} could not be read", "check that it is complete and not damaged")

    def _selected_parts(self, chosen: dict[str | int, Any]) -> list[NDArray[np.intp] | None]:
        source = self._source
        parts: list[NDArray[np.intp] | None] = [None] * len(source.shape)
        for key, part in chosen.items():
            mode = selecting.mode_number(key, source.dims)
            parts[mode] = selecting.indices(part, source.shape[mode], source.labels[mode], source.dims[mode])
        return parts

    def _known_step(self) -> Any:
        """The step of the times, after the selection of every k-th slice."""
        step = self._plan.step
        if step is None:
            step = usual_step(self._source.times)
            step = None if step is None else step * self._when.step
        if step is None and self._plan.gaps != "keep":
            raise StreamError(
                f"gaps={self._plan.gaps!r} needs to know how far apart the times of {self.name} are: give step, "
                "for example step='5min' or step=1"
            )
        return step

    def _start(self, position: Mapping[str, JSON] | None) -> tuple[int, dict[str, JSON] | None, Any]:
        if position is None:
            return 0, None, None
        inner = position.get("source")
        if inner is not None and not isinstance(inner, dict):
            raise StreamError(f"the position to resume {self.name} from is not one of its own: start afresh")
        return integer(self.name, position, "index"), inner, from_json(self.name, position.get("last"))

    def _position(self, index: int, inner: dict[str, JSON] | None, keeper: TimeKeeper) -> dict[str, JSON]:
        return {"index": index, "source": inner, "last": to_json(keeper.last)}

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
        for missing in self._plan.missing_values:
            values[_equal(array, missing)] = np.nan
        if mask is not None:
            values[~self._cut(mask)] = np.nan
        return self._resizer(values)

    def _cut(self, array: NDArray[Any]) -> NDArray[Any]:
        for mode, part in enumerate(self._parts):
            if part is not None:
                array = array.take(part, axis=mode)
        return array


def _equal(array: NDArray[Any], value: float) -> NDArray[np.bool_]:
    """Where the array holds the value in its own precision: 0.1 is found among single precision numbers too."""
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(array == np.asarray(value).astype(array.dtype))
    return np.asarray(array == value)  # integers are compared as numbers: -1 does not become 255
