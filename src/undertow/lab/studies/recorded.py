"""Recorded streams: Undertow by default beside other methods, as published and at their best in hindsight.

Mean over seeds of the relative error on hidden entries, averaged over slices 20.. (F-measure of the foreground for the
lobby), and of how many hidden entries lie within ±1.96 std. Needs the recordings (see `undertow.lab.recordings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.lab.cases import DATASETS, Case, Condition
from undertow.lab.evaluate import evaluate
from undertow.lab.hindsight import Best, evaluations, hindsight
from undertow.lab.methods import ALL_METHODS, NAIVE, Method, Settings
from undertow.lab.names import pick
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.scores import SCORES
from undertow.lab.store import ResultStore
from undertow.lab.studies.table import StudyTable, mean

BURN_IN = 20
BASELINES = (*NAIVE, "local_level", "covariance", "olstec", "online_sgd", "grasta", "olrtr", "toucan", "cafe")
Numbers = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class RecordedRow:
    """The first slices of a recording at full size under one condition, the rank of the baselines, and the score."""

    name: str
    dataset: str
    condition: Condition
    slices: int
    rank: int
    score: str = "hidden_error"

    def case(self, seed: int, folder: Folder) -> Case:
        """The case of a seed."""
        return DATASETS[self.dataset].case(
            self.condition, seed, folder=folder, slices=self.slices, burn_in=BURN_IN, stride=1
        )


ROWS = (
    RecordedRow("Abilene, 50 % hidden", "abilene", Condition(0.5), 300, 5),
    RecordedRow("Abilene, 10 % hidden", "abilene", Condition(0.9), 300, 5),
    RecordedRow("airport hall, 85 % hidden", "airport", Condition(0.15), 60, 15),
    RecordedRow("PINCAT, 85 % hidden", "pincat", Condition(0.15), 50, 15),
    RecordedRow("Sunnybrook 150×150×5, 50 % hidden", "sunnybrook", Condition(0.5), 40, 30),
    RecordedRow("Intel lab, 50 % hidden", "intel_lab", Condition(0.5), 500, 4),
    RecordedRow("lobby, foreground F", "lobby", Condition(1.0), 330, 15, "foreground_f"),
    RecordedRow("Hangzhou metro, 50 % hidden", "hangzhou", Condition(0.5), 400, 10),
    RecordedRow("radar traffic, 30 % of the seen hidden", "radar", Condition(0.7), 400, 5),
    RecordedRow("Chicago taxi, 50 % hidden", "chicago", Condition(0.5), 300, 10),
    RecordedRow("Abilene, 20 % hidden, 10 % outliers × 2", "abilene_raised", Condition(0.8, 0.1, 2.0), 300, 5),
    RecordedRow("Abilene, 30 % hidden, 15 % outliers × 3", "abilene_raised", Condition(0.7, 0.15, 3.0), 300, 5),
    RecordedRow("Abilene, 50 % hidden, 20 % outliers × 4", "abilene_raised", Condition(0.5, 0.2, 4.0), 300, 5),
    RecordedRow("Abilene, 70 % hidden, 20 % outliers × 5", "abilene_raised", Condition(0.3, 0.2, 5.0), 300, 5),
)


def chosen(part: str) -> list[RecordedRow]:
    """The rows whose name holds `part`; an unknown one is answered with the known names."""
    known = {row.name: row for row in ROWS}
    return pick("row", [name for name in known if part in name] or [part], known)


def recorded(
    rows: Sequence[RecordedRow],
    seeds: Sequence[int],
    store: ResultStore,
    reporter: Reporter,
    folder: Folder = None,
    published: bool = False,
) -> tuple[StudyTable, Numbers]:
    """Every method on these rows and seeds; a row whose file is missing is left out with a sentence.

    Args:
        rows: which.
        seeds: which.
        store: of finished results.
        reporter: shows progress.
        folder: of the data files.
        published: baselines with their published settings only.
    """
    reporter.begin(sum(_evaluations(row, len(seeds), published, folder) for row in rows))
    headings = ("stream", "Undertow", "within ±1.96 std", "best other", *BASELINES)
    kinds = "as published" if published else "as published / best in hindsight"
    table = StudyTable(f"Recorded streams, mean over {len(seeds)} seeds; baselines {kinds}", headings)
    numbers: Numbers = {}
    for row in rows:
        cases = [row.case(seed, folder) for seed in seeds]
        found = [measure(row, case, store, reporter) for case in cases]
        for name in () if published else BASELINES:
            best = _in_hindsight(row, cases, ALL_METHODS[name], store, reporter)
            if best is not None:
                for one, result in zip(found, best.results, strict=True):
                    one[f"{name} in hindsight"] = result["scores"][row.score]
                    one[f"{name} changes"] = best.changes
        if any(found):
            numbers[row.name] = found
            own = [mean([one.get(key) for one in found]) for key in ("undertow", "within")]
            table.rows.append((row.name, *own, _best_other(row, found), *(_cell(found, name) for name in BASELINES)))
    return table, numbers


def _evaluations(row: RecordedRow, seeds: int, published: bool, folder: Folder) -> int:
    """How many evaluations a row takes, those already done included."""
    case = row.case(0, folder)
    searched = [] if published else [ALL_METHODS[name] for name in BASELINES]
    searches = sum(evaluations(method, _settings(row, case, method), seeds) for method in searched)
    return seeds * (1 + len(BASELINES)) + searches


def _in_hindsight(
    row: RecordedRow, cases: Sequence[Case], method: Method, store: ResultStore, reporter: Reporter
) -> Best | None:
    own = [_settings(row, case, method) for case in cases]
    return hindsight(cases, method, own, store, reporter, row.score)


def _settings(row: RecordedRow, case: Case, method: Method) -> Settings:
    """A method's own settings for the case, with the row's rank."""
    settings = method.settings(case)
    return {**settings, "rank": row.rank} if "rank" in settings else settings


def _cell(found: list[dict[str, Any]], name: str) -> str:
    """A baseline as published and, where there is a grid, at its best in hindsight."""
    kinds = [name, f"{name} in hindsight"]
    return (
        " / ".join(mean([one.get(kind) for one in found]) for kind in kinds if any(kind in one for one in found)) or "–"
    )


def _best_other(row: RecordedRow, found: list[dict[str, Any]]) -> str:
    """The best of all columns but Undertow's, in hindsight where there is one."""
    sign = -1 if SCORES[row.score].better == "high" else 1
    means = {
        kind: float(np.mean([one[kind] for one in found]))
        for name in BASELINES
        for kind in (name, f"{name} in hindsight")
        if all(one.get(kind) is not None for one in found)
    }
    if not means:
        return "–"
    best = min(means, key=lambda kind: sign * means[kind])
    return f"{means[best]:.4f} {best.removesuffix(' in hindsight')}"


def measure(row: RecordedRow, case: Case, store: ResultStore, reporter: Reporter) -> dict[str, Any]:
    """Every method on one case: its score; of Undertow also the calibration."""
    found: dict[str, Any] = {}
    for name in ("undertow", *BASELINES):
        method = ALL_METHODS[name]
        result = evaluate(case, method, _settings(row, case, method), store, reporter)
        if result["status"] == "ok":
            found[name] = result["scores"][row.score]
            if name == "undertow":
                found["within"] = result["scores"]["coverage"]
    return found
