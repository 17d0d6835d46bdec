"""Recorded streams: Undertow by default beside naive methods and baselines.

Mean over seeds of the relative error on hidden entries, averaged over slices 20.. (F-measure of the foreground for the
lobby), and of how many hidden entries lie within ±1.96 std. Needs the recordings (see `undertow.lab.recordings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from undertow.lab.cases import DATASETS, Case, Condition
from undertow.lab.evaluate import evaluate
from undertow.lab.methods import ALL_METHODS, NAIVE, Settings
from undertow.lab.names import pick
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.store import ResultStore
from undertow.lab.studies.table import StudyTable, mean

BURN_IN = 20
BASELINES = (*NAIVE, "olstec", "online_sgd", "grasta")
Numbers = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Row:
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
    Row("Abilene, 50 % hidden", "abilene", Condition(0.5), 300, 5),
    Row("Abilene, 10 % hidden", "abilene", Condition(0.9), 300, 5),
    Row("airport hall, 85 % hidden", "airport", Condition(0.15), 60, 15),
    Row("PINCAT, 85 % hidden", "pincat", Condition(0.15), 50, 15),
    Row("Sunnybrook 150×150×5, 50 % hidden", "sunnybrook", Condition(0.5), 40, 30),
    Row("Intel lab, 50 % hidden", "intel_lab", Condition(0.5), 500, 4),
    Row("lobby, foreground F", "lobby", Condition(1.0), 330, 15, "foreground_f"),
    Row("Hangzhou metro, 50 % hidden", "hangzhou", Condition(0.5), 500, 10),
    Row("radar traffic, 30 % of the seen hidden", "radar", Condition(0.7), 500, 5),
    Row("Chicago taxi, 50 % hidden", "chicago", Condition(0.5), 300, 10),
    Row("Abilene, 20 % hidden, 10 % outliers × 2", "abilene_raised", Condition(0.8, 0.1, 2.0), 300, 5),
    Row("Abilene, 30 % hidden, 15 % outliers × 3", "abilene_raised", Condition(0.7, 0.15, 3.0), 300, 5),
    Row("Abilene, 50 % hidden, 20 % outliers × 4", "abilene_raised", Condition(0.5, 0.2, 4.0), 300, 5),
    Row("Abilene, 70 % hidden, 20 % outliers × 5", "abilene_raised", Condition(0.3, 0.2, 5.0), 300, 5),
)


def chosen(part: str) -> list[Row]:
    """The rows whose name holds `part`; an unknown one is answered with the known names."""
    known = {row.name: row for row in ROWS}
    return pick("row", [name for name in known if part in name] or [part], known)


def recorded(
    rows: Sequence[Row],
    seeds: Sequence[int],
    store: ResultStore,
    reporter: Reporter,
    folder: Folder = None,
) -> tuple[StudyTable, Numbers]:
    """Every method on these rows and seeds; a row whose file is missing is left out with a sentence.

    Args:
        rows: which.
        seeds: which.
        store: of finished results.
        reporter: shows progress.
        folder: of the data files.
    """
    reporter.begin(len(rows) * len(seeds) * (1 + len(BASELINES)))
    headings = ("stream", "Undertow", "within ±1.96 std", *BASELINES)
    table = StudyTable(f"Recorded streams, mean over {len(seeds)} seeds", headings)
    numbers: Numbers = {}
    for row in rows:
        found = [measure(row, row.case(seed, folder), store, reporter) for seed in seeds]
        if any(found):
            numbers[row.name] = found
            columns = ("undertow", "within", *BASELINES)
            table.rows.append((row.name, *(mean([one.get(key) for one in found]) for key in columns)))
    return table, numbers


def measure(row: Row, case: Case, store: ResultStore, reporter: Reporter) -> dict[str, Any]:
    """Every method on one case: its score; of Undertow also the calibration."""
    found: dict[str, Any] = {}
    for name in ("undertow", *BASELINES):
        method = ALL_METHODS[name]
        settings: Settings = method.settings(case)
        if "rank" in settings:
            settings["rank"] = row.rank
        result = evaluate(case, method, settings, store, reporter)
        if result["status"] == "ok":
            found[name] = result["scores"][row.score]
            if name == "undertow":
                found["within"] = result["scores"]["coverage"]
    return found
