"""Data frames as slices: the levels of rows and of columns are modes.

One axis of a table holds one mode or, with several levels of labels, several: its rows are then scattered over the
product of the levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.names import Label, plain_labels, shown
from undertow.inputs.labels.placing import Coords, Parsed

MAX_ENTRIES = 2**31
"""Of the product of the levels."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Rows or columns of a table.

    Attributes:
        names: Of its levels; None where one has none.
        labels: Of its levels, each once, in the order in which they appear; None: by position.
        sizes: Number of labels of each level.
        place: Where each row stands in the product of the levels; None where rows are that product, in order.
    """

    names: tuple[str | None, ...]
    labels: Coords
    sizes: tuple[int, ...]
    place: NDArray[np.int64] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there is a row for everything in the product."""
        return self.place is None or len(self.place) == math.prod(self.sizes)


def unlabelled(size: int, name: str | None = None) -> Axis:
    """Rows that count by their position."""
    return Axis((name,), (None,), (size,))


def levelled(names: Sequence[Any], columns: Sequence[Any]) -> Axis:
    """Rows with one or more levels of labels.

    Args:
        names: Of the levels.
        columns: For each level the labels of all rows.
    """
    kept = tuple(None if name is None else str(name) for name in names)
    plain = [plain_labels(column) for column in columns]
    if len(plain) == 1:
        return Axis(kept, (plain[0],), (len(plain[0]),))
    labels = tuple(tuple(dict.fromkeys(level)) for level in plain)
    sizes = tuple(len(level) for level in labels)
    if math.prod(sizes) > MAX_ENTRIES:
        raise ValueError(
            f"x has {'×'.join(map(str, sizes))} labels in its levels, more than {MAX_ENTRIES} entries: "
            "use fewer levels, or undertow.Entries."
        )
    place = np.zeros(len(plain[0]), np.int64)
    for level, known, size in zip(plain, labels, sizes, strict=True):
        numbers = {label: number for number, label in enumerate(known)}
        place = place * size + np.array([numbers[label] for label in level], np.int64)
    if len(np.unique(place)) < len(place):
        first = next(rows for rows, count in _counted(zip(*plain, strict=True)) if count > 1)
        raise ValueError(
            f"x has two rows for {', '.join(map(shown, first))}: combine them first, for example by their sum."
        )
    in_order = len(place) == math.prod(sizes) and bool((place == np.arange(len(place))).all())
    return Axis(kept, labels, sizes, None if in_order else place)


@dataclass(frozen=True, eq=False)
class TableForm:
    """The axes of a table, and how to make another.

    Attributes:
        rows: Its rows.
        columns: Its columns; None of a series.
        make: Called with a matrix, and for rows and columns with None where they are as they were, else with the
            labels of all of them, as tuples with one label per level.
    """

    rows: Axis
    columns: Axis | None
    make: Callable[[NDArray[Any], Any, Any], Any]

    def build(self, values: NDArray[Any], replaced: Coords) -> Any:
        """Another table with the same labels."""
        split = len(self.rows.sizes)
        own, other = replaced[:split], replaced[split:]
        rows = math.prod(values.shape[:split])
        matrix, row_labels = _gathered(values.reshape(rows, -1), self.rows, own)
        if self.columns is None:
            return self.make(matrix[:, 0], row_labels, None)
        turned, column_labels = _gathered(matrix.T, self.columns, other)
        return self.make(turned.T, row_labels, column_labels)


def parsed_table(matrix: NDArray[Any], rows: Axis, columns: Axis | None, make: Any) -> Parsed:
    """A table of numbers, (rows, columns) or (rows,), as a slice."""
    if matrix.size == 0:
        raise ValueError(f"x must have at least one entry, got shape {matrix.shape}: leave it out, or give NaN.")
    values = _scattered(matrix.reshape(len(matrix), -1), rows)
    axes = (rows,) if columns is None else (rows, columns)
    if columns is not None:
        values = _scattered(values.T, columns).T
    shape = tuple(size for axis in axes for size in axis.sizes)
    names = tuple(name for axis in axes for name in axis.names)
    coords = tuple(labels for axis in axes for labels in axis.labels)
    return Parsed(values.reshape(shape), names, coords, TableForm(rows, columns, make))


def _scattered(matrix: NDArray[Any], axis: Axis) -> NDArray[Any]:
    """Rows at their places in the product of the levels, NaN where there is none."""
    if axis.place is None:
        return matrix
    kind = matrix.dtype if matrix.dtype.kind == "f" else np.dtype(np.float64)
    full = np.full((math.prod(axis.sizes), matrix.shape[1]), np.nan, kind)
    full[axis.place] = matrix
    return full


def _gathered(matrix: NDArray[Any], axis: Axis, replaced: Coords) -> tuple[NDArray[Any], Any]:
    """Rows as they were in the table, and None; or all of them, and their labels."""
    if axis.is_full and all(labels is None for labels in replaced):
        return (matrix if axis.place is None else matrix[axis.place]), None
    pairs = zip(axis.labels, replaced, strict=True)
    return matrix, list(product(*[own if other is None else other for own, other in pairs]))  # type: ignore[arg-type]


def _counted(rows: Any) -> Any:
    counts: dict[tuple[Label, ...], int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1
    return counts.items()
