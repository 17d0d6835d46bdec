"""One slice of a batch of trackers: the programs of `batch` one after the other, with seasons and forecasts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.engine import batching
from undertow.model.settings import Settings
from undertow.tracker import ahead_together, batch, season_together
from undertow.tracker.ahead import Ahead
from undertow.tracker.answering import Answer
from undertow.tracker.batch import Arrays
from undertow.tracker.phases import Found
from undertow.tracker.season import Season

Memory = tuple[list[Season | None], list[Ahead]]
"""Seasons and forecasts by position; no season where the stream has none. Others beyond the last have none either."""


class Learned(NamedTuple):
    """After a slice, by position.

    Attributes:
        arrays: Of the trackers.
        answer: About the slice.
        found: What else is reported.
        said: What each predictor said of it (M, K, n).
        learning: Whose CP models have learned.
        unused: Entries that these did not learn from.
        memory: Seasons and forecasts, if there are any.
    """

    arrays: Arrays
    answer: Answer
    found: Found
    said: Array
    learning: NDArray[np.bool_]
    unused: Array
    memory: Memory | None


def learned(
    before: Arrays,
    relative: NDArray[Any],
    mask: NDArray[np.bool_],
    scale: NDArray[np.int32],
    framed: NDArray[np.bool_],
    present: NDArray[np.bool_],
    steps: NDArray[np.float32],
    settings: tuple[Settings, ...],
    shape: tuple[int, ...],
    memory: Memory | None,
) -> Learned:
    """The next slice of those who are present, by position.

    Args:
        before: As they were.
        relative: Values in units of each stream (M, n).
        mask: True where observed (M, n).
        scale: Of each stream.
        framed: Whose frame is known: the CP models of the others do not learn.
        present: Who has a slice.
        steps: Usual steps between the slice before and this one.
        settings: Of the CP models.
        shape: Of a slice.
        memory: Of those who are present, if they have any.
    """
    size, entries = relative.shape
    expected = None if memory is None else season_together.predicted(memory[0], entries, size)
    judged = batch.judge_all(before, relative, mask, scale, settings, expected, steps, shape)
    learning = present & framed & mask.any(axis=1)
    pairs = [
        batching.advance_all(core, judged.values, judged.use, learning, own)
        for core, own in zip(before.models, settings, strict=True)
    ]
    models, reports = (tuple(part) for part in zip(*pairs, strict=True))
    fitted, seasonal, plain = None, None, None
    if memory is not None:
        plain, weights = np.asarray(judged.values).reshape(size, entries), np.asarray(judged.verdict.learn)
        fitted, seasonal = season_together.fitted(memory[0], plain, weights, entries, size)
    after, answer, found, said = batch.learn_all(
        before, models, reports, judged, mask, scale, learning, present, seasonal
    )
    if memory is not None and fitted is not None and plain is not None:
        spread = np.asarray(before.core.law.spread)
        memory = ahead_together.remembered(
            memory[1], fitted, spread, judged.verdict, plain, mask, answer, after, scale, size
        )
    return Learned(after, answer, found, said, learning, judged.unused, memory)
