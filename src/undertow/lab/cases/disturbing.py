"""What may happen to any stream: a bad first slice, an offset, slices of nothing, a slice or a row that is off."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from undertow.lab.cases.case import Bools, Data, Floats

First = Literal["zeros", "nothing", "garbage"]
Off = Literal["shifted", "doubled", "noise"]

GARBAGE = 1e3
"""Size of a garbage slice over that of the stream."""
SHIFT = 10.0
"""What a shifted slice has too much, in units of the stream's size."""


def with_first(data: Data, kind: First, seed: int) -> Data:
    """The stream with one more slice before it, which nobody is scored on.

    Args:
        data: the stream.
        kind: "zeros", "nothing" (no entry observed) or "garbage" (normal draws, a thousand times as large).
        seed: of the garbage.
    """
    first = np.zeros(data.shape)
    if kind == "nothing":
        first[:] = np.nan
    elif kind == "garbage":
        first = GARBAGE * size(data.values) * np.random.default_rng(seed).standard_normal(data.shape)
    blank = np.full(data.shape, np.nan)
    return replace(
        data,
        values=np.concatenate([first[np.newaxis], data.values]),
        truth=np.concatenate([blank[np.newaxis], data.truth]),
        clean=np.concatenate([blank[np.newaxis], data.clean]),
        corrupted=None if data.corrupted is None else np.concatenate([np.ones((1, *data.shape), bool), data.corrupted]),
        burn_in=data.burn_in + 1,
    )


def without_slices(data: Data, fraction: float, seed: int) -> tuple[Data, Bools]:
    """The stream with nothing observed in some of its slices, never in the first, and which these are, (T,)."""
    empty = np.random.default_rng(seed).random(len(data)) < fraction
    empty[0] = False
    values = data.values.copy()
    values[empty] = np.nan
    return replace(data, values=values), empty


def with_slice_off(data: Data, at: int, kind: Off, seed: int) -> Data:
    """The stream with one slice off in every entry.

    Args:
        data: the stream.
        at: the slice.
        kind: "shifted" (by ten times the stream's size), "doubled", or "noise" (normal draws of the stream's size
            in place of everything).
        seed: of the noise.
    """
    values, corrupted = data.values.copy(), np.zeros(data.values.shape, bool)
    shown = ~np.isnan(values[at])
    if kind == "shifted":
        values[at] += SHIFT * size(data.values)
    elif kind == "doubled":
        values[at] *= 2
    else:
        noise = size(data.values) * np.random.default_rng(seed).standard_normal(data.shape)
        values[at] = np.where(shown, noise, np.nan)
    corrupted[at] = True
    return replace(data, values=values, corrupted=corrupted)


def with_row_at_zero(data: Data, row: int, first: int, last: int) -> Data:
    """The stream with one index of the first mode at zero in slices first..last − 1, wherever it was observed."""
    values, corrupted = data.values.copy(), np.zeros(data.values.shape, bool)
    values[first:last, row] *= 0.0
    corrupted[first:last, row] = True
    return replace(data, values=values, corrupted=corrupted)


def size(values: Floats) -> float:
    """Root mean square of what was observed."""
    return float(np.sqrt(np.nanmean(values**2)))
