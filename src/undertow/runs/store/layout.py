"""Which arrays a store holds, with which dimensions, types and chunks."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from undertow.runs.store.files import StoreError
from undertow.runs.store.times import Times

Precision = Literal["single", "double"]

SLICE_VARIABLES = {
    "low_rank": "low-rank part, missing entries filled in",
    "std": "predictive standard deviation of low_rank",
    "outliers": "expected value of the outlier in every observed entry",
    "outlier_probability": "probability that an observed entry is an outlier",
    "low_rank_std": "standard deviation of the low-rank part alone",
    "data": "the slice as it came, NaN where nothing was observed",
}
"""What can be kept of every slice, with the long name it gets."""

DEFAULT_KEEP = ("low_rank", "std", "outliers", "outlier_probability")

STEP_VARIABLES = {
    "rank": ("<i4", "living components"),
    "noise_std": ("<f8", "typical noise standard deviation"),
    "evidence": ("<f8", "lower bound of the log evidence of the window"),
    "status": ("str", "ok, or what was noticed"),
    "observed": ("<f8", "share of the entries that were observed"),
    "outlier_rate": ("<f8", "share of the observed entries above the threshold of outlier_probability"),
    "fit_error": ("<f8", "relative error of low_rank on the observed entries that are not outliers"),
}
"""One value a slice."""

_CHUNK_BYTES = 4 * 2**20  # of one variable: small enough to be held twice, large enough to be read quickly
_MOST_SLICES = 1024  # a chunk of tiny slices is closed too, now and then
_STEP_CHUNK = 4096


@dataclass(frozen=True)
class Layout:
    """Everything that decides which bytes the store's arrays consist of, apart from the results themselves."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[tuple[str | int | float, ...] | None, ...]
    time_name: str
    times: Times
    keep: tuple[str, ...]
    precision: Precision
    chunk: int
    """Slices in one chunk of the slice variables."""

    @property
    def step_chunk(self) -> int:
        """Slices in one chunk of the values per step."""
        return max(_STEP_CHUNK, self.chunk)

    @property
    def float_type(self) -> str:
        """Of the slice variables."""
        return "<f4" if self.precision == "single" else "<f8"

    def identity(self) -> dict[str, Any]:
        """What tells it from another layout, as small plain JSON: there may be millions of labels."""
        labels = json.dumps([None if names is None else list(names) for names in self.labels])
        return {
            "shape": list(self.shape),
            "dims": list(self.dims),
            "labels": hashlib.sha256(labels.encode()).hexdigest(),
            "time_name": self.time_name,
            "times": self.times.kind,
            "keep": list(self.keep),
            "precision": self.precision,
            "chunk": self.chunk,
        }


def chosen(keep: str | Sequence[str]) -> tuple[str, ...]:
    """The slice variables to keep, in the order of `SLICE_VARIABLES`; "none" keeps the values per step alone."""
    names = [name.strip() for name in keep.split(",")] if isinstance(keep, str) else list(keep)
    wanted = {name for name in names if name and name != "none"}
    for name in sorted(wanted - set(SLICE_VARIABLES)):
        raise StoreError(f"keep must be among {', '.join(SLICE_VARIABLES)} or none, got {name!r}")
    return tuple(name for name in SLICE_VARIABLES if name in wanted)


def chunk_length(shape: Sequence[int], precision: Precision, checkpoint_every: int | None) -> int:
    """How many slices make a chunk: a checkpoint interval, unless that would be too much to hold in memory.

    It follows from the arguments alone, never from how fast the machine is: chunks decide the bytes of a store.
    """
    most = max(1, _CHUNK_BYTES // (math.prod(shape) * (4 if precision == "single" else 8)))
    wanted = checkpoint_every or 2 ** int(math.log2(most))
    return int(np.clip(wanted, 1, min(most, _MOST_SLICES)))


def distinct(dims: Sequence[str], time_name: str) -> tuple[str, ...]:
    """Names of the modes that are no variable's name, and none twice: xarray could not tell them apart."""
    taken = {*SLICE_VARIABLES, *STEP_VARIABLES, time_name, "value", "expected", "probability"}
    names: list[str] = []
    for dim in dims:
        name = dim
        while name in taken:
            name += "_"
        names.append(name)
        taken.add(name)
    return tuple(names)
