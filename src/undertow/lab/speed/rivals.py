"""Rivals as subjects: every baseline of the registry, on the same slices."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from undertow.lab.accuracy.contenders import CONTENDERS, typical_size
from undertow.lab.baselines import METHODS, Method
from undertow.lab.speed.case import Case
from undertow.lab.speed.stream import Stream
from undertow.lab.speed.subject import Floats, Subject

NAIVE = ("last_value", "moving_mean")
ONLINE = (*NAIVE, "olstec", "online_sgd")
ALL = (*ONLINE, "brtf", "tensorly_robust_pca", "tensorly_masked_cp")

_QUICK_ENTRIES = 100_000  # of a window beyond which a method that refits it takes seconds a slice


class Rival(Subject):
    """One baseline; it is told the true rank, and the window if it refits one."""

    def __init__(self, method: Method, case: Case, stream: Stream) -> None:
        known = {"rank": case.rank} if "rank" in method.knobs else {}
        if method.batch:
            known["window"] = case.window
        self.method = method
        self.config = method.configure(**known)
        self.unit = typical_size(stream.values) if method.needs_unit_scale else 1.0
        self.values = stream.values / self.unit
        self.state = method.init(self._cheap(), case.shape)
        self.last: Floats | None = None

    def _cheap(self) -> object:
        """One iteration is enough as long as the window fills: what refits from scratch remembers only data."""
        return replace(self.config, iterations=1) if self.method.batch else self.config

    def warm(self, t: int) -> None:
        """As `feed`, without the work that leaves no trace."""
        self.state, _ = self.method.step(self.state, self.values[t])

    def feed(self, t: int) -> None:
        """One step with all its iterations."""
        state = replace(self.state, config=self.config) if self.method.batch else self.state
        self.state, result = self.method.step(state, self.values[t])
        self.last = result.low_rank if result.status == "ok" else None

    def low_rank(self) -> Floats | None:
        """In the unit of the data; None if the method failed."""
        return None if self.last is None else np.asarray(self.last * self.unit)


def label(name: str) -> str:
    """A baseline's name for people."""
    return "BRTF (window)" if name == "brtf" else CONTENDERS[name].label


def family(name: str) -> str:
    """ "rival" or "naive"."""
    return CONTENDERS[name].family


def refuses(name: str, case: Case, quick: bool) -> str | None:
    """Why a rival is not timed on a case, or None."""
    method = METHODS[name]
    if method.requires is not None and find_spec(method.requires) is None:
        return f"needs the package {method.requires}: pip install 'undertow[compare]'"
    if not method.missing and case.observed < 1:
        return "needs complete slices"
    if quick and method.batch and case.window * math.prod(case.shape) > _QUICK_ENTRIES:
        return "refits the window for seconds at every slice: left out of a quick run"
    return None
