"""Tiny workloads, and a stub where no model is needed. Nothing here asserts a time."""

from dataclasses import replace

import numpy as np
import pytest

from undertow.lab.speed.registry import WORKLOADS
from undertow.lab.speed.subject import Subject


def tiny(workload, **changes):
    """The workload on slices of shapes that other tests compile too."""
    shape = (6, 5) if len(workload.shape) == 2 else (4, 3, 2)
    sizes = {"shape": shape, "window": 4, "max_rank": 3, "rank": 2}
    return replace(workload, **{**sizes, **changes})


class Stub(Subject):
    """Learns nothing, compiles nothing, and knows all the figures that a model knows."""

    sweeps = 3

    def __init__(self, workload, slices):
        self.shape = workload.shape

    def feed(self, t):
        return self.sweeps

    def low_rank(self):
        return np.zeros(self.shape)

    def flops(self, iterations):
        return 1e6 * iterations

    def memory(self):
        return 1000

    def pinned(self, sweeps):
        other = self.snapshot()
        other.sweeps = sweeps
        return other


@pytest.fixture
def small():
    return tiny(WORKLOADS["small"], baselines=("last_value", "olstec"))


@pytest.fixture
def stubbed(small):
    return replace(small, make=Stub)
