"""Timing: warm steps only, every slice several times from the same state, the minimum of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median

from undertow.bench.stream import Stream
from undertow.bench.subject import Subject


@dataclass(frozen=True)
class Timing:
    """What was measured.

    seconds      of one feed: mean over slices of the minimum over repetitions
    iterations   sweeps of one feed, mean over slices; None for methods without
    error        median over slices of the relative error; None if the method told nothing or failed
    slices       timed
    repetitions  of each
    """

    seconds: float
    iterations: float | None
    error: float | None
    slices: int
    repetitions: int


def warm_up(subject: Subject, slices: int, tick: Callable[[], None] = lambda: None) -> None:
    """Fill the window; everything is compiled afterwards."""
    for t in range(slices):
        subject.warm(t)
        tick()


def measure(
    subject: Subject, stream: Stream, first: int, slices: int, repetitions: int, limit: float = math.inf
) -> Timing:
    """Time slices `first`, `first` + 1, …, one pass after the other; the subject is left as it was.

    Passes, and not repetitions in a row, so that a disturbance does not hit all repetitions of one slice. Nothing new
    is begun when `limit` seconds have passed, but one slice is always timed.
    """
    begin = time.perf_counter()
    best: list[float] = []
    sweeps: list[int] = []
    errors: list[float] = []
    passes = 0
    while passes < repetitions and (passes == 0 or time.perf_counter() - begin < limit):
        runner = subject.snapshot()
        for place in range(slices):
            start = time.perf_counter()
            if start - begin > limit and place > 0:
                break
            iterations = runner.feed(first + place)
            seconds = time.perf_counter() - start
            if passes > 0 and place < len(best):
                best[place] = min(best[place], seconds)
            elif passes == 0:
                best.append(seconds)
                sweeps += [] if iterations is None else [iterations]
                low_rank = runner.low_rank()
                errors += [] if low_rank is None else [stream.error(low_rank, first + place)]
        slices = min(slices, len(best))
        passes += 1
    error = median(errors) if errors else math.nan
    return Timing(
        fmean(best),
        fmean(sweeps) if sweeps else None,
        error if math.isfinite(error) else None,
        len(best),
        passes,
    )
