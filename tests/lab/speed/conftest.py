"""One tiny model, compiled once, for all tests of speed. Nothing here asserts a time."""

from dataclasses import replace

import pytest

from undertow.lab.speed.registry import WORKLOADS


def tiny(workload, **changes):
    """The workload on slices of shapes that other tests compile too."""
    shape = (6, 5) if len(workload.shape) == 2 else (4, 3, 2)
    sizes = {"shape": shape, "window": 4, "max_rank": 3, "rank": 2}
    return replace(workload, **{**sizes, **changes})


@pytest.fixture
def small():
    return tiny(WORKLOADS["small"], baselines=("last_value", "olstec"))
