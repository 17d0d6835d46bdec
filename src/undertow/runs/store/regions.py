"""Regions: entries of a picture that are flagged and touch each other, as one alert each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def regions(flagged: NDArray[np.bool_], modes: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Positions of the entries of each region, one index array per mode; regions in the order of their first entries.

    Two entries touch if they are neighbours in one of the first ``modes`` modes (so in a picture there are four), or
    differ in later ones alone (the colours of one pixel).

    Connected components by passing on the smallest number: every entry takes that of its neighbours, then that of
    whose number it has, until nothing changes.
    """
    picture = flagged.any(axis=tuple(range(modes, flagged.ndim)))
    places = np.flatnonzero(picture)
    flat = np.full(picture.size, -1, np.int64)
    flat[places] = np.arange(places.size)
    number = flat.reshape(picture.shape)
    pairs = [_neighbours(number, mode) for mode in range(modes)]
    one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
    label = np.arange(places.size)
    while True:
        before = label
        least = np.minimum(label[one], label[other])
        label = label.copy()
        np.minimum.at(label, before[one], least)
        np.minimum.at(label, before[other], least)
        label = label[label]
        if np.array_equal(label, before):
            break
    of_entry = np.full(picture.size, -1, np.int64)
    of_entry[places] = label
    found = np.nonzero(flagged)
    mine = of_entry.reshape(picture.shape)[found[:modes]]
    order = np.argsort(mine, kind="stable")
    starts = np.flatnonzero(np.diff(mine[order], prepend=-1))
    for part in np.split(order, starts[1:]) if order.size else []:
        yield tuple(where[part] for where in found)


def _neighbours(number: NDArray[np.int64], mode: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers of flagged entries and of those that follow them in one mode, where both are flagged."""
    ahead = np.moveaxis(number, mode, 0)
    one, other = ahead[:-1].ravel(), ahead[1:].ravel()
    both = (one >= 0) & (other >= 0)
    return one[both], other[both]
