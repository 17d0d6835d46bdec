"""What `Incidents` remembers, in a checkpoint: plain JSON, and arrays by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.incidents.incident import Incident
from undertow.incidents.ongoing import NUMBERS, Open
from undertow.incidents.register import Register
from undertow.incidents.scores import Scorer

if TYPE_CHECKING:
    from undertow.incidents.watch import Incidents

STATE_VERSION = 1
"""Raise it whenever the meaning or the names of what is kept change."""


def packed(watch: Incidents) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything, exactly: plain JSON, and arrays by name."""
    header = {
        "version": STATE_VERSION,
        "shape": list(watch.shape),
        "false_alarms": watch.false_alarms.text,
        "slices": watch._slices,
        "learned": watch._learned,
        "count": watch._register.count,
        "found": watch._found,
        "alarms": watch._alarms,
        "tested": watch._tested,
        "clock": watch._clock.state(),
        "feedback": watch._feedback,
        "recent": [one.to_json() for one in watch._register.recent],
        "open": [
            {"incident": one.incident.to_json(), **{name: getattr(one, name) for name in NUMBERS}}
            for one in watch._register.open
        ],
    }
    arrays = watch._scorer.arrays() | watch._stuck.arrays() | watch._silence.arrays()
    size, count = int(np.prod(watch.shape)), len(watch._register.open)
    for name in ("members", "counted"):
        arrays[f"open.{name}"] = np.array([getattr(one, name) for one in watch._register.open]).reshape(count, size) > 0
    return header, arrays


def restore(watch: Incidents, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Let it go on from what `packed` gave; settings stay those of the object.

    Raises:
        ValueError: It is of slices of another shape, or of another version.
    """
    if header.get("version") != STATE_VERSION or tuple(header.get("shape", ())) != watch.shape:
        raise ValueError(
            f"the state must be one of incidents of slices of shape {watch.shape}, got shape {header.get('shape')} "
            f"and version {header.get('version')}"
        )
    scorer = Scorer(watch.shape)
    scorer.restore(dict(arrays))
    opened = [
        Open(
            Incident.from_json(one["incident"]),
            np.array(arrays["open.members"][position], bool),
            np.array(arrays["open.counted"][position], bool),
            **{name: one[name] for name in NUMBERS if name in one},  # files of earlier versions have fewer
        )
        for position, one in enumerate(header["open"])
    ]
    watch._stuck.restore(dict(arrays))
    watch._silence.restore(dict(arrays))
    watch._clock.restore(header["clock"])
    recent = [Incident.from_json(one) for one in header["recent"]]
    watch._scorer, watch._register = scorer, Register(watch.names, opened, recent, int(header["count"]))
    watch._slices, watch._learned = int(header["slices"]), int(header["learned"])
    watch._found = [int(one) for one in header["found"]]
    watch._alarms, watch._tested = float(header["alarms"]), float(header["tested"])
    watch._feedback = [dict(one) for one in header["feedback"]]
