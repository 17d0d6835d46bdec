"""What a stream is: its name, the shape of its slices, names and labels of their modes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import Incidents
from undertow.incidents.naming import Names
from undertow.inputs.dense import MAX_MODES
from undertow.inputs.labels.growing import MOST_LABELS
from undertow.ladder import rung
from undertow.service.errors import Full, Invalid, TooLarge
from undertow.service.settings import Limits

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Names of streams: nothing that means something to a file system, an address or a page."""
LABEL_LENGTH = 200
_NAME = re.compile(NAME)


@dataclass(frozen=True)
class Spec:
    """What a client says about a stream when it creates it.

    Attributes:
        shape: Of a slice.
        dims: One name for each mode.
        labels: For each mode the labels of its rows, or None; a row without one is free for a label that is to come.
        false_alarms: False incidents that are accepted, as `undertow.incidents.Incidents` takes it.
        step: Seconds between slices, where their times do not say it.
        coming: For each mode, whether labels may come to it: one was to come when the stream was created.
        grown: From which slice on slices had which shape, where they have grown; the first is that of the first slice.
    """

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[tuple[str | None, ...] | None, ...]
    false_alarms: str | None = None
    step: float | None = None
    coming: tuple[bool, ...] = ()
    grown: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def entries(self) -> int:
        """Of a slice."""
        return math.prod(self.shape)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Spec:
        """What `to_json` gave."""
        labels = tuple(None if one is None else tuple(one) for one in given["labels"])
        known = (tuple(given["shape"]), tuple(given["dims"]), labels, given["false_alarms"], given["step"])
        grown = tuple((int(first), tuple(shape)) for first, shape in given.get("grown", ()))
        return cls(*known, tuple(given.get("coming") or map(_comes, labels)), grown)

    def incidents(self) -> Incidents:
        """A watch that has seen nothing."""
        return Incidents(self.shape, self.names().labels, self.false_alarms, self.step, self.dims)

    def names(self) -> Names:
        """What rows are called as of now."""
        return Names.of(
            self.shape, [one and [_shown(one[n], n) for n in range(len(one))] for one in self.labels], self.dims
        )

    def labels_of(self, position: Sequence[int]) -> list[str]:
        """Of one entry; numbers where there are none."""
        pairs = zip(self.labels, position, strict=True)
        return [str(index) if labels is None else _shown(labels[index], index) for labels, index in pairs]

    def is_of(self, asked: Spec) -> bool:
        """Whether this is what was asked for, but for labels that have come since."""
        began = self.cut(self.first)
        if replace(began, labels=(), grown=(), coming=()) != replace(asked, labels=(), coming=()) or len(
            self.labels
        ) != len(asked.labels):
            return False
        return all(
            one == other
            or (one is not None and other is not None and all(b in (None, a) for a, b in zip(one, other, strict=True)))
            for one, other in zip(began.labels, asked.labels, strict=True)
        )

    @property
    def first(self) -> tuple[int, ...]:
        """Shape that it was created with."""
        return self.grown[0][1] if self.grown else self.shape

    def shape_at(self, sequence: int) -> tuple[int, ...]:
        """Of a slice of the past."""
        return next((shape for first, shape in reversed(self.grown) if first <= sequence), self.shape)

    def cut(self, shape: tuple[int, ...]) -> Spec:
        """As it was when slices had this shape, but for the labels."""
        labels = (one and one[:size] for one, size in zip(self.labels, shape, strict=True))
        return replace(self, shape=shape, labels=tuple(labels))

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a slice of this shape, whose rows are not named, has rows that there are or were at some time."""
        return shape == self.shape or any(shape == former for _, former in self.grown)

    def with_room(self, given: Sequence[Sequence[str] | None], sequence: int, entries: int) -> Spec:
        """With places for labels that find none, in modes to which labels may come: sizes of a ladder.

        Args:
            given: The labels of a slice, for each mode.
            sequence: Of the slice.
            entries: That slices may have.

        Raises:
            Full: They would be too many.
        """
        labels = list(self.labels)
        for mode, mine in enumerate(given):
            row = labels[mode]
            if mine is None or row is None or not self.coming[mode]:
                continue
            needed = len(row) + len(set(mine) - set(row)) - row.count(None)
            if needed > len(row):
                size = min(rung(needed), MOST_LABELS)
                if size < needed:
                    raise Full(f"mode {self.dims[mode]} may have {MOST_LABELS} labels, and would have {needed}")
                labels[mode] = row + (None,) * (size - len(row))
        shape = tuple(size if one is None else len(one) for one, size in zip(labels, self.shape, strict=True))
        if math.prod(shape) > entries:
            raise Full(f"slices may have {entries} entries, and would have {math.prod(shape)} with these labels")
        return self if shape == self.shape else self.widened(sequence, shape, tuple(labels))

    def widened(self, sequence: int, shape: tuple[int, ...], labels: tuple[tuple[str | None, ...] | None, ...]) -> Spec:
        """With further rows from a slice on."""
        before = self.grown or ((0, self.shape),)
        return replace(self, shape=shape, labels=labels, grown=(*before, (sequence, shape)))

    def whole(self, values: NDArray[Any]) -> NDArray[Any]:
        """A slice with all rows that there are now; nothing was observed in those that came later."""
        if values.shape == self.shape:
            return values
        whole = np.full(self.shape, np.nan, values.dtype)
        whole[tuple(map(slice, values.shape))] = values
        return whole

    def without(self, silent: Sequence[Sequence[int]]) -> Spec:
        """With places that are free again, for each mode."""
        pairs = zip(self.labels, silent, strict=True)
        labels = (one and tuple(None if n in gone else label for n, label in enumerate(one)) for one, gone in pairs)
        return replace(self, labels=tuple(labels))

    def placed(self, values: NDArray[Any], given: Sequence[Sequence[str] | None]) -> tuple[Spec, NDArray[Any]]:
        """A slice whose rows were named, with its rows where they belong; labels that are new take free places.

        Args:
            values: With a row for each of these labels.
            given: For each mode; None where all rows are there, in order.

        Returns:
            What the stream is from now on, and the whole slice.

        Raises:
            Full: A label finds no place.
            Invalid: The slice does not fit its labels.
        """
        known, places = list(self.labels), []
        sizes = [size if one is None else len(one) for one, size in zip(given, self.shape, strict=True)]
        former = [shape for _, shape in self.grown]
        sizes = [
            got if mine is None and any(got == shape[mode] for shape in former) else size
            for mode, (mine, size, got) in enumerate(zip(given, sizes, values.shape, strict=False))
        ]
        if list(values.shape) != sizes:
            raise Invalid(f"values must have a row for each label, {sizes}, got {list(values.shape)}")
        for mode, (dim, mine) in enumerate(zip(self.dims, given, strict=True)):
            if mine is None:
                places.append(np.arange(sizes[mode]))
                continue
            if known[mode] is None or len(set(mine)) < len(mine):
                why = "has no labels" if known[mode] is None else "was given one label twice"
                raise Invalid(f"mode {dim} {why}: name each row once, in modes that have labels")
            row = list(known[mode] or ())
            for label in dict.fromkeys(mine):
                if label not in row and None not in row:
                    raise Full(
                        f"mode {dim} has no free place for the label {label!r:.60}: its {len(row)} are taken; create a "
                        "stream with null in place of a label to which more may come"
                    )
                if label not in row:
                    row[row.index(None)] = label
            known[mode] = tuple(row)
            places.append(np.array([row.index(label) for label in mine], np.int64))
        whole = np.full(self.shape, np.nan, values.dtype if values.dtype.kind == "f" else np.float64)
        whole[np.ix_(*places)] = values
        return replace(self, labels=tuple(known)), whole


def _comes(labels: Sequence[str | None] | None) -> bool:
    return labels is not None and None in labels


def _shown(label: str | None, place: int) -> str:
    return f"(free {place})" if label is None else label


def checked_name(name: str) -> str:
    """The name of a stream.

    Raises:
        Invalid: It is none.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"a stream's name has 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or digit, got {name!r}"
        )
    return name


