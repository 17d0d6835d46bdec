"""Which arrays a store holds, with which dimensions, types and chunks."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from undertow.runs.store.growth import Growth
from undertow.runs.store.times import Times
from undertow.sources.capacity import LabelSlots

Precision = Literal["single", "double"]

SLICE_VARIABLES = {
    "mean": "what every entry should be, missing ones filled in",
    "low_rank": "low-rank part of the mean",
    "std": "predictive standard deviation around the mean",
    "outliers": "expected value of the outlier in every observed entry",
    "outlier_probability": "probability that an observed entry is an outlier",
    "low_rank_std": "standard deviation of the mean itself, without noise",
    "data": "the slice as it came, NaN where nothing was observed",
}
"""Arrays that can be kept of every slice, with their long names."""

DEFAULT_KEEP = ("mean", "std", "outliers", "outlier_probability", "data")
FORMER_KEEPS = (
    ("mean", "std", "outliers", "outlier_probability"),
    ("low_rank", "std", "outliers", "outlier_probability"),
)
"""The defaults of earlier versions; in the first the mean was called low_rank."""

STEP_VARIABLES = {
    "rank": ("<i4", "active components"),
    "noise_std": ("<f8", "typical noise standard deviation"),
    "evidence": ("<f8", "ELBO: lower bound of the log evidence of the window"),
    "status": ("str", "ok, or status codes"),
    "observed": ("<f8", "fraction of the entries that were observed"),
    "outlier_rate": ("<f8", "fraction of the observed entries above the threshold of outlier_probability"),
    "fit_error": ("<f8", "relative error of the mean on the observed entries that are not outliers"),
}
"""One value per slice, with type and long name."""

WEIGHTS, EVENTS, PREDICTOR = "weights", "events", "predictor"
"""What a store holds beyond that if its model is a tracker: weights (time, predictor), and events in words (time)."""
NOTICED = "what is wrong beyond single entries"
FLAGS, INCIDENTS, INCIDENT = "flags", "incidents", "incident"
"""What `undertow.clean` adds to what is stored: entries that are flagged, and sentences (incident)."""

_CHUNK_BYTES = 4 * 2**20  # of one variable: small enough to be held twice, large enough to be read quickly
_MOST_SLICES = 1024  # a chunk of tiny slices is closed too, now and then
_STEP_CHUNK = 4096
_GROWTH = 16  # times as many rows as at first, for which a chunk is small enough


class ArrayLayout(NamedTuple):
    """One array that grows along time: (T, *shape) in chunks of ``chunk`` slices."""

    dims: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]
    chunk: int
    attributes: dict[str, str]


@dataclass(frozen=True)
class Layout:
    """Everything that decides which bytes the store's arrays consist of, apart from the results themselves."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[Sequence[str | int | float] | None, ...]
    time_name: str
    times: Times
    keep: tuple[str, ...]
    precision: Precision
    chunk: int
    """Slices in one chunk of the slice variables."""
    checksums: bool = True
    """Whether every chunk ends in its checksum; those of stores begun by earlier versions do not."""
    predictors: tuple[str, ...] = ()
    """Of a tracker: their weights are kept, and what it noticed beyond single entries."""
    region_modes: int = 0
    """The first modes of a picture, in which flagged entries that touch are one alert; 0 where each entry is one."""
    first: tuple[int, ...] = ()
    """Shape of the first slice, where others may be larger: that of chunks."""
    units: str = ""
    """Of the values; "" where they are not known. They are written with the arrays, and make no other store."""

    @property
    def float_type(self) -> str:
        """Of the arrays kept of every slice."""
        return "<f4" if self.precision == "single" else "<f8"

    def arrays(self) -> dict[str, ArrayLayout]:
        """All arrays that grow along time: the times, the values per slice, the arrays kept."""
        time, chunk = (self.time_name,), max(_STEP_CHUNK, self.chunk)
        found = {self.time_name: ArrayLayout(time, self.times.dtype, (), chunk, self.times.attributes)}
        for name, (dtype, meaning) in STEP_VARIABLES.items():
            found[name] = ArrayLayout(time, dtype, (), chunk, {"long_name": meaning})
        if self.predictors:
            said, noticed = "weight of every predictor", NOTICED
            found[WEIGHTS] = ArrayLayout((*time, PREDICTOR), "<f4", (len(self.predictors),), chunk, {"long_name": said})
            found[EVENTS] = ArrayLayout(time, "str", (), chunk, {"long_name": noticed})
        for name in self.keep:
            attributes = {"long_name": SLICE_VARIABLES[name]}
            if self.units and name != "outlier_probability":
                attributes["units"] = self.units
            found[name] = ArrayLayout((*time, *self.dims), self.float_type, self.shape, self.chunk, attributes)
        return found

    @property
    def to_come(self) -> dict[str, int]:
        """Dimensions whose labels appear while the stream is read, with how many are known."""
        pairs = zip(self.dims, self.labels, strict=True)
        return {dim: labels.taken for dim, labels in pairs if isinstance(labels, LabelSlots)}

    def grown(self, growth: Growth) -> Layout:
        """With larger slices, in the same chunks."""
        return replace(self, shape=growth.shape, first=growth.steps[0][1])

    def coordinates(self) -> dict[str, Sequence[str | int | float]]:
        """Labels by the dimension that they belong to, where there are any."""
        named = dict(zip((*self.dims, PREDICTOR), (*self.labels_now, self.predictors), strict=True))
        return {dim: labels for dim, labels in named.items() if labels}

    @property
    def labels_now(self) -> tuple[Sequence[str | int | float] | None, ...]:
        """Of as many rows as slices have: more may be known by now, of slices that are still to come."""
        pairs = zip(self.labels, self.shape, strict=True)
        return tuple(one.up_to(size) if isinstance(one, LabelSlots) else one for one, size in pairs)

    def identity(self) -> dict[str, Any]:
        """Its canonical form, ready for JSON; labels by their digest, since there may be millions."""
        digest = hashlib.sha256(json.dumps(self.labels, default=str).encode()).hexdigest()
        identity = {**vars(self), "labels": digest, "times": self.times.kind}
        del identity["units"]
        del identity["first"]
        if not self.checksums:
            del identity["checksums"]  # as it was in the checkpoints of such stores
        if not self.predictors:
            del identity["predictors"]  # likewise
        if not self.region_modes:
            del identity["region_modes"]  # likewise
        return identity


