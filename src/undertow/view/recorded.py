"""Why an entry of a recording was flagged, or why not: from what was kept of every slice."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.explanation import Explanation, explanation
from undertow.view.series import Series, selected
from undertow.view.table import Table

WEIGHTS, PREDICTOR, EVENTS = "weights", "predictor", "events"


def explained(dataset: Any, labels: dict[str, Any], threshold: float) -> Explanation:
    """One entry of one slice.

    Args:
        dataset: As for `series.selected`, with `weights` and `events` if there are any.
        labels: By mode, and of the slice by the name of the times; the slice in which the entry was farthest off if
            that is left out.
        threshold: Of the outlier probability.
    """
    where = dict(labels)
    mean = next((name for name in ("mean", "low_rank") if name in getattr(dataset, "data_vars", ())), None)
    asked = None if mean is None else where.pop(str(dataset[mean].dims[0]), None)
    found = selected(dataset, where, threshold)
    off = (np.nan if found.data is None else found.data - found.mean) / found.std
    index = _worst(found, off) if asked is None else _index(found, asked)
    distance = float(off[index])
    value = None if found.data is None or np.isnan(found.data[index]) else float(found.data[index])
    explained = explanation(
        entry=f"{found.title}, {found.time_name} {_when(found, index)}",
        position=(index, *found.position),
        value=value,
        expected=float(found.mean[index]),
        std=float(found.std[index]),
        distance=None,
        probability=float(found.probability[index]),
        said={},
        weights={},
        events=(
            *_far(value, distance),
            *_lasting(found, index),
            *_others(dataset, found, index, threshold),
            *_silent(found, index),
            *_known(found, index),
        ),
    )
    return replace(explained, distance=None if np.isnan(distance) else distance, predictors=_weights(dataset, index))


def _worst(found: Series, off: NDArray[np.floating[Any]]) -> int:
    """Where it was farthest off, among what was flagged if anything was; else where its first incident begins."""
    size = np.where(np.isnan(off), 0, np.abs(off)) + 0.0
    begun = [int(one["since"]) for one in found.incidents if 0 <= int(one["since"]) < len(size)]
    if begun and not found.flagged.any():
        return begun[0]
    return int(np.argmax(np.where(found.flagged, size, -1 if found.flagged.any() else size)))


def _index(found: Series, asked: Any) -> int:
    """Of a slice, by its time; by its number where slices have no times."""
    times = found.times
    if times.dtype.kind == "M":
        try:
            if isinstance(asked, str):
                asked = datetime.fromisoformat(asked)
            if isinstance(asked, datetime) and asked.tzinfo is not None:
                asked = np.datetime64(round(asked.timestamp() * 1e6), "us")
            wanted = np.datetime64(asked, "ns")
        except (TypeError, ValueError):
            wanted = np.datetime64("NaT")
        (hits,) = np.nonzero(times.astype("datetime64[ns]") == wanted)
    else:
        hits = np.array([index for index, one in enumerate(times) if one == asked or str(one) == str(asked)], int)
    if not len(hits):
        raise ValueError(
            f"{found.time_name} must be that of a slice, from {_said(times[0])} to {_said(times[-1])}, got {asked!r}."
        )
    return int(hits[0])


def _said(time: Any) -> str:
    if not isinstance(time, np.datetime64):
        return str(time)
    text = str(np.datetime_as_string(time, "auto"))
    return f"{text}T00:00" if len(text) == len("2026-03-04") else text


def _when(found: Series, index: int) -> str:
    return f"{_said(found.times[index])}{' UTC' if found.in_utc else ''}"


def _far(value: float | None, distance: float) -> list[str]:
    if value is None or np.isnan(distance):
        return []
    return [f"That is {abs(distance):.1f} standard deviations {'above' if distance > 0 else 'below'} it."]


def _lasting(found: Series, index: int) -> list[str]:
    """How many of its observations in a row are flagged."""
    if not found.flagged[index]:
        return []
    known = found.flagged if found.data is None else found.flagged | np.isnan(found.data)  # a gap interrupts nothing
    first, last = index, index
    while first > 0 and known[first - 1]:
        first -= 1
    while last + 1 < len(known) and known[last + 1]:
        last += 1
    (flagged,) = np.nonzero(found.flagged[first : last + 1])
    if len(flagged) < 2:
        return ["The observations before and after it are not flagged."]
    begin, end = (_when(found, first + place) for place in (flagged[0], flagged[-1]))
    return [f"It is one of {len(flagged)} in a row, from {begin} to {end}."]


def _others(dataset: Any, found: Series, index: int, threshold: float) -> list[str]:
    """What else was wrong in the slice."""
    sentences = []
    if "outlier_probability" in dataset:
        others = int((dataset["outlier_probability"][index].values >= threshold).sum()) - int(found.flagged[index])
        if others:
            sentences.append(f"So {'is' if others == 1 else 'are'} {others} more of its slice.")
    events = str(dataset[EVENTS][index].values) if EVENTS in dataset else ""
    return [*sentences, *([f"Of its slice: {events}."] if events else [])]


def _silent(found: Series, index: int) -> list[str]:
    """Since when nothing has been observed, and whether that has ended."""
    if found.data is None or not np.isnan(found.data[index]):
        return []
    (known,) = np.nonzero(~np.isnan(found.data))
    before, after = known[known < index], known[known > index]
    if not len(before):
        return ["It had not been observed before."]
    last = f"It was last observed at {_when(found, before[-1])}"
    return [f"{last}, and next at {_when(found, after[0])}." if len(after) else f"{last}, and never again."]


def _known(found: Series, index: int) -> list[str]:
    """The incidents that it is part of in that slice."""
    newest = len(found.times) - 1
    lasting = (one for one in found.incidents if one["since"] <= index <= (newest if one["open"] else one["until"]))
    return [f"Incident: {one['sentence']}{' UTC' if found.in_utc else ''}." for one in lasting]


def _weights(dataset: Any, index: int) -> Table:
    """Who answered."""
    rows: list[tuple[str, float]] = []
    if WEIGHTS in dataset:
        weights = dataset[WEIGHTS][index].values.astype(float)
        rows = sorted(
            zip(map(str, dataset[PREDICTOR].values), map(float, weights), strict=True), key=lambda one: -one[1]
        )
    return Table(("predictor", "weight"), [row for row in rows if row[1] >= 0.01])
