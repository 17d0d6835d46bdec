"""All methods: Undertow's presets and every baseline, followed through a case in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from undertow.estimator import RobustCP
from undertow.lab.baselines import METHODS, Baseline
from undertow.lab.baselines.baseline import Stage
from undertow.lab.cases.case import Case, Data, Floats
from undertow.lab.names import pick, separated
from undertow.lab.scales import SCALES
from undertow.lab.track import Answer, Tick, Track, stack
from undertow.runs.default_model import default_model

Settings = dict[str, Any]
Family = Literal["undertow", "baseline", "naive"]

PAPER: Settings = {"preset": "paper", "window": 20, "forgetting": 0.98}
"""The paper's model; it stops after six iterations, as its authors' code does, unless asked otherwise."""


@dataclass(frozen=True, eq=False)
class Method:
    """One method, ready to be followed through any case.

    Attributes:
        name: its key.
        label: for people.
        family: "undertow", "baseline" or "naive".
        module: where its code is: what a kept result depends on.
        answers: (data, settings) → an answer for every slice.
        settings: its own choice for a case.
        unsupported: why it cannot run on these data, or None.
        hindsight: the grid of settings for its column "in hindsight"; none: it has no such column.
    """

    name: str
    label: str
    family: Family
    module: str
    answers: Callable[[Data, Settings], Iterator[Answer]]
    settings: Callable[[Case], Settings]
    unsupported: Callable[[Data, Settings], str | None] = lambda data, settings: None
    hindsight: tuple[Stage, ...] = ()

    def follow(self, data: Data, settings: Settings, tick: Tick = lambda: None) -> Track:
        """The method's answers to all slices, one after the other."""
        return stack(self.answers(data, settings), tick)


def undertow_answers(data: Data, settings: Settings, make: Callable[..., Any] = default_model) -> Iterator[Answer]:
    """A model of Undertow with these settings. A slice is done when its mean is on the host."""
    model = make(**settings)
    last = None  # as for every method without a model of time: the prediction is the last mean
    for values in data.values:
        begin = time.perf_counter()
        result = model.update(values)
        mean = result.mean
        seconds = time.perf_counter() - begin
        yield Answer(
            seconds,
            mean,
            prediction=last,
            std=result.std,
            probability=result.outlier_probability,
            score=result.outlier_probability,
            novelty=result.novelty,
            rank=result.rank,
            flag="" if result.status.ok else ", ".join(result.status.codes).lower(),
        )
        last = mean


def scaled_answers(baseline: Baseline, data: Data, settings: Settings) -> Iterator[Answer]:
    """A baseline on the scale that its settings name, its answers on the scale of the data."""
    own = dict(settings)
    scale = SCALES[own.pop("scale", "linear")]
    answers = baseline_answers if baseline.fit is None else batch_answers
    if scale is SCALES["linear"]:
        yield from answers(baseline, data, own)
        return
    size = typical_size(data.values)
    for answer in answers(baseline, replace(data, values=scale.forward(data.values / size)), own):
        prediction = None if answer.prediction is None else scale.backward(answer.prediction) * size
        yield replace(answer, low_rank=scale.backward(answer.low_rank) * size, prediction=prediction)


def baseline_answers(baseline: Baseline, data: Data, settings: Settings, unit: float | None = None) -> Iterator[Answer]:
    """A baseline, slice by slice; `unit` divides the data, by default as the baseline needs it."""
    if unit is None:
        unit = typical_size(data.values) if baseline.needs_unit_scale else 1.0
    state = baseline.init(baseline.configure(**settings), data.shape)
    for values, shown in zip(data.values / unit, data.shown, strict=True):
        begin = time.perf_counter()
        state, result = baseline.step(state, values, shown)
        seconds = time.perf_counter() - begin
        yield Answer(
            seconds,
            result.low_rank * unit,
            prediction=None if result.prediction is None else result.prediction * unit,
            score=result.outlier_score,
            rank=result.rank,
            flag="" if result.status in ("ok", "initialising") else result.status,
        )


