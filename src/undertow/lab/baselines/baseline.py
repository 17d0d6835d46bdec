"""What a baseline is, and what it reports about one slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab import scales

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Stage = Mapping[str, tuple[Any, ...]]

RANKS = (1, 3, 5, 10, 20)
"""Ranks tried in hindsight, beside the one on offer."""
SCALES = tuple(scales.SCALES)
"""Scales tried in hindsight. "scale" may be set for every baseline; `undertow.lab.methods` takes care of it."""
RANK_AND_SCALE: tuple[Stage, ...] = ({"rank": RANKS, "scale": SCALES},)
"""Every rank on every scale."""
SCALE_THEN_RANK: tuple[Stage, ...] = ({"scale": SCALES}, {"rank": RANKS})
"""The same one after the other, for slow methods."""


@dataclass(frozen=True)
class BaselineResult:
    """One slice as a baseline sees it. Every array has the shape of the slice and belongs to the caller.

    Attributes:
        low_rank: the whole slice as the method explains it, missing entries filled in.
        prediction: this slice as predicted before anything was learned from it; None where nothing was known yet.
            Methods without a model of time hold their last temporal row, so they predict their last slice.
        outliers: the sparse part, zero where nothing is an outlier; None for methods without one.
        outlier_score: larger = more outlying, zero where nothing was observed; fit for average precision.
        rank: components in use; None for methods without components.
        status: "ok", "initialising" (the method still gathers its first slices: low_rank is then the data, missing
            entries at their mean), "no data" (nothing observed: the state did not learn), "rank 0", "diverged"
            (not a finite number any more: low_rank is zero, the state is kept as it was, or starts gathering afresh
            where the slices gathered so far cannot be factorised).
    """

    low_rank: Array
    prediction: Array | None
    outliers: Array | None
    outlier_score: Array | None
    rank: int | None
    status: str


@dataclass(frozen=True, eq=False)
class Baseline:
    """A method to compare with, and what it can do.

    Attributes:
        name: its key.
        label: for people.
        init: state = init(config, shape).
        step: state, result = step(state, values, mask).
        Config: dataclass of its settings.
        citation: where it comes from; "" for methods without a model, which are never left out of a comparison.
        missing: takes incomplete slices.
        orders: smallest and largest order of a slice; None for no largest.
        batch: refits a window from scratch at every step.
        needs_unit_scale: its settings are absolute: scale the data to mean |entry| ≈ 1 first.
        robust: models outliers.
        requires: a package it needs beyond the core, or None.
        defaults: settings that this entry sets differently from the Config.
        fit: fit(config, tensor, mask) of a method that may be given the whole stream together.
        causal: what `fit` says about a slice comes from this slice and those before it only.
        most_entries: of a slice, beyond which it takes minutes a slice or too much memory; None for no limit.
        hindsight: the grid for its best settings in hindsight: stages, each the settings to try with their values, all
            combinations of them; a stage starts from the best settings of the one before.
    """

    name: str
    label: str
    init: Callable[[Any, tuple[int, ...]], Any]
    step: Callable[..., tuple[Any, BaselineResult]]
    Config: type[Any]
    citation: str
    missing: bool = True
    orders: tuple[int, int | None] = (1, None)
    batch: bool = False
    needs_unit_scale: bool = True
    robust: bool = False
    requires: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    fit: Callable[..., Any] | None = None
    causal: bool = False
    most_entries: int | None = None
    hindsight: tuple[Stage, ...] = ()

    @property
    def naive(self) -> bool:
        """Has no model."""
        return not self.citation

    @property
    def settings(self) -> tuple[str, ...]:
        """Names that `configure` takes."""
        return tuple(setting.name for setting in fields(self.Config))

    def configure(self, **settings: Any) -> Any:
        """A Config of this entry; unknown names are refused with the list of the known ones."""
        unknown = sorted(set(settings) - set(self.settings))
        if unknown:
            raise TypeError(f"{self.name} has no setting {', '.join(unknown)}: it has {', '.join(self.settings)}")
        return self.Config(**{**self.defaults, **settings})
