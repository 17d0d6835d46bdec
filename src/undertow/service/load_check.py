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
from undertow.service.inference import TOGETHER
from undertow.service.settings import Limits
from undertow.service.spec import Spec
from undertow.service.store.base import Store, Stored
from undertow.service.store.opening import open_store

ROUNDING = 1e-4
"""Differences, relative to the largest mean of a slice, that come of the order of additions and of precision."""

Slice = Callable[[int, int], tuple[str, NDArray[np.float64]]]
"""Stream and number → time and values."""


def compared(
    path: str,
    names: Sequence[str],
    learned: Sequence[int],
    slice_of: Slice,
    seconds: float = math.inf,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Every slice that is kept, and all incidents, of as many streams as there is time for.

    Args:
        path: Of the store; the service must have ended.
        names: Of the streams.
        learned: Slices of each that were acknowledged.
        slice_of: What they were.
        seconds: After which it ends; streams whose slices are not all compared by then do not count.
        say: Takes lines of progress.
    """
    end = time.monotonic() + seconds
    found = {
        "streams_compared": 0,
        "compared": 0,
        "not_kept": 0,
        "largest_difference": 0.0,
        "streams_whose_incidents_differ": 0,
    }
    models = trackers()
    with open_store(path) as store:
        stored = {one.name: one for one in store.streams()}
        for first in range(0, len(names), TOGETHER):
            some = range(first, min(len(names), first + TOGETHER))
            streams = [(number, _fresh(stored[names[number]], models), learned[number]) for number in some]
            say(f"beside undisturbed trackers: {found['streams_compared']} of {len(names)} streams compared")
            if not _compare(store, models, streams, slice_of, found, end):
                break
            found["streams_compared"] += len(streams)
    return found


def _compare(
    store: Store,
    models: Models,
    streams: list[tuple[int, Hosted, int]],
    slice_of: Slice,
    found: dict[str, Any],
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
                away = difference(kept.body, outcome.body, hosted.spec.shape)
                found["largest_difference"] = max(found["largest_difference"], away)
                found["compared"] += 1
            elif number >= count - Limits().history:
                found["not_kept"] += 1
    for _, hosted, _ in streams:
        kept_ones = {one["id"]: _what(one) for one in map(json.loads, store.incidents(hosted.key, 10**9))}
        found["streams_whose_incidents_differ"] += ours[hosted.key] != kept_ones
    return True


def difference(one: bytes, other: bytes, shape: tuple[int, ...]) -> float:
    """Largest difference of means and standard deviations, relative to the largest mean; infinite for other data."""
    ours, theirs = unpacked(one, shape), unpacked(other, shape)
    if not np.array_equal(ours["data"], theirs["data"], equal_nan=True):
        return float("inf")
    scale = float(np.abs(theirs["mean"]).max()) or 1.0
    away = max(float(np.abs(ours[name] - theirs[name]).max()) / scale for name in ("mean", "std"))
    return away if away == away else float("inf")


def _fresh(stored: Stored, models: Models) -> Hosted:
    spec = Spec.from_json(stored.spec)
    return Hosted(stored.key, spec, models.new(), spec.incidents(), 0, 0)


def _what(incident: dict[str, Any]) -> tuple[Any, ...]:
    """Without sizes, whose last digits are rounding."""
    keys = ("kind", "where", "since", "until")
    return tuple(incident[key] for key in keys)
