"""Baselines as subjects, on the same slices."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from undertow.lab.baselines import METHODS, Baseline
from undertow.lab.methods import typical_size
from undertow.lab.speed.slices import Floats, Slices
from undertow.lab.speed.subject import Subject
from undertow.lab.speed.workload import Workload

ONLINE = ("last_value", "moving_mean", "olstec", "online_sgd")
ALL = (*ONLINE, "brtf", "tensorly_robust_pca", "tensorly_masked_cp")

_QUICK_ENTRIES = 100_000  # of a window beyond which a method that refits it takes seconds a slice


class TimedBaseline(Subject):
    """One baseline; it is given the true rank, and the window if it refits one."""

    def __init__(self, baseline: Baseline, workload: Workload, slices: Slices) -> None:
        known = {"rank": workload.rank} if "rank" in baseline.settings else {}
        if baseline.batch:
            known["window"] = workload.window
        self.baseline = baseline
        self.config = baseline.configure(**known)
        self.unit = typical_size(slices.values) if baseline.needs_unit_scale else 1.0
        self.values = slices.values / self.unit
        # One iteration is enough while the window fills: what refits from scratch remembers only data.
        cheap = replace(self.config, iterations=1) if baseline.batch else self.config
        self.state = baseline.init(cheap, workload.shape)
        self.last: Floats | None = None

    def warm(self, t: int) -> None:
        """As `feed`, without the work that leaves no trace."""
        self.state, _ = self.baseline.step(self.state, self.values[t])

    def feed(self, t: int) -> None:
        """One step with all its iterations."""
        state = replace(self.state, config=self.config) if self.baseline.batch else self.state
        self.state, result = self.baseline.step(state, self.values[t])
        self.last = result.low_rank if result.status == "ok" else None

    def low_rank(self) -> Floats | None:
        """In the unit of the data; None if the method failed."""
        return None if self.last is None else np.asarray(self.last * self.unit)


def unsupported(name: str, workload: Workload, quick: bool) -> str | None:
    """Why a baseline is not timed on a workload, or None."""
    baseline = METHODS[name]
    if baseline.requires is not None and find_spec(baseline.requires) is None:
        return f"needs the package {baseline.requires}: pip install 'undertow[compare]'"
    if not baseline.missing and workload.observed < 1:
        return "needs complete slices"
    if quick and baseline.batch and workload.window * math.prod(workload.shape) > _QUICK_ENTRIES:
        return "refits the window for seconds at every slice: left out of a quick run"
    return None