def checked_spec(given: Mapping[str, Any], limits: Limits) -> Spec:
    """What a client asked for, checked.

    Raises:
        Invalid: It contradicts itself.
        TooLarge: Slices have more entries than are allowed.
    """
    shape = tuple(given["shape"])
    if not 1 <= len(shape) <= MAX_MODES or any(size < 1 for size in shape):
        raise Invalid(f"shape must have 1 to {MAX_MODES} modes of size 1 or more, got {list(shape)}")
    if math.prod(shape) > limits.entries:
        raise TooLarge(f"slices may have {limits.entries} entries, got {math.prod(shape)}: use smaller ones")
    dims = given.get("dims") or [f"mode_{mode}" for mode in range(len(shape))]
    if len(dims) != len(shape) or len(set(dims)) != len(dims):
        raise Invalid(f"dims must be {len(shape)} different names, one for each mode, got {dims}")
    labels = given.get("labels") or [None] * len(shape)
    for text in (*dims, *(label for one in labels for label in one or () if label is not None)):
        if len(text) > LABEL_LENGTH:
            raise Invalid(f"names and labels have at most {LABEL_LENGTH} characters, got {len(text)}")
    spec = Spec(
        shape,
        tuple(dims),
        tuple(None if one is None else tuple(one) for one in labels),
        given.get("false_alarms"),
        given.get("step"),
        tuple(map(_comes, labels)),
    )
    try:
        spec.incidents()
    except (ValueError, TypeError) as error:
        raise Invalid(str(error)) from error
    return spec
