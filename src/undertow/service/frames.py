"""One slice as the page draws it: its numbers, and four arrays in single precision, one after the other."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

PLANES = ("data", "mean", "std", "outlier_probability")
"""Of every frame, in this order; data are NaN where nothing was observed."""
THRESHOLD = 0.5
"""Outlier probability from which on an entry is an alert."""
CALIBRATED = 1.96
"""Standard deviations within which 95 % of clean observations should lie of what was predicted without them."""


def packed(values: NDArray[Any], result: Any) -> bytes:
    """The arrays of a slice."""
    arrays = (values, result.mean, result.std, result.outlier_probability)
    with np.errstate(over="ignore"):  # beyond single precision it is drawn as infinite
        return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def unpacked(body: bytes, shape: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    """What `packed` was given, by name."""
    flat = np.frombuffer(body, "<f4").reshape(len(PLANES), *shape)
    return dict(zip(PLANES, flat, strict=True))


def widened(body: bytes, shape: tuple[int, ...], wanted: tuple[int, ...]) -> bytes:
    """With rows that came later, of which nothing was known."""
    if shape == wanted:
        return body
    whole = np.full((len(PLANES), *wanted), np.nan, "<f4")
    whole[(slice(None), *map(slice, shape))] = np.frombuffer(body, "<f4").reshape(len(PLANES), *shape)
    return whole.tobytes()


def offsets(position: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """Where the four numbers of one entry lie, in bytes."""
    flat = int(np.ravel_multi_index(position, shape))
    return [4 * (plane * math.prod(shape) + flat) for plane in range(len(PLANES))]


def framed(header: Mapping[str, Any], body: bytes) -> bytes:
    """As it is sent: length of the header, the header as JSON, padded so that arrays are aligned, the arrays."""
    text = orjson.dumps(header)
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + body


def numbers_of(values: NDArray[Any], result: Any) -> dict[str, Any]:
    """The curves: one value each for a slice. Not finite is None."""
    observed = ~np.isnan(values)
    flagged = observed & (result.outlier_probability >= THRESHOLD)
    innovations = getattr(result, "innovations", None)
    calibration = None
    if innovations is not None:
        judged = observed & ~flagged & ~np.isnan(innovations)
        if judged.any():
            calibration = float(np.mean(np.abs(innovations[judged]) <= CALIBRATED))
    return {
        "rank": int(result.rank),
        "noise_std": _finite(result.noise_std),
        "observed": float(observed.mean()),
        "outlier_rate": float(flagged.sum() / max(observed.sum(), 1)),
        "calibration": calibration,
        "alerts": int(flagged.sum()),
        "weights": {name: float(weight) for name, weight in (getattr(result, "weights", None) or {}).items()},
        "status": list(result.status.codes),
    }


def _finite(number: Any) -> float | None:
    return float(number) if math.isfinite(number) else None
