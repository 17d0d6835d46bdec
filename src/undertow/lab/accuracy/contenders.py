"""Who takes part: Undertow's presets, and every rival in the registry of baselines, all driven alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from undertow.estimator import RobustCP
from undertow.lab.accuracy.case import Case
from undertow.lab.accuracy.track import Recorder, Tick, Track
from undertow.lab.baselines import METHODS, Method, brtf

Settings = dict[str, Any]
Family = Literal["ours", "rival", "naive"]


@dataclass(frozen=True)
class Contender:
    """One method, ready to be run on any case.

    name      its key
    label     for people
    family    "ours", "rival" or "naive"
    follow    runs it on a case
    settings  its own choice of settings, given the rank and season of a stream and a seed
    refuses   why it cannot run on a case, or None
    """

    name: str
    label: str
    family: Family
    follow: Callable[[Case, Settings, Tick], Track]
    settings: Callable[[int, int | None, int], Settings]
    refuses: Callable[[Case, Settings], str | None]


def _follow_ours(case: Case, settings: Settings, tick: Tick) -> Track:
    model = RobustCP(**settings)
    recorder = Recorder()
    held = None  # as for every method without a model of time: tomorrow is like today
    for values in case.values:
        begin = time.perf_counter()
        result = model.update(values)
        seconds = time.perf_counter() - begin
        recorder.add(
            seconds,
            result.low_rank,
            prediction=held,
            std=result.std,
            probability=result.outlier_probability,
            score=result.outlier_probability,
            rank=result.rank,
            trouble=None if result.status.ok else ", ".join(result.status.codes).lower(),
        )
        held = result.low_rank
        tick()
    return recorder.track()


def _follow_rival(method: Method) -> Callable[[Case, Settings, Tick], Track]:
    def follow(case: Case, settings: Settings, tick: Tick) -> Track:
        unit = typical_size(case.values) if method.needs_unit_scale else 1.0
        state = method.init(method.configure(**settings), case.shape)
        recorder = Recorder()
        for values, shown in zip(case.values / unit, case.shown, strict=True):
            begin = time.perf_counter()
            state, result = method.step(state, values, shown)
            seconds = time.perf_counter() - begin
            recorder.add(
                seconds,
                result.low_rank * unit,
                prediction=None if result.prediction is None else result.prediction * unit,
                score=result.outlier_score,
                rank=result.rank,
                trouble=None if result.status in ("ok", "initialising") else result.status,
            )
            tick()
        return recorder.track()

    return follow


def _follow_batch(case: Case, settings: Settings, tick: Tick) -> Track:
    """BRTF on the whole stream at once: it sees the future, and predicts nothing."""
    unit = typical_size(case.values)
    config = METHODS["brtf"].configure(**settings)
    brtf.fit(METHODS["brtf"].configure(**{**settings, "iterations": 1}), case.values / unit)  # compilation
    begin = time.perf_counter()
    fit = brtf.fit(config, case.values / unit)
    seconds = (time.perf_counter() - begin) / len(case)
    recorder = Recorder()
    for low_rank, outliers in zip(fit.low_rank, fit.outliers, strict=True):
        trouble = None if fit.status == "ok" else fit.status
        recorder.add(seconds, low_rank * unit, score=np.abs(outliers), rank=fit.rank, trouble=trouble)
        tick()
    return recorder.track()


def typical_size(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Mean |entry| of the first slice that shows anything but zeros: all a streaming method can know of the unit."""
    for one in values:
        seen = one[~np.isnan(one)]
        if seen.size and (size := float(np.abs(seen).mean())) > 0:
            return size
    return 1.0


_LABELS = {
    "last_value": "last value",
    "moving_mean": "moving mean",
    "running_median": "running median",
    "online_cp": "Online-CP",
    "online_sgd": "Online-SGD",
    "olstec": "OLSTEC",
    "olstec_truncated": "OLSTEC (truncated)",
    "brtf": "BRTF (batch)",
    "grasta": "GRASTA",
    "sofia": "SOFIA",
    "tensorly_robust_pca": "TensorLy robust PCA",
    "tensorly_masked_cp": "TensorLy masked CP",
}
_REFIT_LIMIT = 2_000  # entries of a slice beyond which a method that refits a window takes minutes a slice


def _ours(preset: str, name: str, label: str, **fixed: Any) -> Contender:
    def settings(rank: int, period: int | None, seed: int) -> Settings:
        return {"preset": preset, **fixed, **({"max_rank": rank} if preset == "paper" else {})}

    return Contender(name, label, "ours", _follow_ours, settings, lambda case, settings: None)


def _rival(method: Method) -> Contender:
    def settings(rank: int, period: int | None, seed: int) -> Settings:
        offered = {"rank": rank, "period": period, "seed": seed}
        return {name: value for name, value in offered.items() if name in method.knobs and value is not None}

    def refuses(case: Case, settings: Settings) -> str | None:
        if not method.missing and not bool(case.shown.all()):
            return "needs complete slices"
        fewest, most = method.orders
        if len(case.shape) < fewest or (most is not None and len(case.shape) > most):
            return f"does not take slices with {len(case.shape)} modes"
        if "period" in method.knobs:
            config = method.configure(**settings)
            if "period" not in settings:
                return "needs a season"
            if config.cycles * config.period > case.burn_in:
                return f"needs {config.cycles} seasons of {config.period} slices before it is judged"
        if method.batch and method.name != "brtf" and np.prod(case.shape) > _REFIT_LIMIT:
            return f"refits a window at every slice: minutes a slice beyond {_REFIT_LIMIT} entries"
        return None

    family: Family = "naive" if method.citation == "no model" else "rival"
    follow = _follow_batch if method.name == "brtf" else _follow_rival(method)
    return Contender(method.name, _LABELS.get(method.name, method.name), family, follow, settings, refuses)


_ALL = (
    _ours("default", "undertow", "Undertow"),
    _ours("fast", "undertow_fast", "Undertow (fast)"),
    _ours("paper", "undertow_paper", "Undertow (paper)", window=20, forgetting=0.98),
    *map(_rival, METHODS.values()),
)

CONTENDERS: Mapping[str, Contender] = {contender.name: contender for contender in _ALL}


def chosen(names: str | None) -> list[Contender]:
    """The contenders of a comma-separated list and always the naive ones; without a list, all.

    An unknown name is answered with the known ones.
    """
    wanted = list(CONTENDERS) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in CONTENDERS]
    if unknown or not wanted:
        raise ValueError(f"unknown method {', '.join(unknown) or '(none)'}: choose from {', '.join(CONTENDERS)}")
    naive = [name for name, contender in CONTENDERS.items() if contender.family == "naive"]
    return [CONTENDERS[name] for name in dict.fromkeys([*wanted, *naive])]
