"""``python -m benchmarks.recorded``: recorded streams, Undertow with nothing set beside naive methods and rivals.

Mean over seeds of: the relative error on hidden entries, averaged over slices 20.. (F-measure of the foreground for
the lobby); how many hidden entries lie within ±1.96 std; and what the choice of settings costs: the time over that of
the settings chosen, pinned, in the same run. Needs the recordings (see `undertow.lab.recordings`).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import undertow as ut
from undertow.lab.accuracy.case import Case, Condition
from undertow.lab.accuracy.contenders import CONTENDERS
from undertow.lab.accuracy.judge import error_curves, scores
from undertow.lab.accuracy.streams import STREAMS
from undertow.lab.accuracy.track import Recorder, Track
from undertow.lab.recordings import abilene

BURN_IN = 20
RIVALS = ("last_value", "moving_mean", "running_median", "olstec", "online_sgd", "grasta")
CHOSEN = ("level", "robust", "noise", "scale", "forgetting", "max_rank")


@dataclass(frozen=True)
class Row:
    """A stream under one condition: how to make it from a seed, and how to read the answer."""

    name: str
    make: Callable[[int], Case]
    rank: int
    figure: str = "hidden_error"


def recorded(stream: str, observed: float, slices: int) -> Callable[[int], Case]:
    """The first slices of a recording at full size, some of it hidden."""
    size = {"slices": slices, "burn_in": BURN_IN, "stride": 1}
    return lambda seed: STREAMS[stream].contest(Condition(observed), seed, **size).case


def corrupted_abilene(missing: float, outliers: float, magnitude: float) -> Callable[[int], Case]:
    """Traffic with a share of its entries raised by so many times the largest value."""

    def make(seed: int) -> Case:
        draw = np.random.default_rng(seed)
        truth = abilene.load().values[:300]
        shown, bad = draw.random(truth.shape) >= missing, draw.random(truth.shape) < outliers
        values = np.where(shown, truth + bad * magnitude * truth.max(), np.nan)
        return Case(values, truth, truth, bad, BURN_IN, known_truth=True)

    return make


ROWS = (
    Row("Abilene, 50 % hidden", recorded("abilene", 0.5, 300), 5),
    Row("Abilene, 10 % hidden", recorded("abilene", 0.9, 300), 5),
    Row("airport hall, 85 % hidden", recorded("airport", 0.15, 60), 15),
    Row("PINCAT, 85 % hidden", recorded("pincat", 0.15, 50), 15),
    Row("Sunnybrook 150×150×5, 50 % hidden", recorded("sunnybrook", 0.5, 40), 30),
    Row("Intel lab, 50 % hidden", recorded("intel_lab", 0.5, 500), 4),
    Row("lobby, foreground F", recorded("lobby", 1.0, 330), 15, "foreground_f"),
    Row("Abilene, 20 % hidden, 10 % outliers × 2", corrupted_abilene(0.2, 0.1, 2), 5),
    Row("Abilene, 30 % hidden, 15 % outliers × 3", corrupted_abilene(0.3, 0.15, 3), 5),
    Row("Abilene, 50 % hidden, 20 % outliers × 4", corrupted_abilene(0.5, 0.2, 4), 5),
    Row("Abilene, 70 % hidden, 20 % outliers × 5", corrupted_abilene(0.7, 0.2, 5), 5),
)


def follow(case: Case, **settings: Any) -> tuple[Track, Counter[tuple[Any, ...]], float]:
    """Undertow on a case: what it said, which settings it chose how often, and its seconds but for compiling."""
    model, recorder, chosen = ut.RobustCP(**settings), Recorder(), Counter[tuple[Any, ...]]()
    begin = perf_counter()
    for t, values in enumerate(case.values):
        if t == 2:
            begin = perf_counter()
        result = model.update(values)
        chosen[tuple(result.settings[name] for name in CHOSEN)] += t >= BURN_IN
        probability = result.outlier_probability
        recorder.add(0.0, result.low_rank, std=result.std, probability=probability, score=probability, rank=result.rank)
    return recorder.track(), chosen, perf_counter() - begin


def measure(row: Row, seed: int, cost: bool) -> dict[str, Any]:
    """Every method on one seed."""
    case = row.make(seed)
    track, chosen, seconds = follow(case)
    judged = scores(case, track, error_curves(case, track))
    settings = dict(zip(CHOSEN, chosen.most_common(1)[0][0], strict=True))
    found = {"undertow": judged[row.figure], "within": judged["coverage"], "chosen": settings}
    if cost:
        follow(case, preset="fixed", **settings)  # compiled now
        found["cost"] = seconds / follow(case, preset="fixed", **settings)[2]
    for name in RIVALS:
        rival = CONTENDERS[name]
        options = rival.settings(row.rank, None, seed)
        if rival.refuses(case, options) is None:
            other = rival.follow(case, options, lambda: None)
            found[name] = scores(case, other, error_curves(case, other))[row.figure]
    return found


def main() -> None:
    """Run the rows, print the table, write the numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", default="", help="only rows whose name holds this")
    parser.add_argument("--cost", action="store_true", help="measure what choosing costs; run it on an idle machine")
    parser.add_argument("--out", type=Path, default=Path("benchmark-recorded.json"))
    arguments = parser.parse_args()
    table = Table(title=f"Recorded streams, mean over {arguments.seeds} seeds")
    for column in ("stream", "Undertow", "within ±1.96 std", "cost", *RIVALS):
        table.add_column(column, justify="left" if column == "stream" else "right")
    numbers: dict[str, list[dict[str, Any]]] = {}
    console = Console()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for row in ROWS:
        if arguments.rows not in row.name:
            continue
        with console.status(row.name):
            numbers[row.name] = [measure(row, seed, arguments.cost) for seed in seeds]
        console.print(row.name, numbers[row.name][0]["chosen"])
        table.add_row(row.name, *(mean(numbers[row.name], key) for key in ("undertow", "within", "cost", *RIVALS)))
        arguments.out.write_text(json.dumps(numbers, indent=1))
    console.print(table)


def mean(found: list[dict[str, Any]], key: str) -> str:
    """For the table: the mean over seeds, where there is one."""
    values = [one[key] for one in found if one.get(key) is not None]
    return f"{np.mean(values):.4f}" if values else "–"


if __name__ == "__main__":
    main()
