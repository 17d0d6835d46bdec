"""Anything with `update` is a model: how one is followed through a stream, and those that have a name.

`RobustCP` is one as it is; baselines become one through `BaselineModel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

import undertow
from undertow.lab.baselines import METHODS, Baseline
from undertow.lab.methods import typical_size
from undertow.lab.names import pick
from undertow.lab.track import Answer, Floats, Tick, Track, stack


class Model(Protocol):
    """Learns one slice after the other.

    The result has `mean` and, or None where the model has no such thing, `std`, `outliers` and `outlier_probability`;
    `rank`, `score` and `status` are taken note of where there are any.
    """

    def update(self, x: Any, /) -> Any:
        """Learn a slice, NaN where nothing was observed, and say what it should be."""


Make = Callable[[], Model]
"""A new model that has seen nothing."""


def follow(model: Model, values: Floats, tick: Tick = lambda: None) -> Track:
    """What a model answers to all slices, one after the other; `low_rank` of the track is the result's `mean`.

    Args:
        model: that has seen nothing yet.
        values: (T, *shape), NaN where nothing was observed.
        tick: called after every slice.
    """
    return stack(_answers(model, values), tick)


def _answers(model: Model, values: Floats) -> Iterator[Answer]:
    for x in values:
        begin = time.perf_counter()
        result = model.update(x)
        mean = np.asarray(result.mean)
        seconds = time.perf_counter() - begin
        score = getattr(result, "score", result.outlier_probability)
        yield Answer(
            seconds,
            mean,
            std=result.std,
            probability=result.outlier_probability,
            score=score,
            novelty=getattr(result, "novelty", None),
            rank=getattr(result, "rank", None),
            flag=", ".join(getattr(getattr(result, "status", None), "codes", ())).lower(),
        )


@dataclass(frozen=True, eq=False)
class BaselineAnswer:
    """A baseline's answer under the names of a model's result; baselines have neither error bars nor probabilities."""

    mean: Floats
    outliers: Floats | None
    score: Floats | None
    rank: int | None
    std: None = None
    outlier_probability: None = None


class BaselineModel:
    """A baseline with `update`; data are divided by the typical size of the first slice where the baseline needs that.

    Args:
        baseline: which.
        settings: of the baseline.
    """

    def __init__(self, baseline: Baseline, **settings: Any) -> None:
        self._baseline = baseline
        self._config = baseline.configure(**settings)
        self._state: Any = None
        self._unit: float | None = None if baseline.needs_unit_scale else 1.0

    def update(self, x: Any, /) -> BaselineAnswer:
        """Learn a slice, NaN where nothing was observed."""
        values = np.asarray(x, dtype=np.float64)
        shown = ~np.isnan(values)
        if self._state is None:
            self._state = self._baseline.init(self._config, values.shape)
        if self._unit is None and np.any(values[shown] != 0):
            self._unit = typical_size(values[np.newaxis])
        unit = self._unit or 1.0
        self._state, result = self._baseline.step(self._state, values / unit, shown)
        outliers = None if result.outliers is None else result.outliers * unit
        return BaselineAnswer(result.low_rank * unit, outliers, result.outlier_score, result.rank)


def _own() -> dict[str, Callable[..., Model]]:
    """Undertow's models: those that the package has."""
    return {name: getattr(undertow, kind) for name, kind in _OWN.items() if kind in undertow.__all__}


_OWN = {"tracker": "Tracker", "cp": "RobustCP"}
MODELS: Mapping[str, Callable[..., Model]] = {
    **_own(),
    **{name: partial(BaselineModel, baseline) for name, baseline in METHODS.items() if baseline.fit is None},
}
"""Every model by name: called with settings, it makes a new one."""
DEFAULT = next(iter(MODELS))
"""What a user gets who sets nothing."""


def maker(name: str, settings: Mapping[str, Any]) -> Make:
    """What makes the model of a name with these settings; an unknown name is answered with the known ones."""
    (make,) = pick("method", [name], MODELS)
    return partial(make, **settings)
