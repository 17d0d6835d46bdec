"""Forecasts are scored when their slice comes, weighed by that, and their error bars hold."""

import numpy as np
import pytest

from undertow.tracker import ahead as forecasts
from undertow.tracker.ahead import CANDIDATES, Ahead, Pending
from undertow.tracker.scales import LINEAR, LOG
from undertow.tracker.season import start

ENTRIES = 50


def weights_of(gram):
    return np.asarray(forecasts._combined(gram, np.float32(0), np.eye(len(CANDIDATES), dtype=np.float32), LINEAR))


def width(scored):
    return forecasts.quantile(scored.spread) + scored.factor


def pending(means, due=0, std=1.0):
    return {1: (Pending(due, np.asarray(means, np.float32), np.full(ENTRIES, std, np.float32)),)}


def products(truth, errors):
    """Relative to the slice, over the size of the median candidate's error."""
    found = errors @ errors.T / (truth**2).sum()
    return found / np.sqrt(np.median(np.diag(found)))


def followed(errors, std, slices=60, seed=0):
    """Forecasts whose candidates are wrong by normal numbers of these sizes."""
    rng, state = np.random.default_rng(seed), Ahead()
    for clock in range(slices):
        truth = rng.normal(size=ENTRIES).astype(np.float32) * 10
        means = truth + rng.normal(size=(len(CANDIDATES), ENTRIES)) * np.array(errors)[:, None]
        state = Ahead(pending(means, clock, std), state.scored)
        state = forecasts.scored(state, clock, truth, np.ones(ENTRIES, bool), LINEAR)
    return state.scored[1]


@pytest.mark.slow
def test_the_better_candidate_counts():
    scored = followed([5, 5, 5, 0.5, 5, 5], std=1)
    weights = weights_of(scored.gram)
    assert np.argmax(weights) == CANDIDATES.index("season")
    assert weights.max() > 0.9


