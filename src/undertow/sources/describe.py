"""What a source holds, for ``undertow inspect``: read from its header and its first slices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.sources.opening import open_stream
from undertow.sources.preparation.prepared import PreparedStream
from undertow.sources.times import plain_time, usual_step


@dataclass(frozen=True)
class Description:
    """What a source holds, apart from what its stream itself says.

    Attributes:
        stream: the stream, closed again if it was opened for this; its name, shape, labels, … can still be read.
        first_time, last_time: where they are known; the last one only if the source has it beforehand.
        step: the median distance of two times, as far as it is known.
        slices_read: number of slices read for the figures below.
        fraction_missing: of the entries of those slices; None if there were none.
        smallest, largest: among the observed entries of those slices.
    """

    stream: PreparedStream
    first_time: Any
    last_time: Any
    step: Any
    slices_read: int
    fraction_missing: float | None
    smallest: float | None
    largest: float | None


def describe(source: Any, *, slices: int = 10, **options: Any) -> Description:
    """Describe a source (anything that :func:`open_stream` takes, with its options) or an open stream."""
    stream = source if isinstance(source, PreparedStream) else open_stream(source, **options)
    try:
        return _described(stream, slices)
    finally:
        if stream is not source:
            stream.close()


def _described(stream: PreparedStream, slices: int) -> Description:
    first: Any = None
    missing = entries = slices_read = 0
    extremes: list[float] = []
    for item in itertools.islice(stream.slices(), slices):
        first = item.time if slices_read == 0 else first
        slices_read += 1
        observed = item.values[~np.isnan(item.values)]
        entries += item.values.size
        missing += item.values.size - observed.size
        if observed.size:
            extremes += [float(observed.min()), float(observed.max())]
    times = stream.times
    return Description(
        stream=stream,
        first_time=first,
        last_time=plain_time(times[-1]) if times is not None and len(times) else None,
        step=usual_step(times),
        slices_read=slices_read,
        fraction_missing=missing / entries if entries else None,
        smallest=min(extremes, default=None),
        largest=max(extremes, default=None),
    )
