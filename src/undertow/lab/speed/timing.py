"""Timing: warm steps only, every slice several times from the same state, the minimum of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median

from undertow.lab.speed.slices import Floats, Slices
from undertow.lab.speed.subject import Subject

FEW, MANY = 3, 9
"""Sweeps of the two kinds of steps whose difference is the time of a sweep."""


@dataclass(frozen=True)
class Timing:
    """What was measured.

    Attributes:
        seconds: of one feed: mean over slices of the minimum over repetitions.
        iterations: sweeps of one feed, mean over slices; None for methods without.
        error: median over slices of the relative error; None if the method has no low rank or failed.
        slices: timed.
        repetitions: of each.
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


def time_slices(
    subject: Subject, data: Slices, first: int, slices: int, repetitions: int, limit: float = math.inf
) -> Timing:
    """Time slices `first`, `first` + 1, …; the subject is left as it was."""
    feeds, passes = timed(subject, first, slices, repetitions, limit)
    sweeps = [feed.iterations for feed in feeds if feed.iterations is not None]
    errors = [data.error(feed.low_rank, t) for t, feed in enumerate(feeds, first) if feed.low_rank is not None]
    error = median(errors) if errors else math.nan
    return Timing(
        fmean(feed.seconds for feed in feeds),
        fmean(sweeps) if sweeps else None,
        error if math.isfinite(error) else None,
        len(feeds),
        passes,
    )


@dataclass
class Feed:
    """One slice: the least seconds over repetitions, the sweeps, and the low rank."""

    seconds: float
    iterations: int | None
    low_rank: Floats | None


def timed(subject: Subject, first: int, slices: int, repetitions: int, limit: float) -> tuple[list[Feed], int]:
    """Each slice, and how often all of them were repeated: one pass after the other.

    Passes, and not repetitions in a row, so that a disturbance does not hit all repetitions of one slice. Nothing new
    is begun when `limit` seconds have passed, but one slice is always timed.
    """
    begin = time.perf_counter()
    feeds: list[Feed] = []
    passes = 0
    while passes < repetitions and (passes == 0 or time.perf_counter() - begin < limit):
        runner = subject.snapshot()
        for position in range(slices):
            start = time.perf_counter()
            if start - begin > limit and position > 0:
                break
            iterations = runner.feed(first + position)
            seconds = time.perf_counter() - start
            if passes == 0:
                feeds.append(Feed(seconds, iterations, runner.low_rank()))
            else:
                feeds[position].seconds = min(feeds[position].seconds, seconds)
        slices = len(feeds)
        passes += 1
    return feeds, passes


def sweep_seconds(subject: Subject, first: int, slices: int, repetitions: int, limit: float) -> float | None:
    """Steps of many sweeps less steps of few, over the difference: what happens once in a step drops out.

    The median over slices, so that one in which components were added or pruned does not count. None where sweeps
    cannot be set, or cost less than the clock resolves.
    """
    few, many = (timed(subject.pinned(count), first, slices, repetitions, limit)[0] for count in (FEW, MANY))
    gains = [
        (long.seconds - short.seconds) / more
        for short, long in zip(few, many, strict=False)
        if (more := (long.iterations or 0) - (short.iterations or 0)) >= 1
    ]
    gain = median(gains) if gains else 0
    return gain if gain > 0 else None
