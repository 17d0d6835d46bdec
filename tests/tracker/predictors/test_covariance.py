"""Covariances, against the dense matrix Σ = F Fᵀ + diag(d) with one entry actually left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker.predictors import covariance as module
from undertow.tracker.predictors.base import Given
from undertow.tracker.predictors.covariance import (
    LEAST_WEIGHT,
    LEVEL,
    MEAN,
    SHRINKAGE_MEMORY,
    SHRINKAGES,
    ZERO,
    Covariance,
    Covariances,
    CovarianceState,
)

ENTRIES, SLICES = 9, 25
predict, learn = jax.jit(Covariance.predict), jax.jit(Covariance.learn)
ABOUT = pytest.mark.parametrize("about", [ZERO, MEAN, LEVEL], ids=["zero", "mean", "level"])


def covariance(about, half_life=20):
    return Covariance(jnp.float32(0.5 ** (1 / half_life)), jnp.int32(about))


def made_stream(entries=ENTRIES, slices=SLICES, seed=0, missing=0.3):
    """Correlated entries with a level of their own, with gaps and with weights below 1."""
    rng = np.random.default_rng(seed)
    mixing, level = rng.normal(size=(entries, 3)), 2 * rng.normal(size=entries)
    values = rng.normal(size=(slices, 3)) @ mixing.T + level + 0.3 * rng.normal(size=(slices, entries))
    weights = np.where(rng.random(values.shape) < missing, 0, rng.choice([1.0, 1.0, 0.5], values.shape))
    return [
        Given(*(part.astype(np.float32) for part in (np.where(weight > 0, y, 0), weight, level)))
        for y, weight in zip(values, weights, strict=True)
    ]


class Dense:
    """The same with n × n matrices in double precision."""

    def __init__(self, about, mu, entries):
        self.about, self.mu = about, mu
        self.scatter, self.squares = np.zeros((entries, entries)), np.zeros(entries)
        self.mean, self.weight = np.zeros(entries), 0.0
        self.losses = np.zeros(len(SHRINKAGES))

    def centre(self, given):
        return {ZERO: np.zeros_like(self.mean), MEAN: self.mean, LEVEL: np.asarray(given.level, float)}[self.about]

    def parts(self, shrinkage=None):
        """F Fᵀ and d."""
        shrinkage = float(SHRINKAGES[np.argmin(self.losses)]) if shrinkage is None else shrinkage
        weight = max(self.weight, 1e-6)
        total, common = self.squares / weight, (1 - shrinkage) * self.scatter / weight
        own = np.maximum(total - np.diag(common), shrinkage * total)
        return common, own + 1e-3 * total + 1e-5 * total.mean() + 1e-12

    def conditional(self, given, entry, without_itself, shrinkage=None):
        """Mean and variance of the common part of an entry, given the observed ones; and d."""
        common, own = self.parts(shrinkage)
        weights, centre = np.asarray(given.weights, float), self.centre(given)
        if self.weight < LEAST_WEIGHT:
            return given.level[entry], self.squares[entry] / max(self.weight, 1e-6) + 1, own[entry]
        kept = [one for one in np.flatnonzero(weights > 0) if not (without_itself and one == entry)]
        if not kept:
            return centre[entry], common[entry, entry], own[entry]
        between = common[np.ix_(kept, kept)] + np.diag(own[kept] / weights[kept])
        solved = np.linalg.solve(between, common[kept, entry])
        deviation = np.asarray(given.values, float)[kept] - centre[kept]
        return centre[entry] + solved @ deviation, common[entry, entry] - solved @ common[kept, entry], own[entry]

    def fitted(self, given):
        return np.array([self.conditional(given, entry, False) for entry in range(len(self.mean))]).T

    def loss(self, given, shrinkage):
        """Squared error on observed entries, each of them left out in turn."""
        seen = np.flatnonzero(given.weights > 0)
        away = [given.values[one] - self.conditional(given, one, True, shrinkage)[0] for one in seen]
        return np.asarray(given.weights, float)[seen] @ np.square(away)

    def learn(self, given):
        mean, variance, own = self.fitted(given)
        weights, values = np.asarray(given.weights, float), np.asarray(given.values, float)
        centre, early = self.centre(given), self.weight < LEAST_WEIGHT
        full = weights * values + (1 - weights) * mean
        if not early:
            losses = np.array([self.loss(given, float(one)) for one in SHRINKAGES])
            self.losses = SHRINKAGE_MEMORY * self.losses + losses / losses.min()
        if early:
            full[weights == 0] = centre[weights == 0]
        counted = max(self.mu * self.weight / (1 + self.mu * self.weight), 1e-3) if self.about == MEAN else 1.0
        deviation = full - centre
        self.scatter = self.mu * self.scatter + counted * np.outer(deviation, deviation)
        added = 0 if early else (1 - weights) * (variance + own)
        self.squares = self.mu * self.squares + counted * deviation**2 + added
        self.mean = (self.mu * self.weight * self.mean + full) / (self.mu * self.weight + 1)
        self.weight = self.mu * self.weight + 1


def learned(about, stream):
    one = covariance(about)
    state, dense = one.init(ENTRIES), Dense(about, float(one.forgetting), ENTRIES)
    for given in stream[:-1]:
        state, _ = learn(one, state, given)
        dense.learn(given)
    return one, state, dense


@pytest.fixture(scope="module")
def both():
    """Every kind after the stream but its last slice, ours and dense, and that last slice."""
    stream = made_stream()
    return {about: (*learned(about, stream), stream[-1]) for about in (ZERO, MEAN, LEVEL)}


@ABOUT
def test_learning_is_that_of_the_dense_matrix(both, about):
    _, state, dense, _ = both[about]
    loadings = np.asarray(state.loadings, float)
    size = np.abs(dense.scatter).max()
    np.testing.assert_allclose(loadings @ loadings.T, dense.scatter, atol=1e-4 * size)
    np.testing.assert_allclose(state.squares, dense.squares, rtol=1e-3)
    np.testing.assert_allclose(state.mean, dense.mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(state.weight, dense.weight, rtol=1e-5)
    np.testing.assert_allclose(state.losses, dense.losses, rtol=1e-2)


def test_entries_that_have_nothing_in_common_are_shrunk_most():
    draw = np.random.default_rng(0)
    noise, common = draw.normal(size=(2, 60, ENTRIES))
    common = common[:, :1] + 0.1 * noise
    one, everything = covariance(MEAN), np.ones(ENTRIES, np.float32)
    chosen = []
    for values in (noise, common):
        state = one.init(ENTRIES)
        for slice_values in values.astype(np.float32):
            state, _ = learn(one, state, Given(slice_values, everything, 0 * everything))
        chosen.append(int(np.argmin(state.losses)))
    assert chosen[0] == len(SHRINKAGES) - 1 > chosen[1]


@ABOUT
def test_observed_entries_are_predicted_as_if_left_out(both, about):
    one, state, dense, given = both[about]
    made = predict(one, state, given)
    expected = np.array([dense.conditional(given, entry, True) for entry in range(ENTRIES)])
    assert (given.weights > 0).any()
    assert (given.weights == 0).any()
    np.testing.assert_allclose(made.mean, expected[:, 0], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(made.variance, expected[:, 1], rtol=5e-3, atol=1e-4)
    np.testing.assert_allclose(made.noise, expected[:, 2], rtol=2e-3)


@ABOUT
def test_the_answer_is_the_conditional_mean(both, about):
    one, state, dense, given = both[about]
    _, mean = learn(one, state, given)
    np.testing.assert_allclose(mean, dense.fitted(given)[0], rtol=2e-3, atol=2e-3)


def test_a_value_does_not_change_its_own_prediction(both):
    one, state, _, given = both[MEAN]
    entry = int(np.flatnonzero(given.weights > 0)[0])
    other = Given(np.where(np.arange(ENTRIES) == entry, given.values + 3, given.values), given.weights, given.level)
    before, after = (np.asarray(predict(one, state, slice_).mean) for slice_ in (given, other))
    assert after[entry] == pytest.approx(before[entry], abs=2e-3)
    assert np.abs(np.delete(after - before, entry)).max() > 0.05


def test_moments_about_the_mean_are_the_weighted_covariance():
    """Without gaps: weights μ^age, mean and scatter as numpy has them."""
    stream = made_stream(missing=0.0)
    stream = [Given(given.values, np.ones(ENTRIES, np.float32), given.level) for given in stream]
    values = np.array([given.values for given in stream], float)
    one, state = covariance(MEAN), covariance(MEAN).init(ENTRIES)
    for given in stream:
        state, _ = learn(one, state, given)
    ages = float(one.forgetting) ** np.arange(SLICES)[::-1]
    np.testing.assert_allclose(state.mean, np.average(values, axis=0, weights=ages), rtol=1e-4)
    exact = np.cov(values.T, aweights=ages, ddof=0)
    loadings = np.asarray(state.loadings, float)
    # The first slice, about nothing, leaves a thousandth of its square.
    left = 1e-3 * ages[0] * np.outer(values[0], values[0]) / ages.sum()
    np.testing.assert_allclose(loadings @ loadings.T / ages.sum(), exact + left, atol=1e-4 * np.abs(exact).max())


@pytest.mark.slow
def test_compression_keeps_the_leading_directions():
    """Of entries in units of their own: no matrix of that rank is nearer (Eckart and Young)."""
    rng = np.random.default_rng(4)
    wide = rng.normal(size=(12, 5)) * np.array([5, 3, 2, 1, 0.2]) * rng.uniform(0.5, 2, (12, 1))
    squares = (wide**2).sum(1) + 1
    kept = np.asarray(module._compressed(jnp.asarray(wide, jnp.float32), jnp.asarray(squares, jnp.float32)))
    unit = 1 / np.sqrt(squares)[:, None]
    left, sizes, _ = np.linalg.svd(unit * wide)
    best = (left[:, :4] * sizes[:4] ** 2) @ left[:, :4].T
    np.testing.assert_allclose((unit * kept) @ (unit * kept).T, best, atol=1e-5 * sizes[0] ** 2)


@ABOUT
def test_order_and_unit_of_entries_do_not_matter(both, about):
    one, state, _, given = both[about]
    order = np.random.default_rng(1).permutation(ENTRIES)
    moved = CovarianceState(state.loadings[order], state.squares[order], state.mean[order], state.weight, state.losses)
    there = Given(*(part[order] for part in (given.values, given.weights, given.level)))
    made, expected = predict(one, moved, there), predict(one, state, given)
    np.testing.assert_allclose(made.mean, expected.mean[order], rtol=1e-3, atol=1e-3)
    scaled = CovarianceState(state.loadings * 8, state.squares * 64, state.mean * 8, state.weight, state.losses)
    made = predict(one, scaled, Given(given.values * 8, given.weights, given.level * 8))
    np.testing.assert_allclose(made.mean, expected.mean * 8, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(made.variance, expected.variance * 64, rtol=1e-4)


@ABOUT
def test_before_enough_slices_the_level_speaks(about):
    one, given = covariance(about), made_stream()[0]
    made = predict(one, one.init(ENTRIES), given)
    unobserved = given.weights == 0
    np.testing.assert_array_equal(np.asarray(made.mean)[unobserved], given.level[unobserved])
    np.testing.assert_allclose(made.mean, given.level, rtol=1e-6)


@pytest.mark.slow
def test_several_are_each_what_they_are_alone(both):
    members = Covariances(about_zero=(20, ZERO), about_mean=(20, MEAN), about_level=(20, LEVEL))
    states = [both[about][1] for about in (ZERO, MEAN, LEVEL)]
    given = both[ZERO][3]
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    made, (after, means) = jax.jit(members.predict)(stacked, given), jax.jit(members.learn)(stacked, given)
    for number, about in enumerate((ZERO, MEAN, LEVEL)):
        one, state = both[about][:2]
        np.testing.assert_allclose(made.mean[number], predict(one, state, given).mean, rtol=1e-3, atol=1e-3)
        alone, mean = learn(one, state, given)
        np.testing.assert_allclose(means[number], mean, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(after.squares[number], alone.squares, rtol=1e-4)
    assert members.names == ("about_zero", "about_mean", "about_level")
    assert members.init(4).loadings.shape == (3, 4, 4)


def test_noiseless_and_constant_data_stay_finite():
    one = covariance(MEAN)
    for values in (np.zeros(ENTRIES), np.ones(ENTRIES), np.arange(ENTRIES) * 1e-8):
        state = one.init(ENTRIES)
        given = Given(*(np.asarray(part, np.float32) for part in (values, np.ones(ENTRIES), np.zeros(ENTRIES))))
        for _ in range(6):
            made = predict(one, state, given)
            state, mean = learn(one, state, given)
            assert np.isfinite([made.mean, made.variance, made.noise, mean]).all()