@pytest.mark.slow
def test_weights_are_of_inverse_variances():
    sizes = np.array([1, 2, 2, 4, 4, 4.0])
    weights = weights_of(followed(sizes, std=1, slices=400).gram)
    np.testing.assert_allclose(weights, sizes**-2 / (sizes**-2).sum(), atol=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("std", [0.1, 1.0, 10.0])
def test_error_bars_are_calibrated(std):
    scored = followed([2, 9, 9, 9, 9, 9], std=std, slices=200)
    assert np.exp(width(scored)) * std == pytest.approx(2 / np.sqrt(1 + 5 * (2 / 9) ** 2), rel=0.15)


def test_error_bars_hold_where_few_entries_are_observed():
    """The largest but one of twenty is no 95 % quantile of what is to come."""
    rng, state, held = np.random.default_rng(3), Ahead(), []
    few = np.arange(ENTRIES) < 20
    for clock in range(400):
        truth = rng.normal(size=ENTRIES).astype(np.float32)
        if clock > 100:
            held.append(np.abs(truth[few]) <= 1.96 * np.exp(forecasts.factor_of(state, 1)))
        state = Ahead(pending(np.zeros((len(CANDIDATES), ENTRIES)), clock), state.scored)
        state = forecasts.scored(state, clock, truth, few, LINEAR)
    assert 0.93 < np.mean(held) < 0.97


@pytest.mark.slow
def test_slices_at_which_everybody_is_far_off_do_not_outvote_the_others():
    """By day the first candidate is twice as good; by night, when everybody is wrong by all there is, half as good."""
    rng, state = np.random.default_rng(5), Ahead()
    for clock in range(60):
        night = clock % 5 == 0
        truth = rng.normal(size=ENTRIES).astype(np.float32) * (0.1 if night else 10)
        sizes = [0.1, 0.05, 0.2, 0.2, 0.2, 0.2] if night else [2, 4, 8, 8, 8, 8]
        means = truth + rng.normal(size=(len(CANDIDATES), ENTRIES)) * np.array(sizes)[:, None]
        state = Ahead(pending(means, clock), state.scored)
        state = forecasts.scored(state, clock, truth, np.ones(ENTRIES, bool), LINEAR)
    weights = weights_of(state.scored[1].gram)
    assert weights[0] > weights[1]


def test_what_is_far_is_remembered_for_longer():
    """Ten horizons: of one slice ahead ten forecasts, of eight ahead eighty."""
    state = Ahead({horizon: pending(np.zeros((len(CANDIDATES), ENTRIES)))[1] for horizon in (1, 8)})
    truth = np.ones(ENTRIES, np.float32)
    state = forecasts.scored(state, 0, truth, np.ones(ENTRIES, bool), LINEAR)
    after = forecasts.with_scores(
        state, 1, [1, 8], [(0 * state.scored[1].gram, 0.0, 0 * state.scored[1].spread, 0.0)] * 2, ENTRIES
    )
    for horizon, kept in ((1, 0.9), (8, 1 - 1 / 80)):
        for name in ("gram", "spread"):
            known, before = (getattr(one.scored[horizon], name) for one in (after, state))
            np.testing.assert_allclose(known, kept * before, rtol=1e-6)


def test_candidates_are_weighed_in_the_units_of_the_data():
    """Large values, on which the second candidate is right, count more than they do on the scale of logarithms."""
    truth = np.where(np.arange(ENTRIES) < 5, 8.0, 2.0)
    means = np.stack([truth + np.where(truth > 5, 0.5, 0), truth + np.where(truth > 5, 0, 0.5), *[0 * truth] * 4])
    state = forecasts.scored(Ahead(pending(means)), 0, truth.astype(np.float32), np.ones(ENTRIES, bool), LOG)
    errors = np.sinh(truth) / 2 - np.sinh(means) / 2
    np.testing.assert_allclose(state.scored[1].gram, products(np.sinh(truth) / 2, errors), rtol=1e-3)
    assert np.argmax(weights_of(state.scored[1].gram)) == 1


def test_the_gram_matrix_is_the_plain_sum():
    rng = np.random.default_rng(1)
    truth, means = rng.normal(size=ENTRIES), rng.normal(size=(len(CANDIDATES), ENTRIES))
    trusted = rng.uniform(size=ENTRIES) < 0.5
    state = forecasts.scored(Ahead(pending(means)), 0, truth.astype(np.float32), trusted, LINEAR)
    expected = products(truth[trusted], (truth - means)[:, trusted])
    np.testing.assert_allclose(state.scored[1].gram, expected, rtol=1e-4)
    assert state.scored[1].count == 1
    assert state.pending == {}


def test_what_never_came_is_dropped_and_what_is_to_come_stays():
    means = np.zeros((len(CANDIDATES), ENTRIES))
    state = Ahead({1: pending(means, due=3)[1], 4: pending(means, due=9)[1]})
    after = forecasts.scored(state, 5, np.ones(ENTRIES, np.float32), np.ones(ENTRIES, bool), LINEAR)
    assert list(after.pending) == [4]
    assert after.scored == {}


def test_nothing_observed_scores_nothing():
    state = Ahead(pending(np.zeros((len(CANDIDATES), ENTRIES))))
    assert forecasts.scored(state, 0, np.zeros(ENTRIES, np.float32), np.zeros(ENTRIES, bool), LINEAR).scored == {}


@pytest.mark.parametrize("odd", [0.0, 0.2])
def test_error_bars_hold_on_the_whole_where_slices_are_uneven(odd):
    """In one of five slices everything is five times as far off: no slice has a quantile that would do."""
    rng, state, held = np.random.default_rng(4), Ahead(), []
    for clock in range(600):
        truth = rng.normal(size=ENTRIES).astype(np.float32) * (5 if rng.random() < odd else 1)
        if clock > 100:
            held.append(np.abs(truth) <= 1.96 * np.exp(forecasts.factor_of(state, 1)))
        state = Ahead(pending(np.zeros((len(CANDIDATES), ENTRIES)), clock), state.scored)
        state = forecasts.scored(state, clock, truth, np.ones(ENTRIES, bool), LINEAR)
    assert 0.94 < np.mean(held) < 0.96


def test_large_slices_are_scored_by_a_sample():
    entries = 3 * forecasts.MOST_SCORED
    places = forecasts.sampled(entries)
    assert len(set(places.tolist())) == forecasts.MOST_SCORED
    assert forecasts.sampled(forecasts.MOST_SCORED) is None
    values = np.arange(2 * entries).reshape(2, entries)
    np.testing.assert_array_equal(forecasts.of_sample(values), values[:, places])


def test_horizons_of_whole_days_teach_each_other():
    """108 slices are a day: 128 are about as many, but at another hour."""
    good, bad = np.eye(len(CANDIDATES), dtype=np.float32), np.eye(len(CANDIDATES), dtype=np.float32)
    good[1, 1], bad[1, 1] = 0.01, 100.0
    state = Ahead({}, {108: forecasts.Scored(good, count=9), 128: forecasts.Scored(bad, count=9)})
    for horizon, likes_the_last in ((108, True), (216, True), (124, False), (130, False)):
        gram = forecasts.nearby(state, horizon, period=108).gram
        assert (np.argmax(weights_of(gram)) == 1) == likes_the_last


def test_what_is_known_of_whole_days_says_nothing_of_other_horizons():
    """A day ahead the last answer is of the same hour, an hour less it is not; so it was 16 hours ahead."""
    good, bad = np.eye(len(CANDIDATES), dtype=np.float32), np.eye(len(CANDIDATES), dtype=np.float32)
    good[1, 1], bad[1, 1] = 0.01, 100.0
    state = Ahead({}, {16: forecasts.Scored(bad, count=9), 24: forecasts.Scored(good, count=9)})
    for horizon, likes_the_last in ((23, False), (24, True), (25, False), (48, True)):
        gram = forecasts.nearby(state, horizon, period=24).gram
        assert (np.argmax(weights_of(gram)) == 1) == likes_the_last


def test_a_season_that_is_found_begins_anew():
    before = Ahead(
        pending(np.zeros((len(CANDIDATES), ENTRIES))), {1: forecasts.Scored(np.eye(len(CANDIDATES)), count=9)}
    )
    means, std = np.ones((1, len(CANDIDATES), ENTRIES), np.float32), np.ones(ENTRIES, np.float32)
    same = forecasts.with_forecasts(before, start(ENTRIES), [1], means, std)
    assert (len(same.pending[1]), list(same.scored)) == (2, [1])
    after = forecasts.with_forecasts(before, start(ENTRIES, period=24), [1], means, std)
    assert (len(after.pending[1]), after.scored, after.period) == (1, {}, 24)


@pytest.mark.parametrize("forecasts_known", [1, 4, 9])
def test_error_bars_are_the_quantile_of_what_was_off_lately(forecasts_known):
    """Of all entries of all forecasts together, and a little more for the one that is to come."""
    off = np.exp(np.random.default_rng(2).normal(size=100_000))
    edges = forecasts.LOWEST + forecasts.WIDTH * np.arange(forecasts.BINS + 1)
    spread = forecasts_known * np.histogram(np.log(off / 1.96), edges)[0] / off.size
    level = 0.95 + 0.05 / (1 + forecasts_known)
    assert 1.96 * np.exp(forecasts.quantile(spread)) == pytest.approx(np.quantile(off, level), rel=0.02)


def test_where_fitted_weights_do_worse_the_last_answer_counts():
    """The first candidate was the best so far, and then is four times as far off as the last answer."""
    gram = np.eye(len(CANDIDATES), dtype=np.float32)
    gram[0, 0] = 1e-6
    truth = np.random.default_rng(0).normal(size=ENTRIES).astype(np.float32)
    sizes = np.array([0.4, 0.1, 1, 1, 1, 1])
    state = Ahead(pending(truth * (1 + sizes[:, None])), {1: forecasts.Scored(gram, count=5)})
    assert forecasts.nearby(state, 1).share == 0.5
    after = forecasts.scored(state, 0, truth, np.ones(ENTRIES, bool), LINEAR)
    assert after.scored[1].excess == pytest.approx(np.log(4), abs=0.05)
    assert forecasts.nearby(after, 1).share == pytest.approx(1 - 1 / (1 + 4**2), abs=0.01)
    eye = np.eye(len(CANDIDATES), dtype=np.float32)
    assert forecasts._combined(after.scored[1].gram, np.float32(1), eye, LINEAR)[1] == 1


def test_outliers_are_part_of_what_comes_and_decide_no_weights():
    states = []
    for spike in (0.0, 1e3):
        draw, state = np.random.default_rng(6), Ahead()
        for clock in range(300):
            truth = draw.normal(size=ENTRIES).astype(np.float32)
            means = truth + draw.normal(size=(len(CANDIDATES), ENTRIES)) * np.array([1, 2, 3, 3, 3, 3])[:, None]
            truth[0] += spike * (clock % 2)
            state = Ahead(pending(means, clock), state.scored)
            state = forecasts.scored(state, clock, truth, np.ones(ENTRIES, bool), LINEAR)
        states.append(state.scored[1])
    clean, spiky = states
    assert np.exp(width(clean)) < np.exp(width(spiky)) < 1.5 * np.exp(width(clean))
    assert np.abs(weights_of(spiky.gram) - weights_of(clean.gram)).max() < 0.1
