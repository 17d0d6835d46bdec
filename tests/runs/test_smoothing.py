"""The combination of two passes, against what it should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.runs.smoothing import MOST, Correlation, combined

STD = st.floats(0.1, 10)


@given(STD, STD, st.floats(0, MOST))
def test_it_is_the_best_of_all_mixtures(first, second, rho):
    _, std = combined((np.zeros(1), np.ones(1)), (np.array([first]), np.array([second])), rho)
    w = np.linspace(0, 1, 2001)
    variances = w**2 * first**2 + (1 - w) ** 2 * second**2 + 2 * rho * w * (1 - w) * first * second
    assert std[0] ** 2 <= variances.min() * (1 + 1e-9)
    assert std[0] ** 2 == pytest.approx(variances.min(), rel=1e-3)


def test_errors_that_are_correlated_are_averaged_as_such():
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=(200, 50)), rng.normal(size=(2, 200, 50))
    errors = np.sqrt(0.6) * common + np.sqrt(0.4) * own
    found = Correlation()
    for first, second in zip(*errors, strict=True):
        found.add(np.where(first > 2, np.nan, first), second)
    found.add(np.full(5, 100.0), np.full(5, 100.0))  # outliers
    assert found.value() == pytest.approx(0.6, abs=0.05)
    mean, std = combined(tuple(errors), (np.ones((200, 50)),) * 2, 0.6)
    assert mean.std() == pytest.approx(std.mean(), rel=0.02)


def test_where_nothing_is_known_the_passes_count_as_one():
    assert Correlation().value() == MOST
    mean, std = combined((np.array([1.0]), np.array([3.0])), (np.array([0.0]), np.array([0.0])), 0.5)
    assert mean[0] == 2
    assert std[0] == 0
