"""The scoreboard: methods × cases × seeds, every baseline as published and at its best in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undertow
from undertow.lab.cases.case import Case, Condition, Dataset
from undertow.lab.evaluate import CaseResult, evaluate
from undertow.lab.hindsight import evaluations, hindsight
from undertow.lab.methods import Method
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.scores import SCORES
from undertow.lab.store import ResultStore, write_json

QUICK_METHODS = (
    "undertow,undertow_fast,undertow_paper,undertow_paper_converged,last_value,moving_mean,running_median,local_level,"
    "covariance,online_cp,online_sgd,olstec,grasta"
)


@dataclass(frozen=True)
class Comparison:
    """What is to be compared.

    Attributes:
        datasets: where the cases come from, one row for each of their conditions.
        methods: which.
        seeds: how many each, from 0.
        quick: short streams, few conditions.
        hindsight: the second column of every baseline as well.
        folder: of the data files.
    """

    datasets: Sequence[Dataset]
    methods: Sequence[Method]
    seeds: int = 3
    quick: bool = False
    hindsight: bool = True
    folder: Folder = None

    def rows(self) -> list[tuple[Dataset, Condition]]:
        """Every data set under each of its conditions; in a quick run only those meant for it, or else its first."""
        return [
            (dataset, condition)
            for dataset in self.datasets
            for condition in (dataset.in_quick or dataset.conditions[:1] if self.quick else dataset.conditions)
        ]

    def evaluations(self) -> int:
        """How many that takes, those already done included."""
        total = 0
        for dataset, condition in self.rows():
            case = self.case(dataset, condition, 0)
            for method in self.methods:
                total += self.seeds
                if self.hindsight:
                    total += evaluations(method, method.settings(case), self.seeds)
        return total

    def case(self, dataset: Dataset, condition: Condition, seed: int) -> Case:
        """One case of the comparison."""
        return dataset.case(condition, seed, self.quick, self.folder)


def compare(comparison: Comparison, out: Path, reporter: Reporter, fresh: bool = False) -> dict[str, Any]:
    """Evaluate everything, continue where an earlier run stopped, and write `scoreboard.json` after every row.

    Args:
        comparison: what is to be compared.
        out: folder for the results and the board.
        reporter: shows progress.
        fresh: do not use results of earlier runs.

    Returns:
        The board: version, methods, scores, and rows with one entry per method and choice of settings.
    """
    store = ResultStore(out / "results", fresh)
    reporter.begin(comparison.evaluations())
    board: dict[str, Any] = {
        "version": undertow.__version__,
        "quick": comparison.quick,
        "seeds": comparison.seeds,
        "methods": [
            {"name": method.name, "label": method.label, "family": method.family} for method in comparison.methods
        ],
        "scores": {name: vars(score) for name, score in SCORES.items()},
        "rows": [],
    }
    for dataset, condition in comparison.rows():
        board["rows"].append(_row(comparison, dataset, condition, store, reporter))
        write_json(out / "scoreboard.json", board)
    return board


def _row(
    comparison: Comparison, dataset: Dataset, condition: Condition, store: ResultStore, reporter: Reporter
) -> dict[str, Any]:
    cases = [comparison.case(dataset, condition, seed) for seed in range(comparison.seeds)]
    entries: dict[str, Any] = {}
    for method in comparison.methods:
        own = [method.settings(case) for case in cases]
        found = [evaluate(case, method, settings, store, reporter) for case, settings in zip(cases, own, strict=True)]
        entries[method.name] = {"default" if method.family == "undertow" else "published": _summary(found)}
        if comparison.hindsight and (best := hindsight(cases, method, own, store, reporter)):
            entries[method.name]["hindsight"] = _summary(best.results)
    finished = [entry for columns in entries.values() for entry in columns.values() if entry["status"] == "ok"]
    return {
        "dataset": dataset.name,
        "title": dataset.title,
        "recorded": dataset.recorded,
        "condition": condition.name,
        "shape": finished[0]["shape"] if finished else None,
        "slices": (dataset.quick if comparison.quick else dataset.full).slices,
        "decided_by": finished[0]["decided_by"] if finished else None,
        "entries": entries,
    }


def _summary(results: list[CaseResult]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds that ran."""
    good = [result for result in results if result["status"] == "ok"]
    if not good:
        return {"status": results[0]["status"], "reason": results[0]["reason"]}
    means: dict[str, float | None] = {}
    deviations: dict[str, float] = {}
    for name in [*SCORES, "seconds"]:
        values = [value for result in good if (value := result["scores"].get(name)) is not None]
        means[name] = float(np.mean(values)) if len(values) == len(good) else None
        if len(values) > 1:
            deviations[name] = float(np.std(values, ddof=1))
    return {
        "status": "ok",
        "reason": "",
        "decided_by": good[0]["decided_by"],
        "shape": good[0]["shape"],
        "seeds": len(good),
        "scores": means,
        "deviations": deviations,
        "settings": {name: value for name, value in good[0]["settings"].items() if name != "seed"},
        "flagged": [sentence for result in good for sentence in result["flagged"]][:3],
    }
