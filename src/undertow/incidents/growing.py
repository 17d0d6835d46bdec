"""Incidents of a stream whose modes get further rows: what is known of the others goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents import files
from undertow.incidents.watch import Incidents

OF_ROWS = ("row.", "bar.row")
OF_ALL = ("law", "turn", "slice.", "family.", "bar.slice", "silence.tail")
"""Arrays by the beginning of their names; all others are of entries."""


def grown(watch: Incidents, shape: Sequence[int], labels: Sequence[Sequence[Any] | None] | None = None) -> Incidents:
    """The same incidents in slices with further rows at the ends of their modes.

    Args:
        watch: So far; it stays as it is.
        shape: As many rows as before in every mode, or more.
        labels: As of `Incidents`.
    """
    made = Incidents(shape, labels, watch.false_alarms, watch._clock._given, watch.names.dims)
    header, arrays = files.packed(watch)
    fresh = files.packed(made)[1]
    entries = np.arange(math.prod(watch.shape)).reshape(watch.shape)
    kept = np.ravel_multi_index(np.unravel_index(entries.ravel(), watch.shape), made.shape)
    begins = np.cumsum((0, *made.shape[:-1]))
    rows = np.concatenate([begin + np.arange(size) for begin, size in zip(begins, watch.shape, strict=True)])
    for name, array in arrays.items():
        if not name.startswith(OF_ALL):
            where = rows if name.startswith(OF_ROWS) else kept
            arrays[name] = _moved(array, fresh[name], where, math.prod(made.shape)) if array.size else fresh[name]
    files.restore(made, {**header, "shape": list(made.shape)}, arrays)
    return made


def _moved(old: NDArray[Any], fresh: NDArray[Any], where: NDArray[np.intp], entries: int) -> NDArray[Any]:
    """`fresh`, or nothing where it holds no incidents yet, with what is known along the last axis."""
    found = np.array(fresh) if len(fresh) else np.zeros((len(old), entries), old.dtype)
    found[..., where] = old
    return found
