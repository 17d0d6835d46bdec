"""The scoreboard: methods × streams × conditions × seeds, every rival with its published settings and tuned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undertow
from undertow.lab.accuracy.case import Condition
from undertow.lab.accuracy.cells import CellStore, write_json
from undertow.lab.accuracy.contenders import Contender, Settings
from undertow.lab.accuracy.contest import Cell, Contest, run_cell
from undertow.lab.accuracy.grids import VALIDATION_SEED, candidates
from undertow.lab.accuracy.judge import FIGURES
from undertow.lab.accuracy.reporter import Reporter
from undertow.lab.accuracy.streams import Stream
from undertow.lab.recordings.files import Folder

YARDSTICKS = {"hidden": "hidden_error", "all": "all_error", "prediction": "prediction_error"}
QUICK_METHODS = (
    "undertow,undertow_fast,undertow_paper,last_value,moving_mean,running_median,online_cp,online_sgd,olstec,grasta"
)


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    streams, contenders  who and where
    seeds                so many seeds each, from 0
    quick                short streams, few conditions
    tuned                the second column of every rival as well
    folder               of the data files
    """

    streams: Sequence[Stream]
    contenders: Sequence[Contender]
    seeds: int = 3
    quick: bool = False
    tuned: bool = True
    folder: Folder = None

    def rows(self) -> list[tuple[Stream, Condition]]:
        """Every stream under each of its conditions; in a quick run only those meant for it, or else its first."""
        return [
            (stream, condition)
            for stream in self.streams
            for condition in (stream.in_quick or stream.conditions[:1] if self.quick else stream.conditions)
        ]

    def cells(self) -> int:
        """How many runs that takes, those already done included."""
        total = 0
        for stream, condition in self.rows():
            contest = self.contest(stream, condition, 0)
            for contender in self.contenders:
                tried = len(candidates(contest, contender)) if self.tuned else 0
                total += self.seeds + (tried + self.seeds if tried else 0)
        return total

    def contest(self, stream: Stream, condition: Condition, seed: int) -> Contest:
        """One case of the plan."""
        return stream.contest(condition, seed, self.quick, self.folder)


def run(plan: Plan, out: Path, reporter: Reporter, fresh: bool = False) -> dict[str, Any]:
    """Run the plan, continue an interrupted one, and write `scoreboard.json` after every row."""
    store = CellStore(out / "cells", fresh)
    reporter.begin(plan.cells())
    board: dict[str, Any] = {
        "version": undertow.__version__,
        "quick": plan.quick,
        "seeds": plan.seeds,
        "methods": [
            {"name": contender.name, "label": contender.label, "family": contender.family}
            for contender in plan.contenders
        ],
        "figures": {name: vars(figure) for name, figure in FIGURES.items()},
        "rows": [],
    }
    for stream, condition in plan.rows():
        board["rows"].append(_row(plan, stream, condition, store, reporter))
        write_json(out / "scoreboard.json", board)
    return board


def _row(plan: Plan, stream: Stream, condition: Condition, store: CellStore, reporter: Reporter) -> dict[str, Any]:
    contests = [plan.contest(stream, condition, seed) for seed in range(plan.seeds)]
    validation = plan.contest(stream, condition, VALIDATION_SEED)
    entries: dict[str, Any] = {}
    for contender in plan.contenders:
        own = [contest.own_settings(contender) for contest in contests]
        cells = [run_cell(c, contender, s, store, reporter) for c, s in zip(contests, own, strict=True)]
        entries[contender.name] = {"default" if contender.family == "ours" else "published": _summary(cells)}
        if plan.tuned and (tried := candidates(validation, contender)):
            best = _best(validation, contender, tried, store, reporter)
            changes = {name: value for name, value in best.items() if name != "seed"}
            cells = [
                run_cell(contest, contender, {**settings, **changes}, store, reporter)
                for contest, settings in zip(contests, own, strict=True)
            ]
            entries[contender.name]["tuned"] = _summary(cells)
    yardsticks = [
        column["yardstick"] for entry in entries.values() for column in entry.values() if column["status"] == "ok"
    ]
    shapes = [entry["shape"] for methods in entries.values() for entry in methods.values() if entry["status"] == "ok"]
    return {
        "stream": stream.name,
        "title": stream.title,
        "recorded": stream.recorded,
        "condition": condition.name,
        "shape": shapes[0] if shapes else None,
        "slices": (stream.quick if plan.quick else stream.full).slices,
        "judged_by": YARDSTICKS[yardsticks[0]] if yardsticks else None,
        "entries": entries,
    }


def _best(
    validation: Contest, contender: Contender, tried: list[Settings], store: CellStore, reporter: Reporter
) -> Settings:
    """The candidate with the least error on the validation seed; the published one where none runs."""
    errors = []
    for settings in tried:
        cell = run_cell(validation, contender, settings, store, reporter)
        error = cell["scores"].get(YARDSTICKS[cell["yardstick"]]) if cell["status"] == "ok" else None
        # BRTF predicts nothing, so a row judged by prediction cannot tune it.
        errors.append(np.inf if error is None else error)
    return tried[int(np.argmin(errors))]


def _summary(cells: list[Cell]) -> dict[str, Any]:
    """Mean and spread over the seeds that ran."""
    good = [cell for cell in cells if cell["status"] == "ok"]
    if not good:
        return {"status": cells[0]["status"], "reason": cells[0]["reason"]}
    scores: dict[str, float | None] = {}
    spread: dict[str, float] = {}
    for name in [*FIGURES, "seconds"]:
        values = [value for cell in good if (value := cell["scores"].get(name)) is not None]
        scores[name] = float(np.mean(values)) if len(values) == len(good) else None
        if len(values) > 1:
            spread[name] = float(np.std(values, ddof=1))
    return {
        "status": "ok",
        "reason": "",
        "yardstick": good[0]["yardstick"],
        "shape": good[0]["shape"],
        "seeds": len(good),
        "scores": scores,
        "spread": spread,
        "settings": {name: value for name, value in good[0]["settings"].items() if name != "seed"},
        "troubles": [sentence for cell in good for sentence in cell["troubles"]][:3],
    }
