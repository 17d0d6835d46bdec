"""What a source holds, for ``undertow inspect``: read from its header and its slices."""

from __future__ import annotations

import itertools
import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.sources.opening import open_stream
from undertow.sources.preparation.prepared import PreparedStream
from undertow.sources.silent import Silent
from undertow.sources.times import plain_time, usual_step


def describe(
    source: Any,
    *,
    slices: int | None = None,
    seconds: float = 10.0,
    check: Callable[[int, Any], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What a source holds, by name: what its stream says, and figures over its slices.

    Args:
        source: anything that `undertow.open_stream` takes, or an open stream.
        slices: number of slices to read at most; all if left out.
        seconds: after which no more are read.
        check: called with the number and the time of every slice, to refuse it.
        options: those of `undertow.open_stream`.

    Returns:
        ``format``, ``shape``, ``modes``, ``labels`` (by mode, where there are some), ``slices`` (their number, if
        known), ``times`` (name of the time axis), ``time_zone`` (of
        the source: times are in UTC then), ``first_time``, ``last_time`` and ``step`` (median difference)
        where they are known, ``missing`` (fraction of the entries), ``smallest``, ``largest``, ``silent`` (entries that
        were observed, and since then never, while others were), ``slices_read``, ``trouble`` (at what reading stopped:
        a run would, too), ``unchecked`` (from where on nothing was read, for want of time), ``notices``; None for what
        is unknown.

    Example:
        >>> describe(np.arange(24.0).reshape(4, 3, 2))["largest"]
        23.0
    """
    stream = source if isinstance(source, PreparedStream) else open_stream(source, **options)
    try:
        return _described(stream, slices, seconds, check or (lambda index, time: None))
    finally:
        if stream is not source:
            stream.close()


def _described(
    stream: PreparedStream, slices: int | None, seconds: float, check: Callable[[int, Any], None]
) -> dict[str, Any]:
    first = problem = unchecked = None
    silent = Silent(stream.shape)
    missing = entries = slices_read = 0
    extremes: list[float] = []
    end = clock.monotonic() + seconds
    try:
        for item in itertools.islice(stream.slices(), slices):
            check(slices_read, item.time)
            first = item.time if slices_read == 0 else first
            slices_read += 1
            observed = item.values[~np.isnan(item.values)]
            silent.add(item.values)
            entries += item.values.size
            missing += item.values.size - observed.size
            if observed.size:
                extremes += [float(observed.min()), float(observed.max())]
            if clock.monotonic() > end and slices_read != stream.length:
                unchecked = f"reading stopped after {seconds:g} seconds: slices from {slices_read} on are not checked"
                break
        else:
            problem = None if slices_read else f"{stream.name} holds no slices: there is nothing to do"
    except ValueError as error:
        problem = str(error)
    times = stream.times
    return {
        "format": stream.format,
        "shape": stream.shape,
        "modes": stream.dims,
        "labels": {name: labels for name, labels in zip(stream.dims, stream.labels, strict=True) if labels is not None},
        "slices": stream.length,
        "times": stream.time_name,
        "time_zone": stream.time_zone,
        "first_time": first,
        "last_time": plain_time(times[-1]) if times is not None and len(times) else None,
        "step": usual_step(times),
        "missing": missing / entries if entries else None,
        "smallest": min(extremes, default=None),
        "largest": max(extremes, default=None),
        "silent": [_named(stream, position) for position in silent.found()],
        "slices_read": slices_read,
        "trouble": problem,
        "unchecked": unchecked,
        "notices": stream.notices,
    }


def _named(stream: PreparedStream, position: tuple[int, ...]) -> str:
    """An entry by its labels."""
    labels = zip(stream.labels, position, strict=True)
    return " ".join(str(index if known is None else known[index]) for known, index in labels)
