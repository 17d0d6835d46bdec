"""Accuracy on generated streams: Undertow by default, with settings tuned per row, its other presets, naive methods.

Mean over seeds of the median over slices 20.. of ‖L − L_true‖ / ‖L_true‖; F1 of outliers at probability > ½.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.lab.cases import DATASETS, Case, Condition
from undertow.lab.evaluate import evaluate
from undertow.lab.methods import ALL_METHODS, NAIVE, robust_cp
from undertow.lab.reporter import Reporter
from undertow.lab.store import ResultStore
from undertow.lab.studies.table import StudyTable, mean

ROBUST_CP = robust_cp("undertow_cp", "RobustCP")
UNDERTOW: dict[str, dict[str, Any]] = {
    "tuned": {"preset": "default"},
    "fast": {"preset": "fast"},
    "paper": {"preset": "paper"},
    "paper, converged": {"preset": "paper", "max_iterations": 100},
}
"""Columns of `RobustCP` with the row's settings, and what else is set in them."""
Numbers = dict[str, dict[str, list[dict[str, float | None]]]]


@dataclass(frozen=True)
class AccuracyRow:
    """One case, settings for it, and the error that the default preset is to reach with them."""

    name: str
    dataset: str
    condition: Condition
    settings: dict[str, float]
    at_most: float


_FULL, _SPARSE, _SEVERE = Condition(1.0, 0.02), Condition(0.15, 0.02), Condition(0.1, 0.1)
ROWS = (
    AccuracyRow("40×40 r5, full", "drifting", _FULL, {"max_rank": 12, "window": 10, "forgetting": 0.9}, 0.035),
    AccuracyRow(
        "40×40 r5, 15 % observed", "drifting", _SPARSE, {"max_rank": 5, "window": 10, "forgetting": 0.8}, 0.092
    ),
    AccuracyRow(
        "50×50 r10, 10 % outliers, 10 % observed",
        "drifting_rank10",
        _SEVERE,
        {"max_rank": 16, "window": 20, "forgetting": 0.95},
        0.22,
    ),
    AccuracyRow(
        "20×20×10 r4, 5 % outliers, 30 % observed",
        "drifting_3way",
        Condition(0.3, 0.05),
        {"max_rank": 8, "window": 10, "forgetting": 0.9},
        0.035,
    ),
    AccuracyRow("authors' 40×40 r5, full", "authors", _FULL, {"max_rank": 10, "window": 10, "forgetting": 0.9}, 0.0021),
    AccuracyRow(
        "authors' 40×40 r5, 15 % observed",
        "authors",
        _SPARSE,
        {"max_rank": 10, "window": 20, "forgetting": 0.95},
        0.0042,
    ),
    AccuracyRow(
        "authors' 50×50 r10, 10 % outliers, 10 % observed",
        "authors_rank10",
        _SEVERE,
        {"max_rank": 16, "window": 20, "forgetting": 0.95},
        0.0050,
    ),
)


def accuracy(seeds: Sequence[int], store: ResultStore, reporter: Reporter) -> tuple[StudyTable, Numbers]:
    """Every column of Undertow and naive method on every row and seed."""
    names = ("default", *UNDERTOW, *NAIVE)
    reporter.begin(len(ROWS) * len(seeds) * len(names))
    others = tuple(name for name in names if name not in ("default", "tuned"))
    headings = ("stream", "default", "F1", "rank", "within ±1.96 std", "tuned", "at most", *others)
    table = StudyTable(f"Median relative error of L, mean over {len(seeds)} seeds", headings)
    numbers: Numbers = {}
    for row in ROWS:
        found: dict[str, list[dict[str, float | None]]] = {name: [] for name in names}
        for seed in seeds:
            case = DATASETS[row.dataset].case(row.condition, seed)
            for name in found:
                found[name].append(measure(row, case, name, store, reporter))
        numbers[row.name] = found
        error = {name: [one["error"] for one in results] for name, results in found.items()}
        default = found["default"]
        table.rows.append(
            (
                row.name,
                mean(error["default"]),
                mean([one["f1"] for one in default], ".3f"),
                mean([one["rank"] for one in default], ".1f"),
                mean([one["within"] for one in default], ".1%"),
                mean(error["tuned"]),
                f"{row.at_most:g}",
                *(mean(error[name], ".4f" if name == "fast" else ".3f") for name in others),
            )
        )
    return table, numbers


def measure(row: AccuracyRow, case: Case, name: str, store: ResultStore, reporter: Reporter) -> dict[str, float | None]:
    """Error, F1, rank and calibration of one column of Undertow, or of a naive method, on one case."""
    method = ROBUST_CP if name in UNDERTOW else ALL_METHODS["undertow" if name == "default" else name]
    found = evaluate(case, method, _settings(row, name), store, reporter)
    if found["status"] != "ok":
        raise RuntimeError(f"{row.name}: {found['reason']}")
    known = found["scores"]
    error = float(np.median(found["curves"]["all_error"][found["burn_in"] :]))
    return {"error": error, "f1": known["outlier_f1"], "rank": known["rank"], "within": known["coverage"]}


def _settings(row: AccuracyRow, name: str) -> dict[str, Any]:
    if name not in UNDERTOW:
        return {}
    # The window of "fast" is part of it.
    given = {key: value for key, value in row.settings.items() if (name, key) != ("fast", "window")}
    return {**UNDERTOW[name], **given}
