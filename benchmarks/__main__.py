"""``python -m benchmarks``: accuracy on synthetic streams: Undertow with nothing set and with the settings of each row,
its fast and paper presets, and the naive methods. Recorded streams: ``python -m benchmarks.recorded``.

Mean over seeds of the median over slices 20.. of ‖L − L_true‖ / ‖L_true‖; F1 of outliers at probability > ½.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import undertow as ut
from undertow.lab import baselines, metrics
from undertow.lab.synthetic.streams import SyntheticStream, authors, drifting

BURN_IN = 20


@dataclass(frozen=True)
class Row:
    """One stream, settings for the presets that choose nothing, and the error these are to reach."""

    name: str
    make: Callable[[int], SyntheticStream]
    settings: dict[str, float]
    at_most: float


ROWS = [
    Row(
        "40×40 r5, full",
        lambda seed: drifting((40, 40), 5, seed=seed),
        {"max_rank": 12, "window": 10, "forgetting": 0.9},
        0.035,
    ),
    Row(
        "40×40 r5, 15 % observed",
        lambda seed: drifting((40, 40), 5, observed=0.15, seed=seed),
        {"max_rank": 5, "window": 10, "forgetting": 0.8},
        0.092,
    ),
    Row(
        "50×50 r10, 10 % outliers, 10 % observed",
        lambda seed: drifting((50, 50), 10, observed=0.1, outlier_fraction=0.1, seed=seed),
        {"max_rank": 16, "window": 20, "forgetting": 0.95},
        0.22,
    ),
    Row(
        "20×20×10 r4, 5 % outliers, 30 % observed",
        lambda seed: drifting((20, 20, 10), 4, observed=0.3, outlier_fraction=0.05, seed=seed),
        {"max_rank": 8, "window": 10, "forgetting": 0.9},
        0.035,
    ),
    Row(
        "authors' 40×40 r5, full",
        lambda seed: authors((40, 40), 5, seed=seed),
        {"max_rank": 10, "window": 10, "forgetting": 0.9},
        0.0021,
    ),
    Row(
        "authors' 40×40 r5, 15 % observed",
        lambda seed: authors((40, 40), 5, observed=0.15, seed=seed),
        {"max_rank": 10, "window": 20, "forgetting": 0.95},
        0.0042,
    ),
    Row(
        "authors' 50×50 r10, 10 % outliers, 10 % observed",
        lambda seed: authors((50, 50), 10, observed=0.1, outlier_fraction=0.1, seed=seed),
        {"max_rank": 16, "window": 20, "forgetting": 0.95},
        0.0050,
    ),
]
PRESETS = ("default", "fixed", "fast", "paper")
NAIVE = ("last_value", "moving_mean", "running_median")


def follow_undertow(row: Row, stream: SyntheticStream, preset: str) -> dict[str, float]:
    """Error, F1, rank and calibration of one preset on one stream."""
    settings: dict[str, Any] = {} if preset == "default" else dict(row.settings)
    if preset == "fast":
        del settings["window"]  # its own is part of it
    model = ut.RobustCP(preset, **settings)
    results = [model.update(x) for x in stream.values]
    flagged = np.stack([result.outlier_probability for result in results])[BURN_IN:] > 0.5
    observed = stream.mask[BURN_IN:]
    hidden = ~stream.mask & ~stream.outlier_mask
    hidden[:BURN_IN] = False
    low_rank, std = (np.stack([getattr(result, name) for result in results]) for name in ("low_rank", "std"))
    return {
        "error": median_error(stream, low_rank),
        "f1": metrics.f1(flagged[observed], stream.outlier_mask[BURN_IN:][observed]),
        "rank": float(np.median([result.rank for result in results[BURN_IN:]])),
        "within": metrics.coverage(stream.complete, low_rank, std, where=hidden) if hidden.any() else float("nan"),
    }


def follow_naive(stream: SyntheticStream, name: str) -> dict[str, float]:
    """Error of a naive method."""
    method = baselines.METHODS[name]
    state = method.init(method.configure(), stream.shape)
    estimates = []
    for x, mask in zip(stream.values, stream.mask, strict=True):
        state, result = method.step(state, x, mask)
        estimates.append(result.low_rank)
    return {"error": median_error(stream, np.stack(estimates))}


def median_error(stream: SyntheticStream, estimates: np.ndarray) -> float:
    """Median over slices after the burn-in of the relative error."""
    pairs = zip(estimates[BURN_IN:], stream.low_rank[BURN_IN:], strict=True)
    return float(np.median([metrics.relative_error(estimate, truth) for estimate, truth in pairs]))


def measure(row: Row, seeds: range) -> Iterator[tuple[str, dict[str, float]]]:
    """Every method on every seed of one row."""
    for seed in seeds:
        stream = row.make(seed)
        for preset in PRESETS:
            yield preset, follow_undertow(row, stream, preset)
        for name in NAIVE:
            yield name, follow_naive(stream, name)


def main() -> None:
    """Run all rows, print the table, write the numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="0 to 4 are the seeds that settings were chosen on")
    parser.add_argument("--out", type=Path, default=Path("benchmark-accuracy.json"))
    arguments = parser.parse_args()
    table = Table(title=f"Median relative error of L, mean over {arguments.seeds} seeds")
    for column in (
        "stream",
        "nothing set",
        "F1",
        "rank",
        "within ±1.96 std",
        "fixed",
        "at most",
        "fast",
        "paper",
        *NAIVE,
    ):
        table.add_column(column, justify="left" if column == "stream" else "right")
    numbers: dict[str, dict[str, dict[str, float]]] = {}
    with Progress() as progress:
        task = progress.add_task("accuracy", total=len(ROWS) * arguments.seeds * (len(PRESETS) + len(NAIVE)))
        for row in ROWS:
            found: dict[str, list[dict[str, float]]] = {}
            for method, result in measure(row, range(arguments.first_seed, arguments.first_seed + arguments.seeds)):
                found.setdefault(method, []).append(result)
                progress.advance(task)
            mean = {
                method: {key: float(np.mean([result[key] for result in results])) for key in results[0]}
                for method, results in found.items()
            }
            numbers[row.name] = mean
            ours = mean["default"]
            table.add_row(
                row.name,
                f"{ours['error']:.4f}",
                f"{ours['f1']:.3f}",
                f"{ours['rank']:.1f}",
                f"{ours['within']:.1%}",
                f"{mean['fixed']['error']:.4f}",
                f"{row.at_most:g}",
                f"{mean['fast']['error']:.4f}",
                f"{mean['paper']['error']:.3f}",
                *(f"{mean[name]['error']:.3f}" for name in NAIVE),
            )
    Console().print(table)
    arguments.out.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
