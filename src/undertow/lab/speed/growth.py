"""Growth: time of one sweep and memory of one step along each axis, beside the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.lab.reporter import Reporter
from undertow.lab.speed.axes import Axis
from undertow.lab.speed.device import let_programs_go
from undertow.lab.speed.timing import FEW, sweep_seconds, time_slices, warm_up
from undertow.lab.speed.workload import Workload

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
        workload = axis.at(size)
        key = repr(
            (workload.make, workload.shape, workload.window, workload.max_rank, workload.observed, workload.settings)
        )
        if key not in known:  # the axes cross at the base
            reporter.start(f"growth with {axis.name} {size:g}", workload.window + 1)
            known[key] = point(workload, reporter)
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
        "time_slope_end": slope(sizes[-2:], seconds[-2:]),
        "time_slope_formula": slope(sizes, work),
        "work": work,
        "needed": needed,
    }
    if record["bytes"] is not None:
        record |= {"bytes_slope": slope(sizes, memory), "bytes_slope_formula": slope(sizes, needed)}
    return record


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent b of a power law, value ≈ a · sizeᵇ, by least squares on logarithms.

    Example:
        >>> round(slope([1, 2, 4], [3, 12, 48]), 6)
        2.0
    """
    if len(sizes) < 2:
        raise ValueError(f"sizes must be two or more, got {len(sizes)}: a slope needs a line")
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(values, dtype=float))
    x = x - x.mean()
    return float(x @ y / (x @ x))


def point(workload: Workload, reporter: Reporter) -> Point:
    """Seconds of a sweep and bytes of a step. Few sweeps are enough to fill the window: cost does not depend on fit."""
    first = workload.window + 1  # the first slot of every turn tries to add and to prune components
    slices = workload.source(workload, first + _SLICES, None)
    subject = workload.make(workload, slices).pinned(FEW)
    warm_up(subject, first, reporter.tick)
    seconds = sweep_seconds(subject, first, _SLICES, _REPETITIONS, _LIMIT)
    if seconds is None:  # sweeps cannot be set: the time of a step stands for them
        step = time_slices(subject, slices, first, _SLICES, _REPETITIONS, _LIMIT)
        seconds = step.seconds / (step.iterations or 1)
    return seconds, subject.memory()
