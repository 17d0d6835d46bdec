"""Labels that come and go: places along a mode, some of them free.

A label that is new takes a free place. Where there is none the mode grows to the next size of a ladder, so that
programs are compiled for few sizes. Who has been silent for long leaves its place to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.labels.names import FREE, Label, Labels, check_distinct, is_free, shown
from undertow.inputs.labels.placing import axes_of
from undertow.inputs.labels.slices import parsed
from undertow.ladder import rung

MOST_LABELS = 4096
"""Places that a mode grows to."""
SILENT = 2016
"""Slices after which a label that was not observed in them is retired: of five minutes each, a week."""


@dataclass(frozen=True)
class Grown:
    """Labels after some came or went.

    Attributes:
        labels: Of the stream.
        places: For every mode, where what is at each place stood before; −1 for what is new.
    """

    labels: Labels
    places: tuple[NDArray[np.int64], ...]

    @property
    def changed(self) -> bool:
        """Whether anything but a name has changed."""
        return any((where < 0).any() for where in self.places)


def joined(labels: Labels, shape: Sequence[int], new: Sequence[Sequence[Label]], most: int = MOST_LABELS) -> Grown:
    """With labels that are new, each once.

    Args:
        labels: Of the stream so far.
        shape: Of its slices.
        new: For every mode.
        most: Places that a mode may grow to.

    Raises:
        ValueError: They are more than a mode may grow to.
    """
    coords: list[tuple[Label, ...] | None] = []
    places: list[NDArray[np.int64]] = []
    for dim, known, size, more in zip(labels.dims, labels.coords, shape, new, strict=True):
        if known is None or not more:
            coords.append(known)
            places.append(np.arange(size))
            continue
        free = [place for place, label in enumerate(known) if is_free(label)]
        needed = len(known) + max(len(more) - len(free), 0)
        if needed > max(most, len(known)):
            raise ValueError(
                f"x has {len(more):,} labels of {dim} that are new, {shown(more[0])} among them, and {dim} has room "
                f"for {most:,}: leave some out, or look whether they are labels at all."
            )
        size = len(known) if needed == len(known) else min(rung(needed), most)
        made = [*known, *(FREE(place) for place in range(len(known), size))]
        where = np.concatenate([np.arange(len(known)), np.full(size - len(known), -1)])
        for place, label in zip([*free, *range(len(known), size)], more, strict=False):
            made[place] = label
        coords.append(tuple(made))
        places.append(where)
    return Grown(replace(labels, coords=tuple(coords)), tuple(places))


def unknown(x: Any, labels: Labels) -> list[tuple[Label, ...]] | None:
    """Labels of a slice, for every mode of its stream, that the stream does not know; None where it has no labels."""
    given = parsed(x)
    if given is None:
        return None
    found: list[tuple[Label, ...]] = [()] * len(labels.dims)
    for mode, mine in zip(axes_of(given.dims, labels), given.coords, strict=True):
        positions = labels.positions[mode]
        if mine is not None and positions is not None:
            check_distinct(labels.dims[mode], mine)
            found[mode] = tuple(label for label in mine if label not in positions)
    return found


def left(labels: Labels, silent: Sequence[NDArray[np.bool_]]) -> Grown:
    """Without labels that are retired: their places are free, and know nothing of who had them.

    Args:
        labels: Of the stream so far.
        silent: For every mode, at which places.
    """
    coords: list[tuple[Label, ...] | None] = []
    places: list[NDArray[np.int64]] = []
    for known, gone in zip(labels.coords, silent, strict=True):
        if known is None:
            coords.append(None)
            places.append(np.arange(len(gone)))
            continue
        held = np.array([not is_free(label) for label in known])
        coords.append(tuple(FREE(n) if gone[n] else label for n, label in enumerate(known)))
        places.append(np.where(gone & held, -1, np.arange(len(known))))
    return Grown(replace(labels, coords=tuple(coords)), tuple(places))
