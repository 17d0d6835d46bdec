"""What a source holds, for ``undertow inspect``: read from its header and its first slices."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.sources.base import Label
from undertow.sources.formats.base import plain_time
from undertow.sources.opening import open_stream
from undertow.sources.preparation.prepared import PreparedStream
from undertow.sources.preparation.times import usual_step


@dataclass(frozen=True)
class Description:
    """What a source holds.

    Attributes:
        name, format, shape, dims, labels, time_name, length: as the stream has them.
        first_time, last_time: where they are known; the last one only if the source says it beforehand.
        step: the usual distance of two times, as far as it is known.
        looked_at: how many slices were read for the figures below.
        share_missing: of the entries of those slices; None if there were none.
        smallest, largest: among the observed entries of those slices.
        notices: what was odd.
    """

    name: str
    format: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[tuple[Label, ...] | None, ...]
    time_name: str
    length: int | None
    first_time: Any
    last_time: Any
    step: Any
    looked_at: int
    share_missing: float | None
    smallest: float | None
    largest: float | None
    notices: tuple[str, ...]


def describe(source: Any, *, slices: int = 10, **options: Any) -> Description:
    """Look at a source (anything that :func:`open_stream` takes, with its options) or at an open stream."""
    stream = source if isinstance(source, PreparedStream) else open_stream(source, **options)
    try:
        return _described(stream, slices)
    finally:
        if stream is not source:
            stream.close()


def _described(stream: PreparedStream, slices: int) -> Description:
    first: Any = None
    missing = entries = looked_at = 0
    smallest, largest = math.inf, -math.inf
    for item in itertools.islice(stream.slices(), slices):
        first = item.time if looked_at == 0 else first
        looked_at += 1
        observed = item.values[~np.isnan(item.values)]
        entries += item.values.size
        missing += item.values.size - observed.size
        if observed.size:
            smallest, largest = min(smallest, float(observed.min())), max(largest, float(observed.max()))
    times = stream.times
    return Description(
        name=stream.name,
        format=stream.format,
        shape=stream.shape,
        dims=stream.dims,
        labels=stream.labels,
        time_name=stream.time_name,
        length=stream.length,
        first_time=first,
        last_time=plain_time(times[-1]) if times is not None and len(times) else None,
        step=usual_step(times),
        looked_at=looked_at,
        share_missing=missing / entries if entries else None,
        smallest=smallest if smallest <= largest else None,
        largest=largest if smallest <= largest else None,
        notices=tuple(stream.notices),
    )
