"""Robust initialisation of a slice: what is noise and what is an outlier."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model import elbo
from undertow.model.factors.predict import low_rank
from undertow.model.noise import contaminated, mixture, robust_start, updates

pytestmark = pytest.mark.usefixtures("double")
fit_row = jax.jit(robust_start.fit_row)


def one_slice(robust=True, seed=0):
    """Converged factors, an outlier model that has hardly seen an outlier yet, and a slice of 240 entries that fits."""
    settings, core = dense.random_core((20, 12), 2, 1, "default", seed=seed)
    settings = replace(settings, robust=robust)
    tight = tuple(covariance * 1e-6 for covariance in core.factors.covariances)
    factors = replace(core.factors, covariances=tight)
    state = contaminated.init(settings, (20, 12), jnp.dtype("float64"))
    state = replace(state, rate_b=state.rate_b + 4000, noise_rate=state.noise_shape * 1e-4)
    truth = np.asarray(low_rank(factors))
    noise = 0.01 * np.random.default_rng(seed).normal(size=truth.shape)
    window = replace(core.window, values=jnp.asarray(truth + noise), mask=jnp.ones(truth.shape, bool))
    return settings, replace(state, probability=jnp.zeros(truth.shape), slice_scale=jnp.ones(1)), factors, window


def off(window, *entries, by):
    return replace(window, values=window.values.at[tuple(np.transpose([(0, *entry) for entry in entries]))].add(by))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by", [0.2, 1.0, 50.0])
def test_a_few_enormous_entries_are_outliers_and_not_the_noise_of_their_slice(seed, by):
    _, state, factors, window = one_slice(seed=seed)
    bad = [(3, 4), (3, 5), (17, 0)]
    fit = fit_row(state, factors, off(window, *bad, by=by), 0.0)
    flagged = np.zeros((20, 12), bool)
    flagged[tuple(np.transpose(bad))] = True
    np.testing.assert_array_equal(fit.probability[0] > 0.5, flagged)
    assert 0.5 < fit.scale[0] < 1.5
    np.testing.assert_allclose(low_rank(fit.row)[0], window.values[0], atol=0.05)


@pytest.mark.slow
def test_outliers_larger_than_any_before_widen_what_counts_as_one():
    _, state, factors, window = one_slice()
    fit = fit_row(state, factors, off(window, (3, 4), by=2.0), 0.0)
    assert fit.ratio > 100 * state.ratio
    assert fit_row(state, factors, window, 0.0).ratio == state.ratio


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_slice_that_is_noisy_all_over_is_noisy(seed):
    _, state, factors, window = one_slice(seed=seed)
    noise = 0.05 * np.random.default_rng(seed + 9).normal(size=window.values.shape)
    fit = fit_row(state, factors, replace(window, values=window.values + noise), 0.0)
    assert 20 < fit.scale[0] < 32
    assert fit.probability.max() < 0.5


@pytest.mark.slow
def test_many_large_residuals_are_noise():
    _, state, factors, window = one_slice()
    third = [(i, j) for i in range(20) for j in range(0, 12, 3)]
    few = fit_row(state, factors, off(window, *third[:20], by=0.2), 0.0)
    many = fit_row(state, factors, off(window, *third, by=0.2), 0.0)
    assert (few.probability > 0.5).sum() == 20
    assert many.probability.max() < 0.5
    assert many.scale[0] > 9


@pytest.mark.slow
def test_nothing_is_an_outlier_where_the_model_is_not_to_be_robust():
    _, state, factors, window = one_slice(robust=False)
    fit = fit_row(state, factors, off(window, (3, 4), by=2.0), 0.0)
    assert fit.probability.max() < 1e-9
    assert fit.ratio == state.ratio
    assert fit.scale[0] > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_worth_of_a_slice_is_its_part_of_the_bound(seed):
    settings, state, _, window = one_slice(seed=seed)
    draw = np.random.default_rng(seed)
    window = replace(window, mask=jnp.asarray(draw.random(window.values.shape) < 0.7))
    residual, nothing = 0.03 * draw.standard_t(2, window.values.shape), jnp.zeros(window.values.shape)

    def both(scale, ratio):
        one = replace(state, slice_scale=jnp.asarray([scale]), ratio=jnp.asarray(ratio))
        one, _ = updates.update_probability(one, window, residual**2)
        bound = elbo.contaminated(settings, one, window, jnp.ones(1), residual, nothing)
        return float(bound), float(mixture.slice_worth(one, window.mask, residual**2))

    first = both(1.0, 30.0)
    for scale, ratio in ((3.0, 30.0), (0.4, 30.0), (1.0, 500.0), (20.0, 90.0)):
        bound, worth = both(scale, ratio)
        np.testing.assert_allclose(worth - first[1], bound - first[0], rtol=1e-7)
