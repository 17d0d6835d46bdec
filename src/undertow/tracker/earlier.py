"""Files of trackers of earlier versions: what has been added since is as if nothing had been seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.tracker.ahead import BINS

READABLE = (9, 10)
"""State versions that can be completed."""
LIKE = "events.flagged_share"
"""There is one for every tracker, or for all of a group."""
OF_ENTRIES: dict[str, tuple[float, str]] = {
    "events.former": (np.nan, LIKE),
    "events.former_square": (0.0, LIKE),
    "events.former_support": (0, "events.run"),
    "zeros.zero": (0.0, LIKE),
    "zeros.count": (0.0, LIKE),
}
NUMBERS = ("zeros.found", "zeros.looked", "zeros.size")


def completed(arrays: dict[str, Any]) -> dict[str, Any]:
    """With the arrays that files of these versions do not have."""
    added: dict[str, Any] = {}
    for place in [name.removesuffix(LIKE) for name in arrays if name.endswith(LIKE)]:
        for name, (value, like) in OF_ENTRIES.items():
            added[place + name] = np.full_like(arrays[place + like], value)
        one = np.asarray(arrays[place + LIKE])
        added |= {place + name: np.zeros(one.shape[:-1], one.dtype) for name in NUMBERS}
    grams = [name.removesuffix("gram") for name in arrays if ".scored." in f".{name}" and name.endswith(".gram")]
    return added | {f"{name}spread": np.zeros(BINS, np.float32) for name in grams} | arrays
