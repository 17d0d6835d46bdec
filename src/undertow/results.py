"""What a step hands back: the slice as Undertow sees it, and trouble as a value with advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.model.flags import Flags

Floats = NDArray[np.floating[Any]]

_ADVICE = {
    Flags.EMPTY: "nothing was observed in this slice: the low rank is the prior's guess, see std",
    Flags.NOT_CONVERGED: "the sweeps ended at max_iterations before the slice stood still: raise it if this goes on",
    Flags.RANK_FULL: "all max_rank components are in use: raise max_rank if the error matters more than the time",
    Flags.RANK_ZERO: "no structure was found above the noise: wait for more slices, or lengthen the window",
    Flags.MANY_OUTLIERS: "most of this slice does not fit the factors: the scene has changed, or the slice is bad",
    Flags.CHANGED: "this slice did not fit what was learned before it: the scene has changed, "
    "errors may be large for a while",
    Flags.NO_NOISE: "the data are fitted to the last digit: the error bars are at their least, not to be trusted",
    Flags.SINGULAR: "some rows could not be solved and kept their last values: use dtype='float64'",
    Flags.OUT_OF_RANGE: "some values are a billion times the stream's usual size and were left out as outliers: "
    "check the data, or start a new model if the unit has changed",
    Flags.NOT_FINITE: "the arithmetic overflowed, and this slice was left out: use dtype='float64'",
}

_HARMLESS = Flags.RANK_FULL | Flags.RANK_ZERO | Flags.EMPTY
"""Worth knowing, but the answer is as good as the data allow."""


@dataclass(frozen=True)
class Status:
    """How a step went. ``str(status)`` is "ok" or the advice, one sentence per trouble."""

    flags: Flags = Flags.NONE

    @property
    def ok(self) -> bool:
        """False where the answer is worse than the data would allow, or the slice itself is suspicious."""
        return not self.flags & ~_HARMLESS

    @property
    def codes(self) -> tuple[str, ...]:
        """Names of what was noticed, for machines."""
        return tuple(flag.name or "" for flag in Flags if flag and flag in self.flags)

    @property
    def advice(self) -> tuple[str, ...]:
        """One sentence for each."""
        return tuple(text for flag, text in _ADVICE.items() if flag in self.flags)

    def __str__(self) -> str:
        return "; ".join(self.advice) or "ok"


class Estimate:
    """One slice as Undertow sees it, in the units of the data. Arrays have the shape of the slice; where only
    observed entries are kept (sparse slices), one number for each entry that was given, in the same order.
    A slice that came in single precision, or as integers of up to 16 bits, is told in single precision; one that comes
    out of the model's memory (`smoothed`, `at`) in double.

    Everything is fetched from where it was computed when it is first asked for, and set out before that where the last
    slices were asked for the same: a loop that asks for the results of one slice after it has handed over the next one
    keeps both machines busy.

    Args:
        told: where all of it comes from, `telling.Telling` or its like.
        outliers_told: where the outliers come from, if that is another.
    """

    def __init__(self, told: Any, outliers_told: Any = None) -> None:
        self._told = told
        self._outliers_told = told if outliers_told is None else outliers_told

    def _watched(self, demand: Any) -> tuple[Any, Any]:
        """Where all of it and where the outliers come from, both of which tell `demand` what they are asked for."""
        told = replace(self._told, demand=demand)
        same = self._outliers_told is self._told
        return told, told if same else replace(self._outliers_told, demand=demand)

    @cached_property
    def low_rank(self) -> Floats:
        """What every entry should be, missing ones included: its low-rank part, and its level where there is one."""
        value: Floats = self._told.low_rank()
        return value

    @cached_property
    def std(self) -> Floats:
        """Predictive standard deviation: about 95 % of new, clean observations fall within ±1.96 std of `low_rank`."""
        value: Floats = self._told.std()
        return value

    @cached_property
    def low_rank_std(self) -> Floats:
        """Standard deviation of the low-rank part alone. Mean-field makes it too small."""
        value: Floats = self._told.low_rank_std()
        return value

    @cached_property
    def outliers(self) -> Floats:
        """Expected value of the outlier in every entry; 0 where nothing was observed."""
        value: Floats = self._outliers_told.outliers()
        return value

    @cached_property
    def outlier_probability(self) -> Floats:
        """Probability that an observed entry is an outlier; 0 where nothing was observed."""
        value: Floats = self._outliers_told.outlier_probability()
        return value

    @cached_property
    def rank(self) -> int:
        """Living components."""
        value: int = self._told.rank()
        return value

    @cached_property
    def noise_std(self) -> float:
        """Typical noise standard deviation."""
        value: float = self._told.noise_std()
        return value

    @cached_property
    def status(self) -> Status:
        """How it went, with advice."""
        return Status(self._told.flags())

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The settings that this answer was found with; those not given were chosen for the stream."""
        value: Mapping[str, Any] = self._told.settings()
        return value

    @property
    def indices(self) -> tuple[NDArray[np.int32], ...] | None:
        """Where the entries lie, one array per mode; None where the arrays are the whole slice."""
        value: tuple[NDArray[np.int32], ...] | None = self._told.indices
        return value

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}(rank={self.rank}, noise_std={self.noise_std:.3g}, status={str(self.status)!r})"


class StepResult(Estimate):
    """The newest slice, and how the step went."""

    @cached_property
    def iterations(self) -> int:
        """Sweeps over all unknowns."""
        value: int = self._told.iterations()
        return value

    @cached_property
    def elbo(self) -> float:
        """Lower bound of the log evidence of the window, in the stream's own unit. Not comparable between settings."""
        value: float = self._told.elbo()
        return value
