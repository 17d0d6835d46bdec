"""How a run is going, for whoever watches, and how it went."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

_WINDOW = 50  # slices over which the speed is taken


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a slice."""

    slices: int
    """Slices in all, those of earlier runs of the same store included."""
    length: int | None
    """How many there will be, where the source knows."""
    slices_per_second: float
    """Of late; 0 before there is anything to measure."""
    rank: int
    noise_std: float
    outlier_rate: float
    """Share of the observed entries of this slice that were flagged."""
    safe: int
    """Slices that a kill now could not take away."""


@dataclass(frozen=True)
class RunSummary:
    """How a run ended."""

    store: Path
    slices: int
    """Slices in the store."""
    new_slices: int
    """Of these, slices of this run."""
    complete: bool
    """Whether the stream has ended; False where `limit` stopped the run."""
    alerts: int
    """Alerts of this run."""
    rank: int | None
    """At the end; None if there was no new slice."""
    noise_std: float | None
    troubles: dict[str, int]
    """What the model noticed, and in how many slices."""
    notices: tuple[str, ...]
    """What was odd about the source, or about going on."""
    seconds: float


class Speed:
    """Slices per second over the last few slices."""

    def __init__(self) -> None:
        self._moments: deque[float] = deque(maxlen=_WINDOW)

    def tick(self) -> float:
        """One more slice."""
        self._moments.append(time.monotonic())
        passed = self._moments[-1] - self._moments[0]
        return (len(self._moments) - 1) / passed if passed > 0 else 0.0
