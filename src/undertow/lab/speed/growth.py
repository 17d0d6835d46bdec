"""Growth: time of one sweep and memory of one step along each axis, beside the formula."""

from __future__ import annotations

from typing import Any

from undertow.lab.accuracy.reporter import Reporter
from undertow.lab.speed.axes import Axis
from undertow.lab.speed.case import Case
from undertow.lab.speed.device import let_programs_go
from undertow.lab.speed.slope import last_slope, slope
from undertow.lab.speed.timing import FEW, measure, sweep_seconds, warm_up

_SLICES, _REPETITIONS = 3, 40
_LIMIT = 3.0
"""Seconds for one kind of step: small sizes are repeated more often, since they are easily disturbed."""

Point = tuple[float, int | None]


def grow(axes: list[Axis], reporter: Reporter, quick: bool = False) -> list[dict[str, Any]]:
    """One record per axis: sizes, seconds per sweep, bytes, fitted slopes and those of the formula."""
    known: dict[str, Point] = {}
    return [_along(axis, reporter, known, quick) for axis in axes]


def _along(axis: Axis, reporter: Reporter, known: dict[str, Point], quick: bool) -> dict[str, Any]:
    sizes = axis.sizes[:-1] if quick else axis.sizes
    points = []
    for size in sizes:
        case = axis.at(size)
        key = repr((case.make, case.shape, case.window, case.max_rank, case.observed, dict(case.settings)))
        if key not in known:  # the axes cross at the base
            reporter.cell(f"growth with {axis.name} {size:g}", case.window + 1)
            known[key] = point(case, reporter)
            let_programs_go()
        points.append(known[key])
        reporter.done()
    seconds = [time for time, _ in points]
    memory = [size for _, size in points if size is not None]
    work, needed = [axis.work(size) for size in sizes], [axis.bytes(size) for size in sizes]
    record = {
        "axis": axis.name,
        "title": axis.title,
        "sizes": list(sizes),
        "seconds": seconds,
        "bytes": memory if len(memory) == len(sizes) else None,
        "time_slope": slope(sizes, seconds),
        "time_slope_end": last_slope(sizes, seconds),
        "time_slope_formula": slope(sizes, work),
        "work": work,
        "needed": needed,
    }
    if record["bytes"] is not None:
        record |= {"bytes_slope": slope(sizes, memory), "bytes_slope_formula": slope(sizes, needed)}
    return record


def point(case: Case, reporter: Reporter) -> Point:
    """Seconds of a sweep and bytes of a step. Few sweeps are enough to fill the window: cost does not depend on fit."""
    first = case.window + 1  # the first slot of every turn looks for components to be born or to die
    stream = case.source(case, first + _SLICES, None)
    subject = case.make(case, stream).pinned(FEW)
    warm_up(subject, first, reporter.tick)
    seconds = sweep_seconds(subject, first, _SLICES, _REPETITIONS, _LIMIT)
    if seconds is None:  # sweeps cannot be set: the time of a step stands for them
        step = measure(subject, stream, first, _SLICES, _REPETITIONS, _LIMIT)
        seconds = step.seconds / (step.iterations or 1)
    return seconds, subject.memory()
