"""The names of the modes of a stream, and the labels along each: kept with the model, in memory and in files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Label = Any
"""A text, a number, a `numpy.datetime64` or `timedelta64`, or a tuple of these; what else there is becomes a text."""

ARRAY = "labels"
"""What they are called among the arrays of a file."""


@dataclass(frozen=True)
class FREE:
    """Stands where a place along a mode has no label, so that a new one finds room; its number tells it from others."""

    number: int

    def __str__(self) -> str:
        return f"(free {self.number})"


def is_free(label: Label) -> bool:
    """Whether a place has no label."""
    return isinstance(label, FREE)


@dataclass(frozen=True, eq=False)
class Labels:
    """What the modes of a stream are called.

    Attributes:
        dims: Name of every mode; `mode_1`, `mode_2`, … where it has none.
        coords: Labels along every mode, in the order of the arrays; None where it has none.

    Examples:
        >>> labels = Labels(("src", "dst"), (("A", "B"), None))
        >>> labels.of((1, 7))
        {'src': 'B', 'dst': 7}
    """

    dims: tuple[str, ...]
    coords: tuple[tuple[Label, ...] | None, ...]

    def of(self, index: Sequence[int]) -> dict[str, Label]:
        """The labels of one entry, by mode; its index where a mode has none."""
        pairs = zip(self.dims, self.coords, index, strict=True)
        return {dim: int(i) if labels is None else labels[i] for dim, labels, i in pairs}

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether slices of this shape can have them."""
        sizes = [None if labels is None else len(labels) for labels in self.coords]
        return len(sizes) == len(shape) and all(n in (None, size) for n, size in zip(sizes, shape, strict=True))

    @cached_property
    def held(self) -> tuple[NDArray[np.int64] | None, ...]:
        """Places of every mode that have a label; None where all have, or where the mode has none."""
        found = []
        for labels in self.coords:
            free = labels is not None and any(map(is_free, labels))
            found.append(np.flatnonzero([not is_free(one) for one in labels or ()]) if free else None)
        return tuple(found)

    def known(self) -> Labels:
        """Without the places that are free."""
        pairs = zip(self.coords, self.held, strict=True)
        coords = (one if held is None or one is None else tuple(one[place] for place in held) for one, held in pairs)
        return self if not any(held is not None for held in self.held) else Labels(self.dims, tuple(coords))

    def check(self, shape: Sequence[int]) -> None:
        """Refuse slices of another shape."""
        if not self.fits(shape):
            raise ValueError(
                f"x must have one entry per label, {self.sizes()}, got shape {tuple(shape)}: "
                "give slices of that shape, or other labels before the first slice."
            )

    def sizes(self) -> str:
        """Modes with their numbers of labels, in words."""
        pairs = zip(self.dims, self.coords, strict=True)
        return ", ".join(f"{dim} {'(any)' if labels is None else len(labels)}" for dim, labels in pairs)

    @cached_property
    def positions(self) -> tuple[dict[Label, int] | None, ...]:
        """Where each label stands along its mode."""
        return tuple(None if labels is None else {label: i for i, label in enumerate(labels)} for labels in self.coords)

    @cached_property
    def _content(self) -> NDArray[np.uint8]:
        coords = [None if labels is None else [_to_json(label) for label in labels] for labels in self.coords]
        text = json.dumps({"dims": self.dims, "coords": coords})
        return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and (self.dims, self.coords) == (other.dims, other.coords)

    def __hash__(self) -> int:
        return hash((self.dims, self.coords))


def with_labels(checkpoint: tuple[dict[str, Any], dict[str, Any]], labels: Labels | None) -> Any:
    """Header and arrays of a file, and the labels among them."""
    header, arrays = checkpoint
    return header, arrays if labels is None else {**arrays, ARRAY: labels._content}


