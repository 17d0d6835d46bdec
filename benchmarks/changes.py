"""``python -m benchmarks.changes``: streams that change, with nothing set: new factors at slice 50, and a rank that
goes 3 → 6 → 2.

For each seed: slices until the error is back within 1.5 times what it was before the change, what the status said, and
the rank that is reported one window after each change.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import undertow as ut
from undertow.lab import metrics

CHANGE, END = 50, 90
BACK = 1.5
LASTING = 3
"""Slices whose median error has to be good to be called back: single ones vary with how large they are."""
WINDOW, STAY = 20, 60
RANKS = (3, 6, 2)


def new_factors(seed: int) -> tuple[int | None, bool]:
    """40×40 of rank 5, half of it seen, 2 % outliers. Slices until the error is back, and whether a change was told."""
    draw = np.random.default_rng(seed)
    factors = [(draw.normal(size=(40, 5)), draw.normal(size=(40, 5))) for _ in range(2)]
    model, errors, told = ut.RobustCP(), [], False
    for t in range(END):
        left, right = factors[t >= CHANGE]
        truth = (left * draw.normal(size=5)) @ right.T / 2
        outliers = (draw.random(truth.shape) < 0.02) * draw.choice([-10, 10], truth.shape)
        values = truth + 0.1 * draw.normal(size=truth.shape) + outliers
        result = model.update(np.where(draw.random(truth.shape) < 0.5, values, np.nan))
        errors.append(metrics.relative_error(result.low_rank, truth))
        told |= t in range(CHANGE, CHANGE + LASTING) and "CHANGED" in result.status.codes
    before = np.median(errors[CHANGE - 20 : CHANGE])
    back = (t for t in range(CHANGE, END - LASTING) if np.median(errors[t : t + LASTING]) <= BACK * before)
    return next((t - CHANGE for t in back), None), told


def changing_rank(seed: int) -> list[int]:
    """50×50 without drift, noise 0.1, 30 % seen, W 20. The rank reported one window after each change."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(50, max(RANKS))), draw.normal(size=(50, max(RANKS)))
    model, found = ut.RobustCP(window=WINDOW), []
    for rank in RANKS:
        for _ in range(STAY):
            truth = (left[:, :rank] * draw.normal(size=rank)) @ right[:, :rank].T
            values = truth + 0.1 * draw.normal(size=truth.shape)
            found.append(model.update(np.where(draw.random(truth.shape) < 0.3, values, np.nan)).rank)
    return found[WINDOW::STAY]


def main() -> None:
    """Print both tables as one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    table = Table("seed", "back after", "status told", f"rank (true {RANKS})", title="Streams that change")
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        back, told = new_factors(seed)
        table.add_row(str(seed), str(back), str(told), str(changing_rank(seed)))
    Console().print(table)


if __name__ == "__main__":
    main()
