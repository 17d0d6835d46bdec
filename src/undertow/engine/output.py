"""What a compiled step computed for one slice, or for one slice of each of many streams, in units of the data.

Nothing is fetched from the device before it is asked for. `undertow.results.Result` is the public face of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import jax
import numpy as np
from jax.tree_util import register_dataclass
from numpy.typing import NDArray

from undertow.config import Config
from undertow.inputs.packing import unpacked
from undertow.inputs.scaling import LOG_UNIT, SMALLEST_UNIT, Scaling
from undertow.inputs.transfer import DeviceSlice
from undertow.model.flags import Flags
from undertow.model.report import Report

Floats = NDArray[np.floating[Any]]
SETTINGS = ("level", "robust", "noise", "scale", "forgetting", "max_rank", "window")
"""Settings that every result names."""
NUMBERS = ("rank", "usual_noise", "iterations", "elbo", "flags")
"""Parts of a report that are one number per stream, fetched in one transfer."""
MEANINGLESS_IF_REPEATED = Flags.EMPTY | Flags.MANY_OUTLIERS | Flags.CHANGED | Flags.OUT_OF_RANGE | Flags.NOT_CONVERGED
"""Flags that say nothing about a slice that is equal to those before it."""
MOST_GROWN = 1.0
"""Largest logarithm of a mean over its median on the logarithmic scale."""
QUANTILE = 1.96
"""95 % of a normal distribution lie within this many standard deviations."""


@register_dataclass
@dataclass(frozen=True)
class CrossPrediction:
    """Every observed entry of a slice predicted from the other half of it, before anything is learned from it.

    In a state as the window has its entries, in an output in the order of the slice.

    Attributes:
        mean: predicted entries, on the scale and in the unit of the model.
        variance: predictive variance of an observation.
    """

    mean: Any
    variance: Any


@dataclass(frozen=True, eq=False)
class Output:
    """The reports of a step and what is needed to express them in units of the data.

    Attributes:
        config: settings of the model.
        scaling: from the data to the model and back; for many streams its units broadcast against their slices.
        reports: what the device holds. One report; for many streams one per chunk, None for a chunk that was skipped.
        given: the slice itself, if it is at hand.
        cross_predicted: what outliers are found by where the model is not robust.
        indices: where the entries lie, one array per mode; None where arrays are whole slices.
        rows: for many streams, the row of each in the chunks laid end to end; None for a single stream.
        seen: values and mask of the slice on the scale and in the unit of the model, where it comes out of the window.
        could_predict: for many streams, which of them had learned something before this slice.
        noticed: flags that the host has set; for many streams one number for each.
        repeating_since: the first of the slices that are all equal, −1 where they are not; for many streams (n,).
        negative: whether anything in the window is below 0, as there are `reports`; None where that is not known, and
            on the linear scale.
        on_fetch: called with the name of every part of a report that is fetched.
    """

    config: Config
    scaling: Scaling
    reports: tuple[Report | None, ...]
    given: DeviceSlice | None = None
    cross_predicted: CrossPrediction | None = None
    indices: tuple[NDArray[np.int32], ...] | None = None
    rows: NDArray[np.intp] | None = None
    seen: tuple[Any, Any] | None = None
    could_predict: NDArray[np.bool_] | None = None
    noticed: Any = 0
    repeating_since: Any = -1
    negative: tuple[Any, ...] | None = None
    on_fetch: Callable[[str], None] | None = None

    def mean(self) -> Floats:
        """Low rank and level; on the logarithmic scale what an observation is on average, and not its median."""
        middle = self._unscaled(self._mean)
        if not self.scaling.log:
            return middle
        # Noise is in proportion, one variance for all: of single entries it is too uncertain to be raised to a power.
        noise = np.asarray(self._numbers["usual_noise"], np.float64)
        if self.rows is not None:
            noise = noise.reshape(-1, *[1] * (middle.ndim - 1))
        grown = middle * np.exp(np.minimum(np.nan_to_num(noise) / 2, MOST_GROWN))
        with np.errstate(over="ignore"):
            mean: Floats = np.nan_to_num(np.maximum(grown, self._least).astype(self.dtype))
        return mean

    def low_rank(self) -> Floats:
        """What the components add to the levels; without levels, the mean."""
        mean = self.mean()
        return mean - self._unscaled(self._fetched("level")) if self.config.level else mean

    def std(self) -> Floats:
        """Standard deviation of a new observation."""
        return self._deviation(self._variance)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Where this fraction of new observations lies."""
        reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(self._variance)
        scaling = self.scaling.positive()
        ends = (np.maximum(self._unscaled(self._mean + side * reach, scaling), self._least) for side in (-1, 1))
        lower, upper = (end.astype(self.dtype) for end in ends)
        return lower, upper

    def low_rank_std(self) -> Floats:
        """Standard deviation of the mean."""
        return self._deviation(self._fetched("low_rank_variance").astype(np.float64))

    def outliers(self) -> Floats:
        """What outliers add; on the logarithmic scale that depends on the mean."""
        if np.all(self._repeats):
            return np.zeros(self._mean.shape, self.dtype)
        scaled = self._outlier_part("outliers", 0)
        if self.scaling.log:
            base = self._mean if self.cross_predicted is None else np.asarray(self.cross_predicted.mean, np.float64)
            added = self.scaling.unscaled(base + scaled.astype(np.float64)) - self.scaling.unscaled(base)
            # Beyond the mean, as far as they are outliers, and not beyond the median.
            added -= self._outlier_part("outlier_probability", 1) * (self.mean() - self._unscaled(self._mean))
            with np.errstate(over="ignore"):
                outliers: Floats = np.nan_to_num(added.astype(self.dtype))
        else:
            outliers = self._unscaled(scaled)
        too_large = self._too_large
        if too_large is not None:
            outliers = np.where(too_large[1], too_large[0] - self.mean(), outliers)
        return self._none_where_repeated(outliers)

    def outlier_probability(self) -> Floats:
        """Entries that were too large to compute with are outliers for certain."""
        if np.all(self._repeats):
            return np.zeros(self._mean.shape, self.dtype)
        # A copy: it may be the device's own memory, and results may be written to.
        probability = self._outlier_part("outlier_probability", 1).astype(self.dtype)
        if self._too_large is not None:
            probability = np.where(self._too_large[1], 1.0, probability)
        return self._none_where_repeated(probability)

    def rank(self) -> Any:
        """Active components."""
        return self._numbers["rank"]

    def iterations(self) -> Any:
        """Sweeps."""
        return self._numbers["iterations"]

    def elbo(self) -> Any:
        """Evidence lower bound, in the stream's own unit."""
        return np.nan_to_num(np.asarray(self._numbers["elbo"], np.float64))

    def noise_std(self) -> Any:
        """On the logarithmic scale: as at the unit of the stream."""
        unit = self.scaling.positive().unit
        unit = unit if self.rows is None else np.reshape(unit, -1)
        noise = np.sqrt(np.asarray(self._numbers["usual_noise"], np.float64)) * unit
        return np.nan_to_num(noise * np.hypot(LOG_UNIT, 1) if self.scaling.log else noise)

    def flags(self) -> Any:
        """As numbers. What is full with a capacity below `max_rank` is not full yet."""
        kept = np.where(self._repeats, ~MEANINGLESS_IF_REPEATED.value, -1)
        flags = (self._numbers["flags"] & kept | self.noticed).astype(np.int32)
        return np.where(self.rank() < self.config.max_rank, flags & ~Flags.RANK_FULL.value, flags)

    def since(self) -> Any:
        """The first of the slices that are all equal; −1 where they are not."""
        return self.repeating_since if self.rows is None else np.broadcast_to(self.repeating_since, self.rows.shape)

    def settings(self) -> dict[str, Any]:
        """By name."""
        settings = {name: getattr(self.config, name) for name in SETTINGS}
        return settings if self.indices is None else {**settings, "entries": "observed"}

    def observed(self) -> tuple[Floats, NDArray[np.bool_]] | None:
        """The slice and its mask; None where it is not at hand, or not whole."""
        if self.given is None or self.rows is not None or self.indices is not None:
            return None
        return self.given.host.values, self.given.host.mask

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all arrays: single precision where the slice came in it and was learned in it."""
        single = self.given is not None and self.given.host.values.dtype == self.config.dtype == "float32"
        return np.dtype(np.float32 if single else np.float64)

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        self._note(*NUMBERS)
        if self.rows is not None:
            return {name: self._gathered(name) for name in NUMBERS}
        return dict(zip(NUMBERS, jax.device_get([getattr(self.reports[0], name) for name in NUMBERS]), strict=True))

    @cached_property
    def _mean(self) -> NDArray[Any]:
        return self._fetched("low_rank")

    @cached_property
    def _variance(self) -> Floats:
        """Of a new observation, as the model has it."""
        total: Floats = np.add(self._fetched("low_rank_variance"), self._fetched("noise_variance"), dtype=np.float64)
        return total

    @cached_property
    def _least(self) -> Any:
        """What no observation is below: 0 on the logarithmic scale, where the window has nothing below it."""
        if not self.scaling.log or self.negative is None:
            return -np.inf
        if self.rows is None:
            return -np.inf if self.negative[0] else 0.0
        found = np.where(gathered(self.negative, self.rows), -np.inf, 0.0)
        return found.reshape(-1, *[1] * (self._mean.ndim - 1))

    @cached_property
    def _any_flags(self) -> Flags:
        return Flags(int(np.bitwise_or.reduce(np.reshape(self.flags(), -1), initial=0)))

    @property
    def _repeats(self) -> Any:
        return np.greater_equal(self.repeating_since, 0)

    def _none_where_repeated(self, values: Floats) -> Floats:
        if self.rows is None or not np.any(self._repeats):
            return values
        return np.where(self._repeats.reshape(-1, *([1] * (values.ndim - 1))), values.dtype.type(0), values)

    def _fetched(self, name: str) -> NDArray[Any]:
        """A part of the report; where the arithmetic overflowed, the nearest numbers."""
        self._note(name)
        if self.rows is not None:
            array = self._gathered(name).astype(self.dtype, copy=False)
        else:
            array = np.asarray(getattr(self.reports[0], name))
            if self.given is not None:
                array = unpacked(array, self.given.host)
        return np.nan_to_num(array) if Flags.NOT_FINITE in self._any_flags else array

    def _gathered(self, name: str) -> NDArray[Any]:
        assert self.rows is not None
        return gathered([None if report is None else getattr(report, name) for report in self.reports], self.rows)

    def _note(self, *names: str) -> None:
        if self.on_fetch is not None:
            for name in names:
                self.on_fetch(name)

    def _unscaled(self, values: NDArray[Any], scaling: Scaling | None = None) -> Floats:
        """In units of the data; where the arithmetic overflowed, the largest numbers need not fit there."""
        scaling = scaling or self.scaling
        if Flags.NOT_FINITE not in self._any_flags:
            return scaling.unscaled(values, self.dtype)
        with np.errstate(over="ignore"):
            data: Floats = np.nan_to_num(scaling.unscaled(values, self.dtype))
        return data

    def _deviation(self, variance: Floats) -> Floats:
        """Half the 95 % interval over 1.96; on the linear scale simply the root."""
        root, scaling = np.sqrt(variance), self.scaling.positive()
        if not scaling.log:
            deviation = self._unscaled(root, scaling)
        else:
            upper, lower = (scaling.unscaled(self._mean + side * QUANTILE * root) for side in (1, -1))
            with np.errstate(over="ignore"):
                deviation = np.nan_to_num(((upper - lower) / (2 * QUANTILE)).astype(self.dtype))
        if np.min(scaling.unit, initial=1) > SMALLEST_UNIT and not scaling.log:
            return deviation
        smallest = np.finfo(self.dtype).smallest_subnormal  # where what is not 0 has become 0
        return np.where((variance > 0) & (deviation == 0), smallest, deviation)

    def _outlier_part(self, name: str, part: int) -> Floats:
        """As reported by a robust model; by the cross-prediction, where there is one, of another."""
        if self.cross_predicted is None:
            return self._fetched(name)
        if self.could_predict is None:
            return self._hindsight[part]
        reported = self._fetched(name)
        could = self.could_predict.reshape(-1, *([1] * (reported.ndim - 1)))
        return np.where(could, self._hindsight[part], reported)

    @cached_property
    def _hindsight(self) -> tuple[Floats, Floats]:
        """Outliers and their probability for a model that learns from every entry alike, by the standardised residual
        of the cross-prediction."""
        assert self.cross_predicted is not None
        rate, ratio = self.config.outlier_rate, self.config.outlier_variance
        values, seen = self._observations
        # Fetched first: beyond the scope of its precision, an array on the device computes in single precision.
        residual = values - np.asarray(self.cross_predicted.mean, np.float64)
        square = residual**2 / np.asarray(self.cross_predicted.variance, np.float64)
        logit = np.log(rate / (1 - rate)) - np.log(ratio) / 2 + (1 - 1 / ratio) / 2 * square
        probability: Floats = np.where(seen, 1 / (1 + np.exp(-np.clip(logit, -700, 700))), 0)
        return probability * (1 - 1 / ratio) * residual, probability.astype(self.dtype)

    @property
    def _observations(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The slice on the scale of the model, 0 where nothing was used, and where something was."""
        if self.seen is not None:
            return np.asarray(self.seen[0], np.float64), np.asarray(self.seen[1], np.bool_)
        assert self.given is not None
        host = self.given.host
        seen = host.mask if self._too_large is None else host.mask & ~self._too_large[1]
        return np.where(seen, self.scaling.scaled(host.values), 0).astype(np.float64), seen

    @cached_property
    def _too_large(self) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """The data and which of them were left out for their size, if any."""
        if self.given is None or Flags.OUT_OF_RANGE not in self._any_flags:
            return None
        return self.given.host.values, self.scaling.too_large(self.given.host)


def gathered(chunks: Sequence[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Some rows of equally long arrays laid end to end; a chunk that is None counts as zeros."""
    known = next(chunk for chunk in chunks if chunk is not None)
    arrays = [np.zeros(known.shape, known.dtype) if chunk is None else np.asarray(chunk) for chunk in chunks]
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    if len(rows) == len(joined) and (rows == np.arange(len(rows))).all():
        return joined
    return joined[rows]
