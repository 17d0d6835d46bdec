"""A track: what one method said about every slice of a stream, stacked over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Tick = Callable[[], None]


@dataclass(frozen=True)
class Track:
    """Answers to a whole stream. Arrays are (T, *shape) unless said otherwise; None where a method has no such answer.

    low_rank     the slices, gaps filled
    prediction   each slice before it was seen, NaN where nothing was known yet
    std          predictive standard deviation
    probability  that an entry is an outlier
    score        larger = more outlying
    rank         components in use, NaN where a method has none, (T,)
    seconds      spent on each slice, (T,)
    troubles     slices that did not go well, "slice 3: diverged"
    """

    low_rank: Floats
    prediction: Floats | None
    std: Floats | None
    probability: Floats | None
    score: Floats | None
    rank: Floats
    seconds: Floats
    troubles: tuple[str, ...]

    @property
    def seconds_per_slice(self) -> float:
        """The median, the first slices left out: they pay for compilation."""
        return float(np.median(self.seconds[min(3, len(self.seconds) - 1) :]))


class Recorder:
    """Collects a track slice by slice."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[Floats | None]] = {
            name: [] for name in ("low_rank", "prediction", "std", "probability", "score")
        }
        self._rank: list[float] = []
        self._seconds: list[float] = []
        self._troubles: list[str] = []

    def add(
        self,
        seconds: float,
        low_rank: Floats,
        *,
        prediction: Floats | None = None,
        std: Floats | None = None,
        probability: Floats | None = None,
        score: Floats | None = None,
        rank: float | None = None,
        trouble: str | None = None,
    ) -> None:
        """Write down what was said about the next slice."""
        given = {"low_rank": low_rank, "prediction": prediction, "std": std, "probability": probability, "score": score}
        for name, array in given.items():
            self._arrays[name].append(array)
        self._rank.append(np.nan if rank is None else float(rank))
        self._seconds.append(seconds)
        if trouble is not None:
            self._troubles.append(f"slice {len(self._seconds) - 1}: {trouble}")

    def track(self) -> Track:
        """Everything so far."""
        low_rank = self._stacked("low_rank")
        if low_rank is None:
            raise ValueError("a track needs at least one slice: follow a stream first")
        return Track(
            low_rank=low_rank,
            prediction=self._stacked("prediction"),
            std=self._stacked("std"),
            probability=self._stacked("probability"),
            score=self._stacked("score"),
            rank=np.array(self._rank),
            seconds=np.array(self._seconds),
            troubles=tuple(self._troubles),
        )

    def _stacked(self, name: str) -> Floats | None:
        held = self._arrays[name]
        given = next((array for array in held if array is not None), None)
        if given is None:
            return None
        # Half the memory, and seven digits are more than any answer is worth.
        blank = np.full(given.shape, np.nan, dtype=np.float32)
        return np.stack([blank if array is None else array.astype(np.float32) for array in held])
