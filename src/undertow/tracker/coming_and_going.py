"""Labels of a stream that come and go: room for those that are new, none for those that were silent for long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from undertow.inputs.dense import Slice
from undertow.inputs.labels import growing
from undertow.inputs.labels.growing import Grown
from undertow.inputs.labels.names import Labels
from undertow.tracker.rearranging import rearranged
from undertow.tracker.state import Tracking


def coming_and_going(state: Tracking | None, labels: Labels | None, x: Any) -> tuple[Tracking | None, Labels | None]:
    """State and labels with room for the next slice.

    Args:
        state: None before the first slice.
        labels: None as long as there are none.
        x: The slice as it came.

    Raises:
        ValueError: It has more new labels than a mode may grow to.
    """
    if state is None or labels is None:
        return state, labels
    new = growing.unknown(x, labels)
    if state.heard:
        silent = [state.seen - one > growing.SILENT for one in state.heard]
        state, labels = _with(state, growing.left(labels, silent))
    if new is not None and any(new):
        state, labels = _with(state, growing.joined(labels, state.shape, new))
    return state, labels


def _with(state: Tracking, grown: Grown) -> tuple[Tracking, Labels]:
    return rearranged(state, grown.places) if grown.changed else state, grown.labels


def with_heard(after: Tracking, before: Tracking | None, given: Slice) -> Tracking:
    """With the rows that were observed in this slice."""
    modes = range(len(after.shape))
    heard = before.heard if before is not None and before.heard else [np.zeros(n, np.int64) for n in after.shape]
    seen = [given.mask.any(axis=tuple(other for other in modes if other != mode)) for mode in modes]
    now = (np.where(observed, after.seen, one) for observed, one in zip(seen, heard, strict=True))
    return replace(after, heard=tuple(now))
