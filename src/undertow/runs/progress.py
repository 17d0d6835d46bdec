"""How a run is going, and how it went."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

_WINDOW = 50  # slices over which the speed is taken


@dataclass(frozen=True)
class Progress:
    """A run after one more slice was written.

    Attributes:
        slices: slices in all, those of earlier runs of the same store included.
        length: how many there will be, where the source knows.
        slices_per_second: over the last slices; 0 before there is anything to measure.
        rank: of this slice.
        noise_std: of this slice.
        outlier_rate: fraction of the observed entries of this slice that were flagged.
        safe: slices that a kill now could not take away.
        events: what is wrong in this slice beyond single entries, in words; "" if nothing.
    """

    slices: int
    length: int | None
    slices_per_second: float
    rank: int
    noise_std: float
    outlier_rate: float
    safe: int
    events: str = ""


@dataclass(frozen=True)
class RunSummary:
    """How a run ended.

    Attributes:
        store: its folder.
        slices: slices in the store.
        new_slices: of these, slices of this run.
        complete: whether the stream has ended; False where ``limit`` stopped the run.
        alerts: alerts of this run.
        rank: of the last slice; None if there was no new slice.
        noise_std: of the last slice; None if there was no new slice.
        flags: what the model flagged, by status code, and in how many slices.
        events: what was wrong beyond single entries, the newest of this run; all are in the store.
        incidents: how many were opened, or went on, in this run.
        open_incidents: how many last at its end.
        false_alarms: rate of false incidents that was accepted; None if none were looked for.
        believed_after: slices after which a lasting change is believed; None where chance decides, and for `RobustCP`.
        newest_incidents: the newest of them in words; all are in the store.
        notices: what was odd about the source, or about resuming.
        seconds: wall-clock time.
    """

    store: Path
    slices: int
    new_slices: int
    complete: bool
    alerts: int
    rank: int | None
    noise_std: float | None
    flags: dict[str, int]
    events: tuple[str, ...]
    incidents: int
    open_incidents: int
    false_alarms: str | None
    believed_after: int | None
    newest_incidents: tuple[str, ...]
    notices: tuple[str, ...]
    seconds: float


class Speed:
    """Slices per second over the last slices."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_WINDOW)

    def tick(self) -> float:
        """Count one more slice."""
        self._times.append(time.monotonic())
        passed = self._times[-1] - self._times[0]
        return (len(self._times) - 1) / passed if passed > 0 else 0.0
