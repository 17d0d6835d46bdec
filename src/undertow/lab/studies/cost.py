"""What a default tracker costs beside the CP models that it keeps, run on the same slices as it runs them.

Whole runs from the first slice, every program compiled before. Both in one process and in turn, so that what else the
machine does hits both; the least of several rounds counts, by the clock and in processor time of all threads, which
also means something on a machine with other work. `cold` is another question: what a user waits for in a new
process that finds no compiled programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

import undertow as ut
from undertow.lab.reporter import Reporter
from undertow.lab.studies.table import StudyTable
from undertow.lab.synthetic import drifting
from undertow.lab.track import Floats
from undertow.tracker.predictors.cp import CP, configs

SHAPES = ((12, 12), (40, 40), (144, 176))
OBSERVED = 0.5
COLD_OBSERVED = 0.15

CHILD = """
import json, sys, time
begun = time.perf_counter()
import undertow as ut
from undertow.lab.studies.cost import stream
slices = stream(*json.loads(sys.argv[1]))
given = time.perf_counter()
times, tracker = [], ut.Tracker()
for x in slices:
    tracker.update(x).mean
    times.append(time.perf_counter())
print(json.dumps([given - begun, *(after - before for before, after in zip([given, *times], times))]))
"""
"""What a new process runs; generating the stream is counted with the import."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one shape.

    Attributes:
        tracker: the whole run.
        models: the same of the CP models that a tracker of this shape keeps and of nothing else.
        later: of a slice in the second half of the tracker's run, the median.
        count: how many CP models.
        processor: processor time of the tracker over that of the models.
    """

    tracker: float
    models: float
    later: float
    count: int
    processor: float


def stream(shape: Sequence[int], slices: int, observed: float) -> Floats:
    """Rank 5 with drifting factors, 2 % outliers, in single precision."""
    values: Floats = drifting(tuple(shape), 5, slices=slices, observed=observed, seed=0).values.astype(np.float32)
    return values


def seconds(make: Callable[[], Any], values: Floats) -> tuple[Floats, Floats]:
    """Of every slice, until its mean has been fetched: by the clock, and of processors."""
    model, times = make(), [(time.perf_counter(), time.process_time())]
    for x in values:
        np.asarray(model.update(x).mean)
        times.append((time.perf_counter(), time.process_time()))
    clock, processor = np.diff(times, axis=0).T
    return clock, processor


class CPModels:
    """Those of a tracker: each predicts a slice, flat, and learns it; what it is divided by is given by the first."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._models = [CP.new(config, shape) for config in configs(shape)]
        self._unit = 0.0

    def update(self, x: Floats) -> SimpleNamespace:
        """Learn the next slice; `mean` is what the last of them says."""
        mask: Any = ~np.isnan(x)
        self._unit = self._unit or float(np.median(np.abs(x[mask])))
        values: Any = np.where(mask, x / self._unit, 0).astype(np.float32)
        predicted = [model.predict(values.ravel(), mask.ravel()) for model in self._models]
        pairs = [model.grown().learn(values, mask, x.size - int(mask.sum())) for model in self._models]
        self._models = [model for model, _ in pairs]
        *_, mean = jax.device_get([*(one.centre for one in predicted), *(report.low_rank for _, report in pairs)])
        return SimpleNamespace(mean=mean)


def cost(shape: tuple[int, ...], slices: int, rounds: int, reporter: Reporter) -> Cost:
    """Tracker and CP models in turn, once for compiling and then `rounds` times."""
    values, kept = stream(shape, slices, OBSERVED), configs(shape)
    tracker, models, later = [], [], []
    for number in range(1 + rounds):
        own = seconds(ut.Tracker, values)
        others = np.sum(seconds(partial(CPModels, shape), values), axis=1)
        if number:
            tracker.append(np.sum(own, axis=1))
            later.append(float(np.median(own[0][slices // 2 :])))
            models.append(others)
        reporter.done()
    (clock, processor), (of_models, their_processor) = np.min(tracker, axis=0), np.min(models, axis=0)
    return Cost(float(clock), float(of_models), min(later), len(kept), float(processor / their_processor))


def costs(shapes: Sequence[tuple[int, ...]], slices: int, rounds: int, reporter: Reporter) -> StudyTable:
    """One line for every shape."""
    headings = ("slice", "CP models", "tracker, s", "CP models, s", "ratio", "by processors", "later, ms")
    table = StudyTable(f"{slices} slices from the first, {OBSERVED:.0%} observed, least of {rounds} rounds", headings)
    reporter.begin(len(shapes) * (1 + rounds))
    for shape in shapes:
        one = cost(shape, slices, rounds, reporter)
        table.rows.append(
            (
                "×".join(map(str, shape)),
                str(one.count),
                f"{one.tracker:.2f}",
                f"{one.models:.2f}",
                f"{one.tracker / one.models:.2f}",
                f"{one.processor:.2f}",
                f"{1e3 * one.later:.1f}",
            )
        )
    return table


def cold(shape: tuple[int, ...], slices: int) -> StudyTable:
    """A new process that finds no compiled programs: the whole run, and a slice of its second half."""
    with tempfile.TemporaryDirectory() as folder:
        without = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps((shape, slices, COLD_OBSERVED))],
            env={**without, "UNDERTOW_CACHE": os.path.join(folder, "programs")},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    imported, *times = json.loads(done.stdout)
    later = times[len(times) // 2 :]
    table = StudyTable(
        f"A new process, nothing kept, {COLD_OBSERVED:.0%} observed",
        ("slice", "slices", "import, s", "first slice, s", "all slices, s", "later: median, ms", "90 %", "slowest"),
    )
    parts = (np.median(later), np.quantile(later, 0.9), max(later))
    table.rows.append(
        (
            "×".join(map(str, shape)),
            str(slices),
            f"{imported:.1f}",
            f"{times[0]:.1f}",
            f"{sum(times):.1f}",
            *(f"{1e3 * part:.0f}" for part in parts),
        )
    )
    return table
