"""A labelled slice is put in the order of its stream, by name and label; results go the same way back.

Modes are matched by name where both have names, else by position; entries by label. Labels that a slice lacks are
missing entries, and then its results have all labels of the stream. A label that the stream does not know is refused:
nothing is dropped without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.names import Label, Labels, check_distinct, shown

Coords = tuple[tuple[Label, ...] | None, ...]


class Form(Protocol):
    """How to make something of a library out of arrays; picklable, since results hold one."""

    def build(self, values: NDArray[Any], replaced: Coords) -> Any:
        """The values as the library has them.

        Args:
            values: In the order of the slice that the form was read from.
            replaced: Labels of the modes which have others than that slice; None where they are its own.
        """


@dataclass(frozen=True, eq=False)
class Parsed:
    """A labelled slice as it came.

    Attributes:
        values: Numbers, NaN where missing.
        dims: Name of every mode; None where it has none.
        coords: Labels along every mode; None where it has none.
        form: The way back.
    """

    values: Any
    dims: tuple[str | None, ...]
    coords: Coords
    form: Form


@dataclass(frozen=True, eq=False)
class Way:
    """From the order of the stream back to that of a slice.

    Attributes:
        axes: For every mode of the slice, which mode of the stream it is.
        orders: For every mode of the slice, where its entries stand in the stream; None where in the same place, or
            where labels are missing.
        replaced: The stream's labels of modes in which the slice lacks some; None where it lacks none.
        form: Of the slice.
    """

    axes: tuple[int, ...]
    orders: tuple[NDArray[np.int64] | None, ...]
    replaced: Coords
    form: Form

    def back(self, values: NDArray[Any]) -> Any:
        """An array of the stream as the slice was."""
        values = values.transpose(self.axes)
        for axis, order in enumerate(self.orders):
            if order is not None:
                values = np.take(values, order, axis)
        return self.form.build(values, self.replaced)


def placed(given: Parsed, labels: Labels | None, shape: tuple[int, ...] | None) -> tuple[NDArray[Any], Labels, Way]:
    """Put a slice in the order of its stream.

    Args:
        given: The slice.
        labels: Of the stream; None if it has none so far.
        shape: Of the stream; None before its first slice.

    Returns:
        The values in that order, the labels of the stream from now on, and the way back.

    Raises:
        ValueError: Its modes or labels are not those of the stream.
    """
    axes = axes_of(given.dims, labels)
    mode_of = np.argsort(axes)  # for every mode of the stream, which of the slice's it is
    values = np.asarray(given.values).transpose(mode_of)
    orders: list[NDArray[np.int64] | None] = [None] * len(axes)
    replaced: list[tuple[Label, ...] | None] = [None] * len(axes)
    dims, coords = [], []
    for mode, own in enumerate(mode_of):
        dim = labels.dims[mode] if labels is not None else given.dims[own] or f"mode_{mode + 1}"
        known = None if labels is None else labels.coords[mode]
        mine = given.coords[own]
        dims.append(dim)
        coords.append(mine if known is None else known)
        if mine is None or mine == known:
            continue
        check_distinct(dim, mine)
        if known is None or labels is None:
            continue
        order = _order(dim, mine, known, labels.positions[mode] or {})
        held = labels.held[mode]
        if len(mine) < len(known):
            values = _put(values, mode, order, len(known))
            all_there = held is not None and len(mine) == len(held)
            orders[own] = order if all_there else held
            replaced[own] = None if all_there else known if held is None else tuple(known[place] for place in held)
        else:
            values = np.take(values, np.argsort(order), mode)
            orders[own] = order
    made = labels if labels is not None and labels.coords == tuple(coords) else Labels(_distinct(dims), tuple(coords))
    if shape is None:
        made.check(values.shape)
    return values, made, Way(tuple(axes), tuple(orders), tuple(replaced), given.form)


def axes_of(dims: tuple[str | None, ...], labels: Labels | None) -> list[int]:
    """For every mode of the slice, which mode of the stream it is: by name, or by position where names are missing."""
    if labels is None:
        return list(range(len(dims)))
    expected = ", ".join(labels.dims)
    if len(dims) != len(labels.dims):
        got = ", ".join(str(dim) for dim in dims)
        raise ValueError(
            f"x must have the modes {expected} of the slices before it, got {got}: give one slice, without time."
        )
    if None in dims or all(dim.startswith("mode_") for dim in labels.dims):
        return list(range(len(dims)))
    if sorted(map(str, dims)) != sorted(labels.dims):
        got = ", ".join(map(str, dims))
        raise ValueError(
            f"x must have the modes {expected} of the slices before it, got {got}: rename them, or start a new model."
        )
    return [labels.dims.index(str(dim)) for dim in dims]


def _order(
    dim: str, mine: tuple[Label, ...], known: tuple[Label, ...], positions: dict[Label, int]
) -> NDArray[np.int64]:
    """Where the labels of a slice stand in the stream."""
    unknown = [label for label in mine if label not in positions]
    if unknown:
        few = ", ".join(map(shown, unknown[:3])) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
        raise ValueError(
            f"x has labels of {dim} that are not among the {len(known)} of the stream, {few}: leave them out, or start "
            "a new model that grows (undertow.Tracker(grow=True)), or is given all labels first (model.labels = {...})."
        )
    return np.array([positions[label] for label in mine], np.int64)


def _put(values: NDArray[Any], axis: int, order: NDArray[np.int64], size: int) -> NDArray[Any]:
    """With NaN for the labels that the slice lacks."""
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    full = np.full(shape, np.nan, kind)
    np.moveaxis(full, axis, 0)[order] = np.moveaxis(values, axis, 0)
    return full


def _distinct(dims: list[str]) -> tuple[str, ...]:
    if len(set(dims)) < len(dims):
        raise ValueError(f"modes must have different names, got {', '.join(dims)}: rename one.")
    return tuple(dims)
