"""The bank of local levels, against one plain Kalman filter per entry and pace, in double precision."""

import jax
import numpy as np
import pytest

from undertow.tracker import huber
from undertow.tracker.predictors import level as levels
from undertow.tracker.predictors.base import Given
from undertow.tracker.predictors.level import MEMORY, PRIOR_COUNT, RATIOS, TEMPER, Level, restart

ENTRIES, SLICES, NEVER = 7, 12, 5
predict, learn = jax.jit(Level().predict), jax.jit(Level().learn)


def made_stream(seed=0):
    """Random walks with gaps and weights below 1; one entry is never observed."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.normal(size=(SLICES, ENTRIES)), 0) + rng.normal(size=(SLICES, ENTRIES)) + 5
    weights = np.where(rng.random((SLICES, ENTRIES)) < 0.7, rng.choice([1.0, 0.4], (SLICES, ENTRIES)), 0.0)
    weights[:, NEVER] = 0
    return np.where(weights > 0, walks, 0).astype(np.float32), weights.astype(np.float32)


def given(values, weights):
    return Given(values, weights, np.zeros_like(values))


def run(stream):
    state, predictions, means = Level().init(stream[0].shape[1]), [], []
    for values, weights in zip(*stream, strict=True):
        predictions.append(predict(state, given(values, weights)))
        state, mean = learn(state, given(values, weights))
        means.append(mean)
    return state, predictions, means


class Plain:
    """One entry at one pace: mean m, variance p (over that of the noise), and what it says about noise and fit."""

    def __init__(self, ratio):
        self.ratio, self.m, self.p = float(ratio), None, None
        self.squares = self.count = self.score = 0.0

    def update(self, y, weight, noise):
        if self.m is None:
            if weight > 0:
                self.m, self.p = y, 1.0
            return
        predicted = self.p + self.ratio
        if weight == 0:
            self.p = predicted
            return
        error = y - self.m
        gain = predicted / (predicted + 1 / weight)  # an observation of weight w has the noise r / w
        self.m, self.p = self.m + gain * error, 1 / (1 / predicted + weight)
        expected = noise * (predicted + 1)
        bounded = min(error**2, huber.LOOSE**2 * expected) / float(huber.within(huber.LOOSE))
        keep = 1 - (1 - MEMORY) * weight
        self.squares = keep * self.squares + weight * bounded / (predicted + 1)
        self.count = keep * self.count + weight
        self.score = keep * self.score - 0.5 * weight * (error**2 / expected + np.log(expected))


def noises(filters):
    """Noise variance of every entry as the filters of one pace see it."""
    known = [one for one in filters if one.count > 0]
    roots, counts = ([np.sqrt(one.squares / one.count) for one in known], [one.count for one in known])
    shared = np.average(roots, weights=counts) ** 2 if known else 1.0
    return [(one.squares + PRIOR_COUNT * shared) / (one.count + PRIOR_COUNT) + 1e-12 for one in filters]


@pytest.fixture(scope="module")
def stream():
    return made_stream()


@pytest.fixture(scope="module")
def learned(stream):
    return run(stream)


@pytest.fixture(scope="module")
def plain(stream):
    banks = [[Plain(ratio) for _ in range(ENTRIES)] for ratio in RATIOS]
    for values, weights in zip(*stream, strict=True):
        for bank in banks:
            for one, y, weight, noise in zip(bank, values, weights, noises(bank), strict=True):
                one.update(float(y), float(weight), noise)
    return banks


@pytest.mark.parametrize(
    ("field", "name"), [("mean", "m"), ("variance", "p"), ("squares", "squares"), ("score", "score")]
)
def test_every_filter_is_a_kalman_filter(learned, plain, field, name):
    seen = [entry for entry in range(ENTRIES) if entry != NEVER]
    expected = np.array([[getattr(bank[entry], name) for entry in seen] for bank in plain])
    np.testing.assert_allclose(np.asarray(getattr(learned[0], field))[:, seen], expected, rtol=2e-4, atol=1e-4)


def test_prediction_is_the_mixture_of_the_filters(learned, plain):
    made = predict(learned[0], given(np.zeros(ENTRIES), np.zeros(ENTRIES)))
    for entry in range(ENTRIES):
        if entry == NEVER:
            continue
        scores = np.array([TEMPER * bank[entry].score for bank in plain])
        weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        noise = np.array([noises(bank)[entry] for bank in plain])
        means = np.array([bank[entry].m for bank in plain])
        within = np.array([bank[entry].p + bank[entry].ratio for bank in plain]) * noise
        mean = weights @ means
        np.testing.assert_allclose(made.mean[entry], mean, rtol=1e-4)
        np.testing.assert_allclose(made.variance[entry], weights @ (within + (means - mean) ** 2), rtol=1e-3)
        np.testing.assert_allclose(made.noise[entry], weights @ noise, rtol=1e-3)


def test_an_entry_never_seen_is_like_the_others(learned):
    made = predict(learned[0], given(np.zeros(ENTRIES), np.zeros(ENTRIES)))
    others = np.delete(np.asarray(made.mean), NEVER)
    np.testing.assert_allclose(made.mean[NEVER], others.mean(), rtol=1e-5)
    assert made.variance[NEVER] > others.var()
    np.testing.assert_allclose(learned[2][-1][NEVER], np.delete(np.asarray(learned[2][-1]), NEVER).mean(), rtol=1e-5)


def test_what_repeats_teaches_little_noise_and_what_is_withheld_may_teach_it(learned):
    values, weights = np.full(ENTRIES, 3.0, np.float32), np.ones(ENTRIES, np.float32)
    for weight, informative in ((1.0, 0.05), (0.0, 1.0)):
        one = Given(values, weight * weights, np.zeros_like(values), informative * weights)
        after, _ = learn(learned[0], one)
        plain, _ = learn(learned[0], given(values, informative * weights))
        for field in ("squares", "count", "score"):
            np.testing.assert_allclose(getattr(after, field), getattr(plain, field), rtol=1e-6)
        alone, _ = learn(learned[0], given(values, weight * weights))
        for field in ("mean", "variance"):
            np.testing.assert_array_equal(getattr(after, field), getattr(alone, field))


def test_nothing_observed_changes_no_mean_and_widens_the_variance(learned):
    nothing = given(np.zeros(ENTRIES), np.zeros(ENTRIES))
    after, _ = learn(learned[0], nothing)
    for field in ("mean", "squares", "count", "score", "seen"):
        np.testing.assert_array_equal(getattr(after, field), getattr(learned[0], field))
    assert (np.asarray(predict(after, nothing).variance) > np.asarray(predict(learned[0], nothing).variance)).all()


def test_prediction_of_an_entry_does_not_use_its_value(stream, learned):
    values, weights = stream[0][-1], stream[1][-1]
    one, other = (predict(learned[0], given(changed, weights)) for changed in (values, values + 100))
    np.testing.assert_array_equal(one.mean, other.mean)


def test_the_order_of_entries_does_not_matter(stream, learned):
    order = np.random.default_rng(1).permutation(ENTRIES)
    _, predictions, means = run((stream[0][:, order], stream[1][:, order]))
    np.testing.assert_allclose(means[-1], np.asarray(learned[2][-1])[order], rtol=1e-5)
    np.testing.assert_allclose(predictions[-1].variance, np.asarray(learned[1][-1].variance)[order], rtol=1e-4)


def test_a_shift_of_the_data_shifts_the_mean(stream, learned):
    values = np.where(stream[1] > 0, stream[0] + 64, 0)
    _, predictions, means = run((values, stream[1]))
    np.testing.assert_allclose(means[-1], np.asarray(learned[2][-1]) + 64, rtol=1e-5)
    np.testing.assert_allclose(predictions[-1].variance, learned[1][-1].variance, rtol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "pace", "best"), [(1.0, 0.0, 0.01), (0.01, 1.0, 1.0)])
def test_the_pace_that_fits_wins(noise, pace, best):
    rng = np.random.default_rng(2)
    values = np.cumsum(pace * rng.normal(size=(120, 30)), 0) + noise * rng.normal(size=(120, 30))
    state, _, _ = run((values.astype(np.float32), np.ones((120, 30), np.float32)))
    winner = RATIOS[np.bincount(np.asarray(state.score).argmax(0)).argmax()]
    assert winner <= best if pace == 0 else winner >= best


@pytest.mark.slow
def test_coverage_of_predictions_of_random_walks():
    rng = np.random.default_rng(3)
    values = np.cumsum(0.5 * rng.normal(size=(150, 30)), 0) + rng.normal(size=(150, 30))
    _, predictions, _ = run((values.astype(np.float32), np.ones((150, 30), np.float32)))
    u = [(y - p.mean) / np.sqrt(p.variance + p.noise) for y, p in zip(values, predictions, strict=True)][30:]
    assert 0.93 < (np.abs(u) < 1.96).mean() < 0.97


def test_restart_begins_with_the_value(learned):
    entries = np.arange(ENTRIES) == 2
    after = restart(learned[0], entries, np.full(ENTRIES, 50.0, np.float32))
    made = predict(after, given(np.zeros(ENTRIES), np.zeros(ENTRIES)))
    assert made.mean[2] == 50
    before = predict(learned[0], given(np.zeros(ENTRIES), np.zeros(ENTRIES)))
    np.testing.assert_array_equal(np.delete(made.noise, 2), np.delete(before.noise, 2))


def test_the_variance_of_a_long_gap_is_bounded(learned):
    state, nothing = learned[0], given(np.zeros(ENTRIES), np.zeros(ENTRIES))
    for _ in range(3):
        state, _ = learn(levels.LevelState(**{**vars(state), "variance": np.full_like(state.variance, 1e9)}), nothing)
    assert float(state.variance.max()) <= levels.WIDEST


@pytest.mark.parametrize("jump", [1e6, 1e9, 1e12])
def test_huge_jumps_leave_everything_finite(stream, jump):
    values = stream[0].copy()
    values[6:] *= jump
    state, predictions, means = run((values, stream[1]))
    assert np.isfinite(means).all()
    assert all(np.isfinite([made.mean, made.variance, made.noise]).all() for made in predictions)
    assert np.isfinite(state.score).all()
