"""Periods that are found, and what profiles and deviations say, against plain versions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import tree

import undertow as ut
from undertow.tracker import season as seasons

ENTRIES = 7


def wave(slices, period, noise=0.3, seed=0, entries=ENTRIES):
    rng = np.random.default_rng(seed)
    shape = rng.normal(size=(period, entries)).cumsum(0)
    shape -= np.linspace(0, 1, period)[:, None] * shape[-1]
    return (shape[np.arange(slices) % period] + noise * rng.normal(size=(slices, entries))).astype(np.float32)


@pytest.mark.parametrize("period", [7, 12, 24, 50])
def test_a_period_is_found_exactly(period):
    assert seasons.period_of(wave(4 * period, period)) == period
    assert (
        seasons.period_of(wave(4 * period, period) + np.linspace(0, 30, 4 * period, dtype=np.float32)[:, None])
        == period
    )


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_walks_have_none(seed):
    noise = np.random.default_rng(seed).normal(size=(200, ENTRIES)).astype(np.float32)
    assert seasons.period_of(noise) == 0
    assert seasons.period_of(noise.cumsum(0)) == 0
    assert seasons.period_of(np.ones_like(noise)) == 0


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(ENTRIES)), st.floats(1e-3, 1e3), st.floats(-10, 10))
def test_order_unit_and_origin_do_not_matter(order, unit, origin):
    slices = wave(72, 18)
    changed = (unit * (slices + origin))[:, list(order)].astype(np.float32)
    assert seasons.period_of(changed) == seasons.period_of(slices) == 18


@pytest.mark.parametrize("missing", [2, 4, 20])
def test_a_stream_that_lacked_some_slices_once_keeps_its_period(missing):
    slices = wave(10 * 24, 24, noise=0.3)
    cut = np.concatenate([slices[:100], slices[100 + missing :]])
    assert all(seasons.period_of(cut[:count]) == 24 for count in (96, 144, 192))


def test_too_short_a_past_has_none():
    assert seasons.period_of(wave(24, 12)) == 0
    assert seasons.period_of(wave(5, 2)) == 0


def test_when_a_period_is_looked_for():
    assert [count for count in range(400) if seasons._due(count)] == [24, 36, 48, 72, 96, 144, 192, 288, 384]


def follow(season, slices, weights=None):
    for number, x in enumerate(slices):
        weight = np.ones(ENTRIES, np.float32) if weights is None else weights[number]
        season, _ = seasons.fitted(season, x, weight, ENTRIES)
        season = seasons.remembered(season, x, weight, np.full(ENTRIES, 5.0), np.full(ENTRIES, 1e3))
    return season


@pytest.mark.slow
def test_profiles_are_weighted_means_over_cycles():
    slices = wave(26, 6, noise=1)
    weights = (np.random.default_rng(1).uniform(size=slices.shape) < 0.7).astype(np.float32)
    season = follow(seasons.start(ENTRIES, period=6), slices, weights)
    full = np.where(weights > 0, slices, 5.0)
    for period, profile in zip(season.periods, season.profiles, strict=True):
        for phase in range(period):
            mean = None
            for count, x in enumerate(full[phase::period], 1):
                mean = x if mean is None else mean + max(1 / count, seasons.SLOWEST) * (x - mean)
            if mean is None:
                assert np.isnan(profile[phase]).all()
            else:
                np.testing.assert_allclose(profile[phase], mean, rtol=1e-5)


def test_what_is_found_is_learned_from_the_past_immediately():
    slices = wave(72, 18)
    found = follow(seasons.start(ENTRIES), slices)
    told = follow(seasons.start(ENTRIES, period=18), slices)
    assert found.periods == told.periods == (18, 126)
    np.testing.assert_allclose(found.profiles[0], told.profiles[0], rtol=1e-5)
    said = np.asarray(seasons.predict(found, ENTRIES).mean)
    np.testing.assert_allclose(said, wave(73, 18, noise=0)[-1], atol=1.0)


def test_deviations_last():
    """A day that runs high is expected to go on running high; the profile alone does not know."""
    slices = wave(80, 8, noise=0.05)
    slices[-4:] += 10
    season = follow(seasons.start(ENTRIES, period=8), slices)
    clean = wave(81, 8, noise=0)[-1]
    with_deviation, alone, latest = seasons.at(season, 0)
    np.testing.assert_array_equal(latest, slices[-8])
    assert np.abs(with_deviation - clean - 10).max() < np.abs(alone - clean - 10).max() / 2


def test_before_a_cycle_nothing_is_said():
    season = seasons.start(ENTRIES, period=8)
    assert np.isnan(np.asarray(seasons.predict(season, ENTRIES).mean)).all()
    assert np.isnan(np.asarray(seasons.predict(None, ENTRIES).mean)).all()
    assert np.isnan(np.asarray(seasons.fitted(None, np.ones(ENTRIES), np.ones(ENTRIES), ENTRIES)[1])).all()


def test_a_gap_moves_the_phase():
    season = follow(seasons.start(ENTRIES, period=8), wave(40, 8))
    np.testing.assert_array_equal(seasons.rows(seasons.skipped(season, 3)), seasons.rows(season, 3))


def test_a_copy_is_independent():
    season = follow(seasons.start(ENTRIES, period=8), wave(20, 8))
    copy = season.copied()
    before = [one.copy() for one in season.profiles]
    follow(copy, wave(8, 8) + 100)
    for one, other in zip(season.profiles, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_scale():
    season = follow(seasons.start(ENTRIES), wave(72, 18))
    doubled = seasons.reframed(season, lambda z: 2 * z + 1)
    np.testing.assert_allclose(doubled.profiles[0], 2 * season.profiles[0] + 1, rtol=1e-6)
    np.testing.assert_allclose(seasons.ordered(doubled), 2 * seasons.ordered(season) + 1, rtol=1e-6)
    before, after = seasons.predict(season, ENTRIES), seasons.predict(doubled, ENTRIES)
    np.testing.assert_allclose(after.mean, 2 * np.asarray(before.mean) + 1, rtol=1e-5)
    np.testing.assert_allclose(after.noise, 4 * np.asarray(before.noise), rtol=1e-3)


def test_large_slices_keep_no_past():
    season = seasons.start(1_000_000)
    assert season.history is None
    assert seasons.remembered(season, None, None, None, None).clock == 1
    assert seasons.start(1_000_000, period=10).periods == ()


def test_what_is_far_from_the_answer_is_cut_off():
    season = seasons.start(ENTRIES, period=4)
    far = np.full(ENTRIES, 9.0)
    season = seasons.remembered(season, far, np.ones(ENTRIES), np.full(ENTRIES, 5.0), np.full(ENTRIES, 1.0))
    np.testing.assert_allclose(season.latest[0], 5 + seasons.FARTHEST)


def test_a_new_season_says_nothing_until_its_noise_is_known():
    """It would widen the error bars of everybody by what is not known of it."""
    slices = wave(30, 8)
    season = follow(seasons.start(ENTRIES, period=8), slices[:8])
    said = []
    for number in (8, 9, 10):
        said.append(np.asarray(seasons.predict(season, ENTRIES).mean))
        assert np.isfinite(seasons.at(season, 0)[1]).all()
        season = follow(season, slices[number : number + 1])
    assert np.isnan(said[0]).all()
    assert np.isnan(said[1]).all()
    assert np.isfinite(said[2]).all()


@pytest.mark.slow
def test_nor_does_a_new_week():
    """However badly the days have done: what was never compared has lost nothing yet."""
    slices = wave(28, 4, noise=3)
    slices[20:] += 30
    season = follow(seasons.start(ENTRIES, period=4), slices)
    day = replace(
        season, profiles=season.profiles[:1], periods=(4,), deviation=tree.map(lambda one: one[:1], season.deviation)
    )
    said, alone = (seasons.predict(one, ENTRIES) for one in (season, day))
    np.testing.assert_allclose(said.mean, alone.mean)
    np.testing.assert_allclose(said.variance, alone.variance)


def test_profiles_are_compared_over_as_many_observations():
    """A bad week that is new would win: it was wrong only once."""
    slices = wave(30, 4, noise=3)
    slices[:4] += 30  # a holiday, which the week remembers
    season = follow(seasons.start(ENTRIES, period=4), slices)
    alone = seasons.at(season, 0)[1]
    day, week = seasons.rows(season)
    assert np.abs(alone - day).mean() < np.abs(alone - week).mean()


@pytest.mark.slow
def test_of_a_slice_of_nothing_a_tracker_remembers_its_answer_not_that_of_the_slice_before():
    of_cycle = np.array([0.0, 10.0, 0.0, -10.0])
    tracker, draw = ut.Tracker(period=4), np.random.default_rng(0)
    for t in range(12):
        tracker.update(of_cycle[t % 4] + 0.1 * draw.normal(size=(6, 5)))
    result = tracker.update(np.full((6, 5), np.nan))
    np.testing.assert_allclose(result.mean, of_cycle[0], atol=3)
    state = tracker._state
    (profile, *_), frame = state.season.profiles, state.frame
    assert frame.scale == 0
    np.testing.assert_allclose(profile[0] * frame.unit + frame.origin, of_cycle[0], atol=1)  # otherwise more than 2 off