def batch_answers(baseline: Baseline, data: Data, settings: Settings, unit: float | None = None) -> Iterator[Answer]:
    """A baseline given the whole stream together: it predicts nothing, and unless it is causal sees the future."""
    assert baseline.fit is not None
    unit = typical_size(data.values) if unit is None else unit
    config = baseline.configure(**settings)
    if "iterations" in baseline.settings:
        baseline.fit(baseline.configure(**{**settings, "iterations": 1}), data.values / unit)  # compilation
    begin = time.perf_counter()
    fit = baseline.fit(config, data.values / unit)
    seconds = (time.perf_counter() - begin) / len(data)
    flag = "" if fit.status == "ok" else fit.status
    for low_rank, outliers in zip(fit.low_rank, fit.outliers, strict=True):
        yield Answer(seconds, low_rank * unit, score=np.abs(outliers), rank=fit.rank, flag=flag)


def typical_size(values: Floats) -> float:
    """Mean |entry| of the first slice that shows anything but zeros: all a streaming method can know of the unit."""
    for one in values:
        seen = one[~np.isnan(one)]
        if seen.size and (size := float(np.abs(seen).mean())) > 0:
            return size
    return 1.0


def robust_cp(name: str, label: str, **given: Any) -> Method:
    """`RobustCP` with these settings; the paper's model is offered the true rank, as baselines are."""

    def settings(case: Case) -> Settings:
        return {**given, **({"max_rank": case.dataset.rank} if given.get("preset") == "paper" else {})}

    answers = partial(undertow_answers, make=RobustCP)
    return Method(name, label, "undertow", "undertow.estimator", answers, settings)


def _of(baseline: Baseline) -> Method:
    def settings(case: Case) -> Settings:
        offered = {"rank": case.dataset.rank, "period": case.dataset.period, "seed": case.seed}
        return {name: value for name, value in offered.items() if name in baseline.settings and value is not None}

    def answers(data: Data, settings: Settings) -> Iterator[Answer]:
        return scaled_answers(baseline, data, settings)

    def unsupported(data: Data, settings: Settings) -> str | None:
        if not baseline.missing and not bool(data.shown.all()):
            return "needs complete slices"
        fewest, most = baseline.orders
        if len(data.shape) < fewest or (most is not None and len(data.shape) > most):
            return f"does not take slices with {len(data.shape)} modes"
        if "period" in baseline.settings:
            if "period" not in settings:
                return "needs a season"
            config = baseline.configure(**{name: value for name, value in settings.items() if name != "scale"})
            if config.cycles * config.period > data.burn_in:
                return f"needs {config.cycles} seasons of {config.period} slices before it is scored"
        if baseline.most_entries is not None and np.prod(data.shape) > baseline.most_entries:
            return f"takes too long or too much memory beyond {baseline.most_entries} entries a slice"
        return None

    family: Family = "naive" if baseline.naive else "baseline"
    label = baseline.label + (" (batch)" if baseline.fit and not baseline.causal else "")
    module = baseline.step.__module__
    return Method(baseline.name, label, family, module, answers, settings, unsupported, baseline.hindsight)


ALL_METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("undertow", "Undertow", "undertow", "undertow.runs.default_model", undertow_answers, lambda case: {}),
        robust_cp("undertow_fast", "RobustCP (fast)", preset="fast"),
        robust_cp("undertow_paper", "RobustCP (paper)", **PAPER),
        robust_cp("undertow_paper_converged", "RobustCP (paper, converged)", **PAPER, max_iterations=100),
        *map(_of, METHODS.values()),
    )
}
"""Every method by name."""
NAIVE = tuple(name for name, method in ALL_METHODS.items() if method.family == "naive")
"""Never left out of a comparison."""


def chosen(names: str | None) -> list[Method]:
    """The methods of a comma-separated list and always the naive ones; without a list, all."""
    wanted = pick("method", separated(names), ALL_METHODS)
    return list(dict.fromkeys([*wanted, *(ALL_METHODS[name] for name in NAIVE)]))
