"""What was found, as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
from fastapi import Response

from undertow.service import frames
from undertow.service.hosted import Outcome
from undertow.service.spec import Spec
from undertow.service.store.base import Kept
from undertow.service.streams import Accepted, Stream, Streams

MOST_ALERTS = 1000
FIELDS = ("data", "mean", "std", "outlier_probability")


def as_json(content: Any, status: int = 200) -> Response:
    """An answer; numbers that are not finite are null."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type="application/json")


def info(streams: Streams, stream: Stream) -> dict[str, Any]:
    """A stream."""
    rows = streams.store.numbers(stream.key, 0, 2**53, 1)
    newest = {"sequence": rows[0][0], "time": rows[0][1], "numbers": json.loads(rows[0][2])} if rows else None
    return {"name": stream.name, **stream.spec.to_json(), "next": stream.next, "newest": newest}


def accepted(one: Accepted, spec: Spec, fields: tuple[str, ...]) -> dict[str, Any]:
    """A slice that was pushed."""
    answer: dict[str, Any] = {"sequence": one.sequence, "time": one.time, "duplicate": one.duplicate}
    if one.outcome is None:
        return answer
    return answer | outcome_json(one.outcome, spec, fields)


def outcome_json(outcome: Outcome, spec: Spec, fields: tuple[str, ...]) -> dict[str, Any]:
    """Numbers, alerts, incidents, and the arrays that were asked for."""
    if outcome.error is not None:
        return {"error": outcome.error}
    arrays = outcome.arrays or frames.unpacked(outcome.body, spec.shape_at(outcome.sequence))
    found, count = alerts(arrays, spec)
    return {
        "numbers": outcome.numbers,
        "alerts": found,
        "alerts_in_all": count,
        "incidents": [{"what": change.what, **change.incident.to_json()} for change in outcome.changes],
        **{name: np.ascontiguousarray(arrays[name]) for name in fields},
    }


def kept_json(kept: Kept, spec: Spec, fields: tuple[str, ...]) -> dict[str, Any]:
    """A slice of the past."""
    outcome = Outcome(kept.sequence, kept.time, json.loads(kept.numbers), kept.body)
    return {"sequence": kept.sequence, "time": kept.time, **outcome_json(outcome, spec, fields), "incidents": None}


def alerts(arrays: dict[str, Any], spec: Spec) -> tuple[list[dict[str, Any]], int]:
    """Entries that do not fit, the surest first, and how many there are in all."""
    probability = np.where(np.isnan(arrays["data"]), 0, arrays["outlier_probability"]).ravel()
    flagged = np.flatnonzero(probability >= frames.THRESHOLD)
    order = flagged[np.argsort(-probability[flagged], kind="stable")][:MOST_ALERTS]
    places = np.stack(np.unravel_index(order, np.shape(arrays["data"])), axis=1).tolist()
    names = ("data", "mean", "std")
    columns = [np.asarray(arrays[name], np.float64).ravel()[order].tolist() for name in names]
    rows = [
        {
            "position": place,
            "labels": spec.labels_of(place),
            "value": value,
            "expected": expected,
            "std": std,
            "probability": sure,
        }
        for place, value, expected, std, sure in zip(places, *columns, probability[order].tolist(), strict=True)
    ]
    return rows, len(flagged)


def series(name: str, rows: list[tuple[int, str, str]]) -> dict[str, Any]:
    """Curves."""
    numbers = [json.loads(text) for _, _, text in rows]
    predictors = list(dict.fromkeys(key for one in numbers for key in one["weights"]))
    curves = ("rank", "noise_std", "observed", "outlier_rate", "calibration", "alerts", "incidents")
    return {
        "stream": name,
        "sequence": [row[0] for row in rows],
        "time": [row[1] for row in rows],
        "numbers": {curve: [one.get(curve) for one in numbers] for curve in curves},
        "weights": {key: [one["weights"].get(key) for one in numbers] for key in predictors},
    }
