"""Tail probabilities beside those of scipy, and what is learned beside what was drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from undertow.incidents.scores import lasting_surprise
from undertow.incidents.stuck import FEWEST, Stuck
from undertow.incidents.tails import PooledLaw, Tails, combined, largest, reference


def test_the_reference_is_student_t_with_four_degrees_of_freedom():
    u = np.geomspace(1e-6, 1e6, 200)
    np.testing.assert_allclose(reference(u), -np.log(2) - stats.t.logsf(u, 4), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(reference(-u), reference(u))


@given(number=st.integers(4, 5000), times=st.floats(0.3, 4))
def test_sums_of_surprises_are_nearly_those_of_a_gamma_law(number, times):
    total = number * (1 + times / number**0.5)
    found = combined(np.array([total]), np.array([float(number)]))[0]
    assert found == pytest.approx(-stats.gamma.logsf(total, number), rel=0.05, abs=0.05)


@given(surprise=st.floats(0.01, 30), groups=st.integers(1, 10**6))
def test_the_largest_of_many(surprise, groups):
    expected = -np.log(-np.expm1(groups * np.log1p(-np.exp(-surprise))))
    assert largest(np.array([surprise, 0.0]), groups) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("draw", [lambda rng, n: rng.normal(size=n), lambda rng, n: rng.standard_t(3, n)])
def test_the_pooled_law_learns_the_tail_that_there_is(draw):
    """Of 10⁵ new draws as many as should are beyond a surprise of 7: about 91."""
    rng = np.random.default_rng(0)
    law = PooledLaw()
    for _ in range(400):
        law.learn(reference(draw(rng, 500)))
    beyond = np.count_nonzero(law.surprise(reference(draw(rng, 100_000))) > 7)
    assert 30 <= beyond <= 160


def test_tails_of_a_group_that_is_often_odd_grow():
    rng = np.random.default_rng(0)
    tails = Tails.new(2, 3.0, 200.0, 30.0)
    for _ in range(3000):
        tails.learn(np.array([rng.exponential(), 4 * rng.exponential()]), 2000.0)
    usual, odd = tails.surprise(np.array([15.0, 15.0]))
    assert 12 < usual < 18
    assert odd < 6
    before = tails.total.copy()
    tails.learn(np.array([np.nan, 50.0]), 2000.0, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(tails.total, before)


def test_who_is_stuck_depends_on_how_long_he_usually_stays():
    rng = np.random.default_rng(0)
    stuck = Stuck.new(3)
    for _ in range(600):
        stuck.learn(np.array([rng.normal(), float(rng.random() < 0.05), 7.0]))
    assert (stuck.surprise() < 13).all()
    for _ in range(2 * FEWEST):
        stuck.learn(np.array([1.5, 0.0, 7.0]))
    moving, lazy, constant = stuck.surprise()
    assert moving > 13 > lazy
    assert constant == 0  # it has never moved


def test_entries_that_stay_off_are_judged_by_sums_of_signed_surprises():
    draw = np.random.default_rng(3)
    sums = np.abs(np.sum(draw.exponential(size=(400_000, 4)) * draw.choice([-1, 1], (400_000, 4)), axis=1))
    for size in (0.0, 1.0, 3.0, 6.0, 9.0):
        expected = (sums >= size).mean()
        assert np.exp(-lasting_surprise(np.array(size))) == pytest.approx(expected, abs=5 * np.sqrt(expected / 400_000))
