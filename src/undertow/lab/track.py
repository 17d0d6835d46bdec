"""A track: what one method answered about every slice of a case, stacked over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Tick = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a method says about one slice. Arrays have its shape; None where a method has no such answer.

    Attributes:
        seconds: spent on it, until the low rank is there.
        low_rank: the slice, gaps filled.
        prediction: the slice before it was seen.
        std: predictive standard deviation.
        probability: that an entry is an outlier.
        score: larger = more outlying.
        novelty: how unlike the whole past the slice is.
        rank: components in use.
        flag: what the method says went wrong, "" if nothing.
    """

    seconds: float
    low_rank: Floats
    prediction: Floats | None = None
    std: Floats | None = None
    probability: Floats | None = None
    score: Floats | None = None
    novelty: float | None = None
    rank: float | None = None
    flag: str = ""


@dataclass(frozen=True, eq=False)
class Track:
    """The answers to a whole case: arrays as in `Answer`, with time in front, in single precision."""

    low_rank: Floats
    prediction: Floats | None
    std: Floats | None
    probability: Floats | None
    score: Floats | None
    novelty: Floats
    rank: Floats
    seconds: Floats
    flags: tuple[str, ...]

    @property
    def seconds_per_slice(self) -> float:
        """The median, the first slices left out: they pay for compilation."""
        return float(np.median(self.seconds[min(3, len(self.seconds) - 1) :]))

    @property
    def flagged(self) -> list[str]:
        """The slices that did not go well, as "slice 3: diverged"."""
        return [f"slice {t}: {flag}" for t, flag in enumerate(self.flags) if flag]


def stack(answers: Iterable[Answer], tick: Tick = lambda: None) -> Track:
    """Follow a method to the end of its case; `tick` is called after every slice."""
    held = []
    for answer in answers:
        held.append(answer)
        tick()
    if not held:
        raise ValueError("a track needs at least one slice, got none: follow a case with data")
    low_rank, prediction, std, probability, score = (
        _stacked([getattr(answer, name) for answer in held])
        for name in ("low_rank", "prediction", "std", "probability", "score")
    )
    assert low_rank is not None  # every answer has one
    return Track(
        low_rank,
        prediction,
        std,
        probability,
        score,
        novelty=_numbers([answer.novelty for answer in held]),
        rank=_numbers([answer.rank for answer in held]),
        seconds=np.array([answer.seconds for answer in held]),
        flags=tuple(answer.flag for answer in held),
    )


def _numbers(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values])


def _stacked(arrays: list[Floats | None]) -> Floats | None:
    given = next((array for array in arrays if array is not None), None)
    if given is None:
        return None
    # Half the memory, and seven digits are more than any answer is worth.
    blank = np.full(given.shape, np.nan, dtype=np.float32)
    return np.stack([blank if array is None else array.astype(np.float32) for array in arrays])
