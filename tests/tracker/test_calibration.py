"""Factors that make what predictors claim of their errors true."""

import jax
import numpy as np
import pytest

from undertow.tracker import calibration, huber
from undertow.tracker.calibration import MEMORY, PRIOR_COUNT, Calibration

K, ENTRIES = 2, 30
learned, factors = jax.jit(calibration.learned), jax.jit(calibration.factors)
ALL = np.ones(ENTRIES, np.float32)


def test_before_anything_is_seen_claims_are_believed():
    np.testing.assert_array_equal(factors(calibration.init(K, ENTRIES)), 1)


def test_claims_become_true_for_every_predictor_and_entry():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 2, (K, ENTRIES))
    claimed = np.array([[0.01], [50.0]]) * np.ones((K, ENTRIES))
    state = calibration.init(K, ENTRIES)
    for _ in range(300):
        state = learned(state, true * rng.normal(size=true.shape), claimed, ALL)
    ratio = np.asarray(factors(state)) * claimed / true**2
    assert 0.8 < np.median(ratio) < 1.1
    assert (ratio > 0.3).all()
    assert (ratio < 3).all()


def test_sums_are_discounted_and_drawn_towards_those_of_all_entries():
    squares, count = np.arange(1.0, K * ENTRIES + 1).reshape(K, ENTRIES), np.arange(ENTRIES) + 4.0
    shared = (count * np.sqrt(squares / count)).sum(1, keepdims=True) ** 2 / count.sum() ** 2
    expected = (squares + PRIOR_COUNT * shared) / (count + PRIOR_COUNT)
    state = Calibration(squares.astype(np.float32), count.astype(np.float32))
    np.testing.assert_allclose(factors(state), expected, rtol=1e-5)
    weights = np.where(np.arange(ENTRIES) % 2, 0.5, 0).astype(np.float32)
    after = learned(state, np.full((K, ENTRIES), 0.2), np.ones((K, ENTRIES)), weights)
    seen, keep = weights > 0, 1 - (1 - MEMORY) * 0.5
    np.testing.assert_allclose(after.squares, np.where(seen, keep * squares + 0.5 * 0.04 / 0.9950, squares), rtol=1e-5)
    np.testing.assert_allclose(after.count, np.where(seen, keep * count + 0.5, count), rtol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e15])
def test_one_gross_error_widens_little(size):
    state = calibration.init(K, ENTRIES)
    rng = np.random.default_rng(1)
    for _ in range(50):
        state = learned(state, rng.normal(size=(K, ENTRIES)), np.ones((K, ENTRIES)), ALL)
    before = np.asarray(factors(state))
    after = np.asarray(factors(learned(state, np.full((K, ENTRIES), size), np.ones((K, ENTRIES)), ALL)))
    assert (after < 1.5 * before).all()


@pytest.mark.parametrize(("share", "width"), [(0.0, 1.0), (0.1, 1.25), (0.2, 1.65)])
def test_gross_errors_of_a_fifth_of_the_entries_do_not_pass_for_noise(share, width):
    rng, state = np.random.default_rng(2), calibration.init(K, ENTRIES)
    for _ in range(300):
        bad = rng.random(ENTRIES) < share
        errors = np.where(bad, 1e3, rng.normal(size=(K, ENTRIES)))
        state = learned(state, errors, np.ones((K, ENTRIES)), ALL, huber.bound(share))
    assert np.median(np.sqrt(factors(state))) == pytest.approx(width, rel=0.15)


def test_entries_that_never_move_say_nothing_about_the_others():
    moving = np.arange(ENTRIES) < 3
    squares = np.where(moving, 8.0, 0.0) * np.ones((K, 1))
    state = Calibration(squares.astype(np.float32), np.full(ENTRIES, 2.0, np.float32))
    np.testing.assert_allclose(factors(state)[:, ~moving], 4 * PRIOR_COUNT / (2 + PRIOR_COUNT), rtol=1e-5)


def test_variances_of_rare_events_do_not_vanish():
    rng, state = np.random.default_rng(4), calibration.init(1, ENTRIES)
    other = calibration.init(1, ENTRIES)
    for _ in range(200):
        errors = (rng.random((1, ENTRIES)) < 0.05).astype(np.float32)
        claimed = np.full((1, ENTRIES), 0.05, np.float32)
        state = learned(state, errors, claimed, ALL, huber.LOOSE, np.float32(1.0))
        other = learned(other, errors, claimed, ALL, huber.LOOSE, np.float32(0.0))
    assert float(factors(state).mean()) == pytest.approx(1, abs=0.2)
    assert float(factors(other).mean()) < 0.2