def chunked_shape(shape: Sequence[int], labels: Sequence[Any]) -> tuple[int, ...]:
    """Shape of the slices that the length of chunks is for: where labels may come, larger than the first."""
    pairs = zip(shape, labels, strict=True)
    return tuple(min(one.most, _GROWTH * n) if isinstance(one, LabelSlots) else n for n, one in pairs)


def chunk_length(shape: Sequence[int], precision: Precision, checkpoint_every: int | None) -> int:
    """How many slices make a chunk: a checkpoint interval, unless that would be too much to hold in memory.

    It follows from the arguments alone, never from how fast the machine is: chunks decide the bytes of a store.
    """
    most = max(1, _CHUNK_BYTES // (math.prod(shape) * (4 if precision == "single" else 8)))
    wanted = checkpoint_every or 2 ** int(math.log2(most))
    return int(np.clip(wanted, 1, min(most, _MOST_SLICES)))


def distinct(dims: Sequence[str], *others: str) -> tuple[str, ...]:
    """Names that are no variable's name, none of ``others`` and none twice: xarray could not tell them apart."""
    taken = {*SLICE_VARIABLES, *STEP_VARIABLES, *others, "value", "expected", "probability"}
    taken |= {WEIGHTS, EVENTS, PREDICTOR, FLAGS, INCIDENTS, INCIDENT}
    names: list[str] = []
    for dim in dims:
        name = dim
        while name in taken:
            name += "_"
        names.append(name)
        taken.add(name)
    return tuple(names)


def label_column(labels: Sequence[str | int | float]) -> np.ndarray[Any, Any]:
    """Labels as one column: integers, numbers, or else text."""
    if all(isinstance(label, (int, np.integer)) and not isinstance(label, bool) for label in labels):
        return np.asarray(labels, "<i8")
    if all(isinstance(label, (int, float, np.number)) and not isinstance(label, bool) for label in labels):
        return np.asarray(labels, "<f8")
    return np.asarray([str(label) for label in labels], dtype=object)
