"""What a compiled step reports, told in units of the data. Nothing is waited for before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.inputs import packing as placing
from undertow.inputs.packing import Piece
from undertow.inputs.scaling import LOG_UNIT, Given, Scaling
from undertow.model.flags import Flags
from undertow.model.phases.infer import Report

Floats = NDArray[np.floating[Any]]
SETTINGS = ("level", "robust", "noise", "scale", "forgetting", "max_rank", "window")
"""Settings that every result names."""


class Demand:
    """What is asked of the results of a stream: that of the next one sets out for the host before anybody asks."""

    RECENT = 3
    """Slices for which it is remembered."""

    def __init__(self) -> None:
        self._slices = 0
        self._last: dict[str, int] = {}

    def note(self, name: str) -> None:
        """Somebody has asked for this part of a report."""
        self._last[name] = self._slices

    def send(self, told: Telling, outliers_told: Telling) -> None:
        """Send what was asked for lately; to be called once a slice."""
        self._slices += 1
        for name, last in self._last.copy().items():  # others may be asking meanwhile
            if self._slices - last <= self.RECENT:
                getattr((outliers_told if "outlier" in name else told).report, name).copy_to_host_async()


@dataclass(frozen=True)
class CrossPrediction:
    """Every observed entry of a slice as the other half of it tells it, before anything is learned from it."""

    mean: Any
    """On the scale and in the unit of the model, as is all here."""
    variance: Any


@dataclass(frozen=True, eq=False)
class Telling:
    """The report of one slice."""

    config: Config
    scaling: Scaling
    report: Report
    given: Given | None = None
    """The slice itself, if it is at hand."""
    cross_predicted: CrossPrediction | None = None
    """What a model that is not robust tells outliers by."""
    indices: tuple[NDArray[np.int32], ...] | None = None
    """Where the entries lie, if not all entries of the slice are told."""
    demand: Demand | None = None
    """Who wants to know what is asked for."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all arrays told: single precision where the slice came in it and was learned in it."""
        single = self.given is not None and self.given.piece.values.dtype == self.config.dtype == "float32"
        return np.dtype(np.float32 if single else np.float64)

    def low_rank(self) -> Floats:
        """In units of the data."""
        return self._unscaled(self._centre)

    def std(self) -> Floats:
        """Of a new observation."""
        parts = self._fetched("low_rank_variance"), self._fetched("noise_variance")
        return self._deviation(np.add(*parts, dtype=np.float64))

    def low_rank_std(self) -> Floats:
        """Of the low rank alone."""
        return self._deviation(self._fetched("low_rank_variance").astype(np.float64))

    def outliers(self) -> Floats:
        """In units of the data; what an outlier adds depends on where it stands if the scale is logarithmic."""
        inside = self._inside()
        if self.scaling.log:
            base = self._centre if self.cross_predicted is None else np.asarray(self.cross_predicted.mean, np.float64)
            added = self.scaling.unscaled(base + inside.astype(np.float64)) - self.scaling.unscaled(base)
            with np.errstate(over="ignore"):
                outliers: Floats = np.nan_to_num(added.astype(self.dtype))
        else:
            outliers = self._unscaled(inside)
        too_large = self._too_large
        return outliers if too_large is None else np.where(too_large[1], too_large[0] - self.low_rank(), outliers)

    def outlier_probability(self) -> Floats:
        """Entries that were too large to compute with are outliers for certain."""
        probability = self._probability()
        return probability if self._too_large is None else np.where(self._too_large[1], 1.0, probability)

    def rank(self) -> int:
        """Living components."""
        return int(self._numbers["rank"])

    def noise_std(self) -> float:
        """On the logarithmic scale: as at the unit of the stream."""
        noise = np.sqrt(np.float64(self._numbers["usual_noise"])) * self.scaling.unit
        return _finite(noise * np.hypot(LOG_UNIT, 1) if self.scaling.log else noise)

    def flags(self) -> Flags:
        """As flags. What is full with few places still has room up to `max_rank`."""
        flags = Flags(int(self._numbers["flags"]))
        return flags & ~Flags.RANK_FULL if self.rank() < self.config.max_rank else flags

    def settings(self) -> dict[str, Any]:
        """By name."""
        settings = {name: getattr(self.config, name) for name in SETTINGS}
        return settings if self.indices is None else {**settings, "entries": "observed"}

    def iterations(self) -> int:
        """Sweeps."""
        return int(self._numbers["iterations"])

    def elbo(self) -> float:
        """The bound."""
        return _finite(self._numbers["elbo"])

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """All numbers in one transfer."""
        names = ("rank", "usual_noise", "iterations", "elbo", "flags")
        self._note(*names)
        return dict(zip(names, jax.device_get([getattr(self.report, name) for name in names]), strict=True))

    @cached_property
    def _centre(self) -> NDArray[Any]:
        return self._fetched("low_rank")

    def _note(self, *names: str) -> None:
        if self.demand is not None:
            for name in names:
                self.demand.note(name)

    def _unscaled(self, inside: NDArray[Any]) -> Floats:
        """In units of the data; where the arithmetic overflowed, the largest numbers need not fit there."""
        if Flags.NOT_FINITE not in self.flags():
            return self.scaling.unscaled(inside, self.dtype)
        with np.errstate(over="ignore"):
            data: Floats = np.nan_to_num(self.scaling.unscaled(inside, self.dtype))
        return data

    def _fetched(self, name: str) -> NDArray[Any]:
        """An array of the report; where the arithmetic overflowed, the nearest numbers."""
        self._note(name)
        array: NDArray[Any] = np.asarray(getattr(self.report, name))
        if self.given is not None:
            array = placing.as_given(array, self.given.piece)
        return np.nan_to_num(array) if Flags.NOT_FINITE in self.flags() else array

    def _inside(self) -> NDArray[Any]:
        """Outliers inside the model."""
        return self._fetched("outliers") if self.cross_predicted is None else self._surprises[0]

    def _probability(self) -> Floats:
        return (
            self._fetched("outlier_probability").astype(self.dtype)
            if self.cross_predicted is None
            else self._surprises[1]
        )

    @cached_property
    def _surprises(self) -> tuple[Floats, Floats]:
        """Both for a model that learns from every entry alike: how far the entry lies from what the others foretold."""
        assert self.cross_predicted is not None
        assert self.given is not None
        piece: Piece = self.given.piece
        seen = piece.mask if self._too_large is None else piece.mask & ~self._too_large[1]
        rate, ratio = self.config.outlier_rate, self.config.outlier_variance
        values = np.where(seen, self.scaling.scaled(piece.values), 0).astype(np.float64)
        # Fetched first: beyond the scope of its precision, an array on the device computes in single precision.
        surprise = values - np.asarray(self.cross_predicted.mean, np.float64)
        square = surprise**2 / np.asarray(self.cross_predicted.variance, np.float64)
        logit = np.log(rate / (1 - rate)) - np.log(ratio) / 2 + (1 - 1 / ratio) / 2 * square
        probability: Floats = np.where(seen, 1 / (1 + np.exp(-np.clip(logit, -700, 700))), 0)
        return probability * (1 - 1 / ratio) * surprise, probability.astype(self.dtype)

    @cached_property
    def _too_large(self) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """The data and which of them were left out for their size, if any."""
        if self.given is None or Flags.OUT_OF_RANGE not in self.flags():
            return None
        return self.given.piece.values, self.scaling.too_large(self.given.piece)

    def _deviation(self, variance: Floats) -> Floats:
        """Half the 95 % interval over 1.96; on the linear scale simply the root."""
        root = np.sqrt(variance)
        if not self.scaling.log:
            return self._unscaled(root)
        upper, lower = (self.scaling.unscaled(self._centre + side * 1.96 * root) for side in (1, -1))
        with np.errstate(over="ignore"):
            half: Floats = np.nan_to_num(((upper - lower) / (2 * 1.96)).astype(self.dtype))
        return half


def _finite(value: Any) -> float:
    return float(np.nan_to_num(np.float64(value)))
