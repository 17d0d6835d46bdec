"""What an update of a fleet hands back: as `StepResult`, with members as the first axis. Fetched when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from undertow.engine.reporting import Telling
from undertow.inputs.scaling import LOG_UNIT
from undertow.model.flags import Flags
from undertow.model.phases.infer import Report
from undertow.results import Status, StepResult

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FleetTelling(Telling):
    """The reports of all members at once, in units of their data. `report` is unused; `reports` has them by chunk."""

    reports: tuple[Report | None, ...] = ()
    """None for a chunk in which nobody was present."""
    places: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    """Where the members stand in the chunks, laid end to end."""
    could_cross_predict: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Who had learned something before this slice."""

    def by_member(self, name: str) -> NDArray[Any]:
        """One array of the reports, members first; anything for those in a chunk without a report."""
        return gathered([None if one is None else getattr(one, name) for one in self.reports], self.places)

    def noise_stds(self) -> Floats:
        """Of every member."""
        noise = np.sqrt(self.by_member("usual_noise").astype(np.float64)) * np.reshape(self.scaling.unit, -1)
        finite: Floats = np.nan_to_num(noise * np.hypot(LOG_UNIT, 1) if self.scaling.log else noise)
        return finite

    def flags(self) -> Flags:
        """All that any member has."""
        return Flags(int(np.bitwise_or.reduce(self.by_member("flags"), initial=0)))

    def _fetched(self, name: str) -> Floats:
        array = self.by_member(name).astype(self.dtype, copy=False)
        return np.nan_to_num(array) if Flags.NOT_FINITE in self.flags() else array

    def _inside(self) -> Floats:
        return self._by_who_learned(self._fetched("outliers"), 0)

    def _probability(self) -> Floats:
        return self._by_who_learned(self._fetched("outlier_probability").copy(), 1)  # it may be the device's own

    def _by_who_learned(self, told: Floats, part: int) -> Floats:
        """A part of the surprises, where there are any, of those who could foretell; what was told of the others."""
        if self.cross_predicted is None:
            return told
        could = self.could_cross_predict.reshape(-1, *([1] * (told.ndim - 1)))
        return np.where(could, self._surprises[part], told)


class Statuses(Sequence[Status]):
    """How it went, by member."""

    def __init__(self, flags: NDArray[np.int32]) -> None:
        self._flags = flags

    @overload
    def __getitem__(self, place: int) -> Status: ...
    @overload
    def __getitem__(self, place: slice) -> Statuses: ...
    def __getitem__(self, place: int | slice) -> Status | Statuses:
        if isinstance(place, slice):
            return Statuses(self._flags[place])
        return Status(Flags(max(int(self._flags[place]), 0)))

    def __len__(self) -> int:
        return len(self._flags)


@dataclass(frozen=True, eq=False)
class FleetResult:
    """The newest slices, in the order of `members`: arrays are (n, I_1, …, I_N) or (n,), as in `StepResult`.

    Who was absent has NaN, and −1 for `rank`, `iterations` and `flags`.
    """

    members: NDArray[np.int64]
    """Their numbers."""
    present: NDArray[np.bool_]
    """Who had a slice."""
    told: FleetTelling
    """Where all else comes from; `told.reports` is what the device holds, in units of the streams."""

    @cached_property
    def low_rank(self) -> Floats:
        """What every entry should be, missing ones included."""
        return self._or_nan(self.told.low_rank())

    @cached_property
    def std(self) -> Floats:
        """Predictive standard deviation."""
        return self._or_nan(self.told.std())

    @cached_property
    def low_rank_std(self) -> Floats:
        """Standard deviation of the low-rank part alone."""
        return self._or_nan(self.told.low_rank_std())

    @cached_property
    def outliers(self) -> Floats:
        """Expected value of the outlier in every entry; 0 where nothing was observed."""
        return self._or_nan(self.told.outliers())

    @cached_property
    def outlier_probability(self) -> Floats:
        """Probability that an observed entry is an outlier; 0 where nothing was observed."""
        return self._or_nan(self.told.outlier_probability())

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Living components."""
        return np.where(self.present, self.told.by_member("rank"), -1)

    @cached_property
    def iterations(self) -> NDArray[np.int32]:
        """Sweeps over all unknowns."""
        return np.where(self.present, self.told.by_member("iterations"), -1)

    @cached_property
    def noise_std(self) -> Floats:
        """Typical noise standard deviation."""
        return self._or_nan(self.told.noise_stds())

    @cached_property
    def elbo(self) -> Floats:
        """Lower bound of the log evidence of each window."""
        return self._or_nan(np.nan_to_num(self.told.by_member("elbo").astype(np.float64)))

    @cached_property
    def flags(self) -> NDArray[np.int32]:
        """Flags of `undertow.model.flags.Flags`; `status` has them in words."""
        return np.where(self.present, self.told.by_member("flags"), -1)

    @property
    def status(self) -> Statuses:
        """How it went, with advice, by member."""
        return Statuses(self.flags)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, place: int) -> StepResult:
        """The result of one member, by its place in `members`."""
        if not self.present[place]:
            raise ValueError(f"member {self.members[place]} was absent and has no result: look at `present` first.")
        return StepResult(OneTelling(self, place))

    def _or_nan(self, values: Floats) -> Floats:
        absent = ~self.present
        if not absent.any():
            return values
        return np.where(absent.reshape(-1, *([1] * (values.ndim - 1))), np.nan, values)


@dataclass(frozen=True, eq=False)
class OneTelling:
    """One member's part of a result, told as a single model would."""

    result: FleetResult
    place: int

    def low_rank(self) -> Floats:
        """As in `Telling`, and so is all below."""
        value: Floats = self.result.low_rank[self.place]
        return value

    def std(self) -> Floats:
        """Of a new observation."""
        value: Floats = self.result.std[self.place]
        return value

    def low_rank_std(self) -> Floats:
        """Of the low rank alone."""
        value: Floats = self.result.low_rank_std[self.place]
        return value

    def outliers(self) -> Floats:
        """In units of the data."""
        value: Floats = self.result.outliers[self.place]
        return value

    def outlier_probability(self) -> Floats:
        """By entry."""
        value: Floats = self.result.outlier_probability[self.place]
        return value

    def rank(self) -> int:
        """Living components."""
        return int(self.result.rank[self.place])

    def noise_std(self) -> float:
        """In units of the data."""
        return float(self.result.noise_std[self.place])

    def flags(self) -> Flags:
        """As flags."""
        return Flags(int(self.result.flags[self.place]))

    def settings(self) -> dict[str, Any]:
        """By name."""
        return self.result.told.settings()

    def iterations(self) -> int:
        """Sweeps."""
        return int(self.result.iterations[self.place])

    def elbo(self) -> float:
        """The bound."""
        return float(self.result.elbo[self.place])


def gathered(chunks: Sequence[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Rows by place from arrays of chunks, all equally long; anything where a chunk is None."""
    known = next(chunk for chunk in chunks if chunk is not None)
    arrays = [np.zeros(known.shape, known.dtype) if chunk is None else np.asarray(chunk) for chunk in chunks]
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    if len(places) == len(joined) and (places == np.arange(len(places))).all():
        return joined
    return joined[places]
