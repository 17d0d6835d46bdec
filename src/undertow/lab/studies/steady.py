"""What a tracker takes by default for a frame of generated video, once it is in its stride.

The first result, with whatever programs are kept; then, after a number of frames, two ways in turn: with results left
where they are, until the last of them is there; and host to host, with mean and outlier probability fetched one frame
behind. Frames after which a frame is reviewed (20, 40, 80, …) are best kept out of what is timed. Needs numpy and jax
only: `python -c "from undertow.lab.studies.steady import steady; print(steady((144, 176)))"`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import undertow as ut
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.lab.studies.video import Frame, frames

BEFORE, OBSERVED = 41, 0.5
HEADINGS = ("slice", "device", "first result, s", "left there, ms", "host to host, ms", "slowest call, ms")


@dataclass(frozen=True)
class Steady:
    """Seconds of one shape.

    Attributes:
        first: until the first result has been fetched.
        left: of a frame, results left on the device.
        fetched: of a frame, host to host.
        slowest: of all calls of `update` with results left, the longest.
    """

    first: float
    left: float
    fetched: float
    slowest: float


def steady(
    shape: tuple[int, ...],
    slices: int = 19,
    before: int = BEFORE,
    said: Callable[[str, float], None] = lambda what, seconds: None,
    ready: Callable[[], None] = lambda: None,
) -> Steady:
    """Time one shape.

    Args:
        shape: of a frame.
        slices: timed each way.
        before: frames before that.
        said: is called with every number as soon as it is known.
        ready: is called when the first of these frames have been learned.
    """
    stream, tracker = frames(shape, before + 2 * slices, OBSERVED, 0.02), ut.Tracker()
    begun = time.perf_counter()
    np.asarray(tracker.update(stream[0]).mean)
    first = time.perf_counter() - begun
    said("first result", first)
    for x in stream[1:before]:
        np.asarray(tracker.update(x).mean)
    ready()
    begun, calls = time.perf_counter(), [time.perf_counter()]
    for x in stream[before : before + slices]:
        result = tracker.update(x)
        calls.append(time.perf_counter())
    result.weights  # noqa: B018 - waits for all
    left = (time.perf_counter() - begun) / slices
    said("a frame, results left on the device", left)
    fetched = _host_to_host(tracker, stream[before + slices :]) / slices
    said("a frame, host to host", fetched)
    return Steady(first, left, fetched, float(np.diff(calls).max()))


def _host_to_host(tracker: ut.Tracker, stream: Iterable[Frame]) -> float:
    begun, last = time.perf_counter(), None
    for x in [*stream, None]:
        following: Any = None if x is None else tracker.update(x)
        if last is not None:
            last.mean, last.outlier_probability  # noqa: B018
        last = following
    return time.perf_counter() - begun


def table(shapes: Sequence[tuple[int, ...]], slices: int, reporter: Reporter) -> StudyTable:
    """One line for every shape; `slices` are timed each way."""
    made = StudyTable(f"A tracker after {BEFORE} frames, {OBSERVED:.0%} observed, mean of {slices}", HEADINGS)
    reporter.begin(len(shapes))
    for shape in shapes:
        one = steady(shape, slices)
        times = (1e3 * part for part in (one.left, one.fetched, one.slowest))
        device = jax.devices()[0].device_kind
        made.rows.append(("×".join(map(str, shape)), device, f"{one.first:.1f}", *(f"{part:.1f}" for part in times)))
        reporter.done()
    return made
