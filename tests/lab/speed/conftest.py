"""One tiny model, compiled once, for all tests of the benchmark. Nothing here asserts a time."""

from dataclasses import replace

import pytest

from undertow.lab.speed.registry import CASES


def tiny(case, **changes):
    """The case on slices of shapes that other tests compile too."""
    shape = (6, 5) if len(case.shape) == 2 else (3, 2, 4)
    sizes = {"shape": shape, "window": 4, "max_rank": 3, "rank": 2}
    return replace(case, **{**sizes, **changes})


@pytest.fixture
def small():
    return tiny(CASES["small"], rivals=("last_value", "olstec"))
