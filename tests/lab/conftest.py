"""Tiny data and quick methods: what is tested here is the evaluation, not the methods."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.cases import Case, Condition, Data, Dataset, Size
from undertow.lab.cases.making import from_synthetic
from undertow.lab.synthetic.streams import drifting


def tiny_data(condition: Condition, seed: int, size: Size, folder: object) -> Data:
    stream = drifting(
        (6, 5),
        2,
        slices=size.slices,
        observed=condition.observed,
        outlier_fraction=condition.outliers,
        temporal="constant",
        seed=seed,
    )
    return from_synthetic(stream, size.burn_in)


@pytest.fixture
def tiny() -> Dataset:
    conditions = (Condition(0.6, 0.1), Condition(1.0, 0.1))
    return Dataset("tiny", "tiny stream", 2, tiny_data, conditions, Size(8, 3), Size(6, 2), conditions[:1])


@pytest.fixture
def case(tiny: Dataset) -> Case:
    return tiny.case(tiny.conditions[0], seed=0)


@pytest.fixture
def recorded() -> np.ndarray:
    return np.random.default_rng(0).uniform(1, 2, (6, 5, 4))
