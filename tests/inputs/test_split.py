"""Halves of a slice: fair, the same however the slice is stored, and others at another time."""

import numpy as np

import undertow as ut
from undertow.inputs.split import half, half_of_shape


def test_halves_are_fair_and_change_with_time():
    halves = np.stack([half_of_shape((60, 50), steps) for steps in range(8)])
    assert np.abs(halves.mean(axis=(1, 2)) - 0.5).max() < 0.05
    assert np.abs(np.corrcoef(halves.reshape(8, -1)) - np.eye(8)).max() < 0.1


def test_dense_and_sparse_slices_have_the_same_halves():
    i, j = np.array([0, 3, 5]), np.array([4, 0, 2])
    x = ut.Entries((i, j), np.ones(3), (6, 5))
    np.testing.assert_array_equal(half(x, 7), half_of_shape((6, 5), 7)[i, j])
    np.testing.assert_array_equal(half(x.to_slice(), 7), half_of_shape((6, 5), 7))
