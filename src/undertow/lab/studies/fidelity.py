"""Are the baselines as good as their originals, and the paper's preset as its authors' code?

Beside what the published codes gave on the same kinds of stream. Every figure is the median over the slices from the
20th on of ‖L − L_true‖ / ‖L_true‖, averaged over seeds. The rank given is the true one. The originals ran in Octave on
other draws of the same streams. The published codes of OLSTEC and Online-SGD take matrices only; how the 3-way stream
was unfolded for them is not recorded. 20 × 200 is compared, and the stream in its own shape, which they could not take,
stands above it without an original.

The paper's preset stops after six iterations, as its authors' code does. Below it stands the same model converged,
beside the same figures. Neither counts in `within`: the authors' code gives up some slices, and only where it does not
can the two be expected to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.lab.baselines import METHODS
from undertow.lab.cases import DATASETS, Case, Condition
from undertow.lab.methods import ALL_METHODS, baseline_answers, batch_answers
from undertow.lab.names import pick
from undertow.lab.reporter import Reporter
from undertow.lab.scores import error_curves
from undertow.lab.studies.table import StudyTable
from undertow.lab.track import stack

FIRST = 19  # the 20th slice
LIMIT = 0.20
COMPARED = ("online_cp", "online_sgd", "olstec", "brtf")
PAPER_PRESET = ("undertow_paper", "undertow_paper_converged")


@dataclass(frozen=True)
class FidelityRow:
    """A case, and the figures of the original codes on it; None where there is none."""

    name: str
    dataset: str
    condition: Condition
    originals: dict[str, float | None]


def _brst(error: float) -> dict[str, float | None]:
    """The figure of the authors' code, for both ways to run their model."""
    return dict.fromkeys(PAPER_PRESET, error)


_FULL, _SPARSE, _SEVERE, _THREE_WAY = (
    Condition(1.0, 0.02),
    Condition(0.15, 0.02),
    Condition(0.1, 0.1),
    Condition(0.3, 0.05),
)
ROWS = (
    FidelityRow(
        "drifting 40x40 r5, full",
        "drifting",
        _FULL,
        {"online_cp": 0.785, "online_sgd": 0.415, "olstec": 0.278, "brtf": 0.581, **_brst(0.512)},
    ),
    FidelityRow(
        "drifting 40x40 r5, 15 %",
        "drifting",
        _SPARSE,
        {"online_sgd": 0.971, "olstec": 0.878, "brtf": 0.679, **_brst(1.0)},
    ),
    FidelityRow(
        "drifting 50x50 r10, 10 %, 10 % outliers",
        "drifting_rank10",
        _SEVERE,
        {"online_sgd": 1.516, "olstec": 1.914, "brtf": 0.983, **_brst(1.0)},
    ),
    FidelityRow(
        "drifting 20x20x10 r4, 30 %, 5 % outliers",
        "drifting_3way",
        _THREE_WAY,
        {"online_sgd": None, "olstec": None, "brtf": 0.726, **_brst(0.733)},
    ),
    FidelityRow(
        "  the same unfolded to 20x200", "drifting_3way_unfolded", _THREE_WAY, {"online_sgd": 0.758, "olstec": 0.791}
    ),
    FidelityRow(
        "authors 40x40 r5, full",
        "authors",
        _FULL,
        {"online_cp": 0.237, "online_sgd": 0.305, "olstec": 0.461, "brtf": 0.102, **_brst(0.107)},
    ),
    FidelityRow(
        "authors 40x40 r5, 15 %",
        "authors",
        _SPARSE,
        {"online_sgd": 0.503, "olstec": 0.846, "brtf": 0.110, **_brst(0.113)},
    ),
    FidelityRow(
        "authors 50x50 r10, 10 %, 10 % outliers",
        "authors_rank10",
        _SEVERE,
        {"online_sgd": 1.733, "olstec": 2.211, "brtf": 0.090, **_brst(0.374)},
    ),
)


def fidelity(
    seeds: Sequence[int], methods: Sequence[str], reporter: Reporter
) -> tuple[StudyTable, list[dict[str, Any]]]:
    """One record for every method and row; `within(records)` says whether all are near their originals."""
    wanted = pick("method", methods, {name: name for name in (*COMPARED, *PAPER_PRESET)})
    reporter.begin(sum(name in wanted for row in ROWS for name in row.originals) * len(seeds))
    table = StudyTable(
        "Baselines beside their originals", ("stream", "method", "here", "original", "ratio", "ms/slice")
    )
    records: list[dict[str, Any]] = []
    for row in ROWS:
        for name in (known for known in row.originals if known in wanted):
            original, found = row.originals[name], []
            for seed in seeds:
                case = DATASETS[row.dataset].case(row.condition, seed)
                reporter.start(f"{row.name}: {name}", len(case.data))
                found.append(error(name, case, reporter))
                reporter.done()
            here = float(np.mean([figure for figure, _ in found]))
            ratio = None if original is None else here / original
            compared = ("–", "–") if original is None else (f"{original:.3f}", f"{here / original:.2f}")
            beyond = "" if ratio is None or abs(ratio - 1) <= LIMIT else " (beyond the limit)"
            milliseconds = 1e3 * min(seconds for _, seconds in found)
            table.rows.append((row.name, name, f"{here:.3f}", *compared, f"{milliseconds:.2f}{beyond}"))
            records.append({"stream": row.name, "method": name, "here": here, "original": original, "ratio": ratio})
    return table, records


def error(name: str, case: Case, reporter: Reporter) -> tuple[float, float]:
    """The figure of one method, with the data as they are, and its seconds per slice (compilation included)."""
    if name in PAPER_PRESET:
        method = ALL_METHODS[name]
        track = method.follow(case.data, method.settings(case), reporter.tick)
    else:
        baseline = METHODS[name]
        answers = baseline_answers if baseline.fit is None else batch_answers
        given = {"rank": case.dataset.rank, "seed": case.seed + 100}
        track = stack(answers(baseline, case.data, given, unit=1.0), reporter.tick)
    errors = [float("inf") if value is None else value for value in error_curves(case.data, track)["all_error"]]
    return float(np.median(errors[FIRST:])), float(track.seconds.mean())


def within(records: list[dict[str, Any]]) -> tuple[int, int]:
    """How many figures of baselines are within the limit of the original, and how many could be compared."""
    counted = [record for record in records if record["method"] in COMPARED]
    ratios = [record["ratio"] for record in counted if record["ratio"] is not None]
    return sum(abs(ratio - 1) <= LIMIT for ratio in ratios), len(ratios)
