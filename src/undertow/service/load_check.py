"""What a service that was killed kept, beside what trackers give that were never disturbed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.service.frames import unpacked
from undertow.service.hosted import Hosted, Models, stepped, trackers
from undertow.service.settings import Limits
from undertow.service.spec import Spec
from undertow.service.store.base import Store, Stored
from undertow.service.store.opening import open_store

ROUNDING = 0.05
"""Difference, in error bars, that half of the slices of a stream stay below if it comes of rounding alone. Of 12×12
streams whose values were changed in their last digit it was .018 at most; where a slice was lost or learned twice, .09
at least."""

Slice = Callable[[int, int], tuple[str, NDArray[np.float64]]]
"""Stream and number → time and values."""


def compared(
    path: str,
    names: Sequence[str],
    learned: Sequence[int],
    slice_of: Slice,
    together: int = 64,
    seconds: float = math.inf,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Every slice that is kept, and all incidents, of as many streams as there is time for.

    Args:
        path: Of the store; the service must have ended.
        names: Of the streams.
        learned: Slices of each that were acknowledged.
        slice_of: What they were.
        together: Streams that are stepped in one call; 1 where the service did that, too: then nothing differs.
        seconds: After which it ends; streams whose slices are not all compared by then do not count.
        say: Takes lines of progress.
    """
    end = time.monotonic() + seconds
    names_of_counts = ("streams_compared", "compared", "not_kept", "streams_whose_incidents_differ")
    found: dict[str, Any] = dict.fromkeys(names_of_counts, 0)
    differences: dict[int, list[float]] = {}
    models = trackers()
    with open_store(path) as store:
        stored = {one.name: one for one in store.streams()}
        for first in range(0, len(names), together):
            some = range(first, min(len(names), first + together))
            streams = [(number, _fresh(stored[names[number]], models), learned[number]) for number in some]
            say(f"beside undisturbed trackers: {found['streams_compared']} of {len(names)} streams compared")
            if not _compare(store, models, streams, slice_of, found, differences, end):
                break
            found["streams_compared"] += len(streams)
    every = [one for several in differences.values() for one in several]
    found["largest_difference"] = max(every, default=0.0)
    found["typical_difference"] = float(np.median(every)) if every else 0.0
    found["typical_of_worst_stream"] = max((float(np.median(several)) for several in differences.values()), default=0.0)
    return found


def _compare(
    store: Store,
    models: Models,
    streams: list[tuple[int, Hosted, int]],
    slice_of: Slice,
    found: dict[str, Any],
    differences: dict[int, list[float]],
    end: float,
) -> bool:
    """Whether there was time for all of their slices; those until then are compared."""
    ours: dict[int, dict[int, Any]] = {hosted.key: {} for _, hosted, _ in streams}
    for number in range(max(count for _, _, count in streams)):
        if time.monotonic() > end:
            return False
        going = [(stream, hosted, count) for stream, hosted, count in streams if number < count]
        outcomes = stepped(models, [(hosted, *slice_of(stream, number)) for stream, hosted, _ in going])
        for (_, hosted, count), outcome in zip(going, outcomes, strict=True):
            ours[hosted.key] |= {one.incident.id: _what(one.incident.to_json()) for one in outcome.changes}
            kept = store.kept(hosted.key, number)
            if kept is not None:
                differences.setdefault(hosted.key, []).append(difference(kept.body, outcome.body, hosted.spec.shape))
                found["compared"] += 1
            elif number >= count - Limits().history:
                found["not_kept"] += 1
    for _, hosted, _ in streams:
        kept_ones = {one["id"]: _what(one) for one in map(json.loads, store.incidents(hosted.key, 10**9))}
        found["streams_whose_incidents_differ"] += ours[hosted.key] != kept_ones
    return True


def difference(one: bytes, other: bytes, shape: tuple[int, ...]) -> float:
    """Root mean square difference of means in error bars, or of logarithms of error bars; infinite for other data."""
    ours, theirs = unpacked(one, shape), unpacked(other, shape)
    if not np.array_equal(ours["data"], theirs["data"], equal_nan=True):
        return float("inf")
    means = (ours["mean"] - theirs["mean"]) / theirs["std"]
    widths = np.log(ours["std"] / theirs["std"])
    away = max(float(np.sqrt(np.mean(np.square(part, dtype=np.float64)))) for part in (means, widths))
    return away if away == away else float("inf")


def _fresh(stored: Stored, models: Models) -> Hosted:
    spec = Spec.from_json(stored.spec)
    return Hosted(stored.key, spec, models.new(), spec.incidents(), 0, 0)


def _what(incident: dict[str, Any]) -> tuple[Any, ...]:
    """Without sizes, whose last digits are rounding."""
    keys = ("kind", "where", "since", "until")
    return tuple(incident[key] for key in keys)
