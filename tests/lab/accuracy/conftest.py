"""Tiny streams and quick methods: what is tested here is the contest, not the contestants."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.accuracy.case import Case, Condition, from_synthetic
from undertow.lab.accuracy.contest import Contest
from undertow.lab.accuracy.streams import Size, Stream
from undertow.lab.synthetic.streams import drifting


def tiny_case(condition: Condition, seed: int, size: Size, folder: object) -> Case:
    stream = drifting(
        (5, 4),
        2,
        slices=size.slices,
        observed=condition.observed,
        outlier_fraction=condition.outliers,
        temporal="constant",
        seed=seed,
    )
    return from_synthetic(stream, size.burn_in)


@pytest.fixture
def tiny() -> Stream:
    conditions = (Condition(0.6, 0.1), Condition(1.0, 0.1))
    return Stream("tiny", "tiny stream", 2, tiny_case, conditions, Size(8, 3), Size(6, 2), conditions[:1])


@pytest.fixture
def contest(tiny: Stream) -> Contest:
    return tiny.contest(tiny.conditions[0], seed=0)


@pytest.fixture
def recorded() -> np.ndarray:
    return np.random.default_rng(0).uniform(1, 2, (6, 5, 4))
