"""Entries that are mostly zero: which they are, how large they are otherwise, and that this is no outlier."""

import jax
import numpy as np
import pytest

from undertow.tracker import law, zeros

ENTRIES = 200
learned, usual_square, mostly = jax.jit(zeros.learned), jax.jit(zeros.usual_square), jax.jit(zeros.mostly)


def followed(rates, slices=30, seed=0):
    """Zeros after Poisson counts on the scale of their roots."""
    draw, state = np.random.default_rng(seed), zeros.init(len(rates))
    for _ in range(slices):
        values = np.sqrt(draw.poisson(rates)).astype(np.float32)
        state = learned(state, values, np.ones(len(rates), bool))
    return state


def test_entries_that_are_mostly_zero_are_told_from_others():
    rates = np.where(np.arange(ENTRIES) < 100, 0.05, 5.0)
    state = followed(rates)
    np.testing.assert_array_equal(mostly(state), rates < 1)
    found = np.asarray(usual_square(state))
    assert (found[rates > 1] == 0).all()
    np.testing.assert_allclose(found[rates < 1], 1.0, atol=0.1)  # nearly all are ones


def test_what_hardly_ever_happens_is_not_usual():
    state = zeros.init(ENTRIES)
    for number in range(60):
        values = np.zeros(ENTRIES, np.float32)
        values[0] = 3.0 if number == 30 else 0.0
        state = learned(state, values, np.ones(ENTRIES, bool))
    assert float(state.found) > 0
    assert not np.asarray(usual_square(state)).any()


def test_without_zeros_nothing_is_known():
    draw, state = np.random.default_rng(1), zeros.init(ENTRIES)
    for _ in range(20):
        state = learned(state, draw.normal(size=ENTRIES).astype(np.float32), np.ones(ENTRIES, bool))
    assert not np.asarray(usual_square(state)).any()
    np.testing.assert_array_equal(zeros.news(state, np.zeros(ENTRIES)), 1)


def test_what_is_not_observed_is_not_counted():
    state, seen = followed(np.full(ENTRIES, 0.3)), np.arange(ENTRIES) < 50
    after = learned(state, np.where(seen, 7.0, 0.0).astype(np.float32), seen)
    for name in ("zero", "count"):
        np.testing.assert_array_equal(np.asarray(getattr(after, name))[~seen], np.asarray(getattr(state, name))[~seen])
    nothing = learned(state, np.zeros(ENTRIES, np.float32), np.zeros(ENTRIES, bool))
    jax.tree.map(np.testing.assert_array_equal, nothing, state)


def test_a_gross_count_does_not_make_others_usual():
    state = followed(np.full(ENTRIES, 0.05))
    values = np.zeros(ENTRIES, np.float32)
    values[3] = 1e4
    after = learned(state, values, np.ones(ENTRIES, bool))
    assert float(usual_square(after).max()) < 1.5


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_zeros_together_say_as_much_as_the_others(rate):
    state = followed(np.full(ENTRIES, rate))
    says = np.asarray(zeros.news(state, np.zeros(ENTRIES)))[0]
    assert says * (1 - rate) == pytest.approx(rate, rel=0.3)
    assert (np.asarray(zeros.news(state, np.ones(ENTRIES))) == 1).all()


@pytest.mark.slow
def test_innovations_count_by_their_weight():
    u = np.array([0.5, 3.0], np.float32)
    one = law.learned(law.init(), u, np.array([0.25, 0.0], np.float32))
    other = law.learned(law.init(), u[:1], np.array([0.25], np.float32))
    np.testing.assert_allclose(one.counts, other.counts)
    assert float(one.counts.sum()) == pytest.approx(law.FORGETTING * law.PRIOR_OBSERVATIONS + 0.25, rel=1e-3)
