"""The column "in hindsight": every baseline at the settings of its grid that turn out best on the scored error.

No user could choose so: the settings are picked by the very entries that were hidden, which flatters the baseline and
is meant to. What is still worse than Undertow with its defaults has no excuse in its settings.

A baseline declares its grid (`Baseline.hindsight`): stages, each with the values to try of one or more settings in all
combinations. The published value of a setting is always among them. The first stage starts from the published settings,
every other one from the best settings so far. To bound the cost, a grid is searched on the first case of a row; its
three best and the published settings then run on all cases, and the least mean error wins. So the column is never worse
than the published one. Every evaluation is kept in the store, as all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, prod

import numpy as np

from undertow.lab.baselines.baseline import Stage
from undertow.lab.cases.case import Case
from undertow.lab.evaluate import CaseResult, evaluate
from undertow.lab.methods import Method, Settings
from undertow.lab.reporter import Reporter
from undertow.lab.scores import SCORES
from undertow.lab.store import ResultStore

FINALISTS = 3


@dataclass(frozen=True)
class Best:
    """The best settings in hindsight.

    Attributes:
        changes: what they change in the published ones.
        results: one for each case.
    """

    changes: Settings
    results: list[CaseResult]


def evaluations(method: Method, published: Settings, cases: int) -> int:
    """How many evaluations the search takes at most, those already done included."""
    if not method.hindsight:
        return 0
    tried = sum(1 + prod(len(values) for values in _with_published(stage, published)) for stage in method.hindsight)
    return tried + (FINALISTS + 1) * cases


def hindsight(
    cases: Sequence[Case],
    method: Method,
    published: Sequence[Settings],
    store: ResultStore,
    reporter: Reporter,
    score: str | None = None,
) -> Best | None:
    """The settings of the method's grid with the least error over the cases, and their results.

    Args:
        cases: of one row: the same stream under several seeds.
        method: with a grid.
        published: its own settings for every case.
        store: of finished results.
        reporter: shows progress, of exactly as many evaluations as `evaluations` says.
        score: that decides; None for the one that decides the case.

    Returns:
        None for a method without a grid, and for one that cannot run on these cases.
    """
    if not method.hindsight:
        return None
    counted = 0

    def results(changes: Settings, which: Sequence[int]) -> list[CaseResult]:
        nonlocal counted
        counted += len(which)
        return [evaluate(cases[one], method, changed(published[one], changes), store, reporter) for one in which]

    def error(found: list[CaseResult]) -> float:
        return float(np.mean([_distance(one, score) for one in found]))

    best: Best | None = None
    first = results({}, [0])
    if first[0]["status"] == "ok":
        tried: list[tuple[Settings, float]] = [({}, error(first))]
        for stage in method.hindsight:
            start = min(tried, key=lambda pair: pair[1])[0]
            for changes in _combinations(stage, start, published[0]):
                if all(changes != known for known, _ in tried):
                    tried.append((changes, error(results(changes, [0]))))
        ranked = sorted(tried, key=lambda pair: pair[1])
        finalists = [{}, *(changes for changes, value in ranked[:FINALISTS] if changes and value < inf)]
        everywhere = [Best(changes, results(changes, range(len(cases)))) for changes in finalists]
        best = min(everywhere, key=lambda one: error(one.results))
    for _ in range(evaluations(method, published[0], len(cases)) - counted):
        reporter.done()
    return best


def changed(published: Settings, changes: Settings) -> Settings:
    """Settings with changes; what makes no difference is left out, so that a kept result is found again."""
    merged = {**published, **changes}
    return {name: value for name, value in merged.items() if (name, value) != ("scale", "linear")}


def _combinations(stage: Stage, start: Settings, published: Settings) -> list[Settings]:
    """The start with every combination of the stage's values; what equals the published settings is no change."""
    combined = [dict(zip(stage, values, strict=True)) for values in product(*_with_published(stage, published))]
    merged = [changed({}, {**start, **one}) for one in combined]
    return [{name: value for name, value in one.items() if published.get(name) != value} for one in merged]


def _with_published(stage: Stage, published: Settings) -> list[tuple[object, ...]]:
    """The values of every setting of a stage, the published one among them."""
    return [
        tuple(dict.fromkeys((published[name], *values) if name in published else values))
        for name, values in stage.items()
    ]


def _distance(result: CaseResult, score: str | None) -> float:
    """How far from perfect; infinite where it did not run or has no such score."""
    if result["status"] != "ok":
        return inf
    name = score or result["decided_by"]
    value = result["scores"].get(name)
    if value is None:  # BRTF predicts nothing: a row decided by prediction cannot tell its settings apart
        return inf
    return -float(value) if SCORES[name].better == "high" else float(value)