def labels_in(checkpoint: tuple[dict[str, Any], dict[str, Any]], name: str) -> Labels | None:
    """What `with_labels` was given; `name` is what messages call the checkpoint.

    Raises:
        ValueError: They do not fit the slices.
    """
    header, arrays = checkpoint
    if ARRAY not in arrays:
        return None
    try:
        content = json.loads(np.asarray(arrays[ARRAY], np.uint8).tobytes().decode("utf-8", "surrogatepass"))
        coords = tuple(None if one is None else tuple(map(_from_json, one)) for one in content["coords"])
        labels = Labels(tuple(map(str, content["dims"])), coords)
        if len(labels.dims) != len(coords) or not labels.fits(header["shape"]):
            raise ValueError(f"for slices of {labels.sizes()}")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"checkpoint {name} holds labels that do not fit it ({error}): write it again.") from error
    return labels


def named_labels(given: Any) -> Labels | None:
    """Labels as a user gives them.

    Args:
        given: Mapping from the name of a mode to its labels, or to None; `Labels`; or None.

    Raises:
        TypeError: It is something else.
        ValueError: Labels of a mode are not all different.
    """
    if given is None or isinstance(given, Labels):
        return given
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"labels must map the name of each mode to its labels, got {given!r}.")
    coords = []
    for dim, labels in given.items():
        if isinstance(labels, str) or not (labels is None or isinstance(labels, Iterable)):
            raise TypeError(f"labels of {dim} must be a list, or None, got {labels!r}.")
        coords.append(None if labels is None else plain_labels(labels))
        if coords[-1] is not None:
            check_distinct(str(dim), coords[-1])
    return Labels(tuple(map(str, given)), tuple(coords))


def plain_labels(labels: Any) -> tuple[Label, ...]:
    """Labels of any library as plain ones that compare as they did there."""
    array = labels if isinstance(labels, np.ndarray) else None
    found = list(array) if array is not None and array.dtype.kind in "mM" else _listed(labels)
    if not {type(label) for label in found} <= {str, int}:
        found = [_plain(label) for label in found]
    return tuple(found)


def check_distinct(dim: str, labels: tuple[Label, ...]) -> None:
    """Refuse labels of which two are the same, and missing ones."""
    if len(set(labels)) == len(labels):
        return
    seen: set[Label] = set()
    twice = next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
    raise ValueError(f"labels of {dim} must all be different, got {shown(twice)} twice: rename one, or combine them.")


def shown(label: Label) -> str:
    """A label in a message."""
    return str(label) if isinstance(label, (np.datetime64, np.timedelta64)) else repr(label)


def _listed(labels: Any) -> list[Any]:
    return list(labels.tolist()) if hasattr(labels, "tolist") else list(labels)


def _plain(label: Any) -> Label:
    if isinstance(label, np.generic) and not isinstance(label, (np.datetime64, np.timedelta64)):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(_plain(part) for part in label)
    if label is None or (isinstance(label, float) and math.isnan(label)) or str(label) in ("NaT", "<NA>"):
        raise ValueError(f"labels must not be missing, got {label}: name every row, or leave those without a name out.")
    if isinstance(label, (str, bool, int, float, np.datetime64, np.timedelta64)):
        return label
    return str(label)


def _to_json(label: Label) -> Any:
    if isinstance(label, tuple):
        return {"tuple": [_to_json(part) for part in label]}
    if is_free(label):
        return {"free": label.number}
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return {"dtype": label.dtype.str, "value": int(label.astype(np.int64))}
    return label


def _from_json(stored: Any) -> Label:
    if not isinstance(stored, dict):
        return _plain(stored)
    if "free" in stored:
        return FREE(int(stored["free"]))
    if "tuple" in stored:
        return tuple(map(_from_json, stored["tuple"]))
    dtype = np.dtype(stored["dtype"])
    if dtype.kind not in "mM":
        raise ValueError(f"labels hold {dtype}")
    return np.array(int(stored["value"]), np.int64).view(dtype)[()]
