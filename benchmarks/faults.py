"""``python -m benchmarks.faults``: what is plainly wrong, nothing set. Is it flagged? Does the low rank stay clean?

First spikes: clean 20×12 streams of rank 3, a fifth of them hidden; in slice 30, for the first time, some entries are
off. Then the Intel lab recording, if it is there: every beginning of values that cannot be true (temperature beyond
0 to 50 °C, humidity beyond 0 to 100 %), by how it came.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from rich.console import Console
from rich.table import Table

import undertow as ut
from undertow.lab import metrics
from undertow.lab.recordings import intel_lab

SPIKES = ((1, 10), (3, 10), (15, 10), (1, 1e3), (3, 1e3), (15, 1e3), (1, 1e5), (15, 1e5))
"""How many entries are off, and by how much; the noise is 0.05 and entries are around 1."""
FIRST = 30
LONG_GAP = 20
"""Slices without a value beyond which a sensor comes back rather than goes on."""
JUMP = 1.5
"""Change from the last value, in interquartile ranges of its quantity, beyond which a fault is sudden."""


def first_spike(count: int, size: float, seed: int) -> tuple[float, int, float]:
    """Share of the spikes that is flagged, other entries flagged, and the error over that of the slice before."""
    draw = np.random.default_rng(seed)
    left, right = draw.normal(size=(20, 3)), draw.normal(size=(12, 3))
    model, errors = ut.RobustCP(), []
    for t in range(FIRST + 1):
        truth = (left * draw.normal(size=3)) @ right.T
        values = np.where(draw.random(truth.shape) < 0.2, np.nan, truth + 0.05 * draw.normal(size=truth.shape))
        spikes = np.zeros(truth.shape, bool)
        if t == FIRST:
            spikes.flat[draw.permutation(np.flatnonzero(~np.isnan(values)))[:count]] = True
        result = model.update(values + size * spikes)
        errors.append(metrics.relative_error(result.low_rank, truth))
    flagged = result.outlier_probability > 0.5
    return flagged[spikes].mean(), int((flagged & ~spikes).sum()), errors[-1] / np.median(errors[FIRST - 10 : FIRST])


def sensor_faults() -> dict[str, list[bool]]:
    """Of every beginning of impossible values, whether it was flagged; by how it came."""
    recording = intel_lab.load()
    model, found = ut.RobustCP(), defaultdict[str, list[bool]](list)
    shape = recording.values.shape[1:]
    last, when = np.full(shape, np.nan), np.full(shape, -LONG_GAP - 1)
    wrong, broken = np.zeros(shape, bool), np.zeros(shape[0], bool)
    for t, (values, impossible) in enumerate(zip(recording.values, recording.impossible, strict=True)):
        flagged = model.update(values).outlier_probability > 0.5
        seen = ~np.isnan(values)
        for entry in zip(*np.nonzero(impossible & seen & ~wrong), strict=True):
            if t - when[entry] > LONG_GAP:
                kind = "after a gap"
            elif abs(values[entry] - last[entry]) < JUMP:
                kind = "crossing slowly"
            else:
                kind = "a jump of a sensor with faults before" if broken[entry[0]] else "a jump of a sensor without any"
            found[kind].append(bool(flagged[entry]))
        broken |= impossible.any(axis=1)
        wrong, last, when = np.where(seen, impossible, wrong), np.where(seen, values, last), np.where(seen, t, when)
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    console = Console()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    table = Table("entries off", "by", "flagged", "others flagged", "error over usual", title="First spikes")
    for count, size in SPIKES:
        shares, others, errors = zip(*(first_spike(count, size, seed) for seed in seeds), strict=True)
        table.add_row(
            str(count), f"{size:g}", f"{np.mean(shares):.2f}", f"{np.mean(others):.1f}", f"{np.median(errors):.2f}"
        )
    console.print(table)
    try:
        found = sensor_faults()
    except FileNotFoundError as missing:
        console.print(str(missing))
        return
    table = Table("how it came", "beginnings", "flagged", title="Intel lab: impossible values")
    for kind, flags in sorted(found.items()):
        table.add_row(kind, str(len(flags)), str(sum(flags)))
    console.print(table)


if __name__ == "__main__":
    main()
