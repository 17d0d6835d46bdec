"""Well-known fill values are found where they stand for missing data, and nowhere else."""

import numpy as np
import pytest

import undertow as ut
from undertow.inputs.fill import fill_values


@pytest.mark.parametrize("value", [9.969209968386869e36, 9.96921e36, 1e20, 1e35, 1e36])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill_values_are_found(value, dtype):
    made = ut.as_slice(np.array([[1.0, value], [250.0, -3.0]], dtype))
    assert made.mask.tolist() == [[True, False], [True, True]]
    assert made.values[0, 1] == 0
    assert made.filled
    entries = ut.Entries(([0, 1], [1, 1]), np.array([value, 2.0], dtype), (2, 2))
    assert entries.mask.tolist() == [False, True]
    assert entries.filled
    assert entries.to_slice().filled


@pytest.mark.parametrize("x", [[1e20, 2e20, 5e19], [1.0000001e20, 1.0], [-1e20, 1.0], [1e19, 1.0], [0.0, 0.0]])
def test_data_are_not_taken_for_fill_values(x):
    made = ut.as_slice(x)
    assert made.mask.all()
    assert not made.filled


def test_each_stream_is_looked_at_on_its_own():
    x = np.array([[1e20, 1.0], [1e20, 3e20], [1.0, 2.0]])
    assert fill_values(x, streams=True).tolist() == [[True, False], [False, False], [False, False]]
    assert ut.as_slice(x, streams=True).filled.tolist() == [True, False, False]
