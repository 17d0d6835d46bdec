"""Huber's scale: its constant against an average of normal draws, its bound for a fraction of outliers."""

import numpy as np
import pytest

from undertow.tracker import huber


@pytest.mark.parametrize("c", [1.5, 2.0, 3.0])
def test_normal_errors_within_a_bound(c):
    z = np.random.default_rng(0).normal(size=1_000_000)
    assert float(huber.within(c)) == pytest.approx(np.minimum(z**2, c**2).mean(), rel=3e-3)


def test_the_bound_is_as_small_as_outliers_require():
    assert [float(huber.bound(rate)) for rate in (0.0, 0.01, 0.4)] == [huber.LOOSE, huber.LOOSE, huber.TIGHT]
    for rate in (0.05, 0.1, 0.15):
        assert rate * float(huber.bound(rate)) ** 2 == pytest.approx(huber.SHARE, rel=1e-5)


def test_what_is_usual_counts_in_full():
    squares, variance = np.array([1e-4, 1.0, 25.0]), np.full(3, 0.01)
    most = 9 * 0.01 / float(huber.within(3.0))
    np.testing.assert_allclose(huber.bounded(squares, variance, 3.0), [1e-4 / huber.within(3.0), most, most], rtol=1e-5)
    np.testing.assert_allclose(huber.bounded(squares, variance, 3.0, 1.5), [1e-4, 1.0, 1.5], rtol=1e-5)
