"""Resetting and shrinking the noise."""

from dataclasses import replace
from functools import partial

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model import elbo
from undertow.model.flow import choose
from undertow.model.noise import contaminated, mixture, tempering, updates

pytestmark = pytest.mark.usefixtures("double")


def shrunk(settings, state, window, residual, variance):
    """As a step ends."""
    due = tempering.too_wide(settings, state, window, residual, variance)
    return choose(due, tempering.shrink_noise(settings, state, window, residual, variance), state)


def test_a_row_that_was_shut_out_is_reconsidered():
    """A row whose entries are all flagged teaches its factor nothing; a reset must give it its weight back."""
    settings, core = dense.random_core((6, 5), 2, 4, "default", seed=3, observed=1.0)
    omega = core.window.slice_weights(settings.forgetting)
    calm = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    assert not tempering.shut_out(calm, core.window, omega)
    stuck = replace(calm, probability=calm.probability.at[:, 2].set(1.0), noise_rate=calm.noise_rate * 1e-3)
    assert tempering.shut_out(stuck, core.window, omega)
    wide = jax.jit(tempering.reset_noise)(settings, stuck, core.factors, core.window, omega, core.level)
    assert not tempering.shut_out(wide, core.window, omega)
    assert (mixture.precision(wide) < mixture.precision(stuck)).all()


def elbo_of(settings, state, window, omega, residual, variance):
    return float(jax.jit(elbo.contaminated)(settings, state, window, omega, residual, variance))


def test_shrinking_never_lowers_the_elbo():
    shape, size, length = dense.PALETTE[1]
    settings, _ = dense.random_core(shape, size, length, "default", seed=0)
    shrink, gains = jax.jit(partial(shrunk, settings)), []
    for seed in range(12):
        _, core = dense.random_core(shape, size, length, "default", seed=seed, filled=max(length - 1, 1))
        square = np.random.default_rng(seed).uniform(0, 4, core.window.values.shape)
        omega = dense.slice_weights(settings, core.window)
        # From noise far too wide, where shrinking is tried, to noise too small, where it is not.
        factor = 10.0 ** (3 - seed // 2)
        wide = replace(core.outliers, pool_rate=core.outliers.pool_rate * factor)
        wide = replace(wide, noise_rate=wide.noise_rate * factor)
        residual, variance = np.sqrt(square / 2), square / 2
        wide = updates.update_probability(wide, core.window, square)
        small = shrink(wide, core.window, residual, variance)
        before, after = (elbo_of(settings, one, core.window, omega, residual, variance) for one in (wide, small))
        assert after >= before - 1e-9 * abs(before)
        gains.append(after - before)
    assert max(gains) > 1
    assert min(gains) == 0


def many_outliers(**changes):
    """A fifth of all entries 12 noise deviations away, and the noise that explains all of them, after many updates."""
    settings, core = dense.random_core((12, 10), 2, 6, "default", seed=2, observed=1.0, **changes)
    rng = np.random.default_rng(2)
    outlying = rng.random((6, 12, 10)) < 0.2
    residual = jnp.asarray(rng.normal(size=outlying.shape) + 12 * outlying * rng.choice([-1, 1], outlying.shape))
    omega, nothing = core.window.slice_weights(settings.forgetting), jnp.zeros_like(residual)
    state = contaminated.init(settings, (12, 10), jnp.dtype("float64"))
    state = replace(state, pool_rate=state.pool_rate * 15, noise_rate=state.noise_rate * 15)
    update = jax.jit(contaminated.update)
    for _ in range(60):
        state = update(settings, state, core.window, omega, residual, nothing)
    return settings, core.window, omega, residual, nothing, state, outlying


def test_shrinking_finds_many_outliers_where_updates_do_not():
    settings, window, omega, residual, nothing, stuck, outlying = many_outliers()
    assert (np.asarray(stuck.probability)[outlying] > 0.5).mean() < 0.1
    found = jax.jit(shrunk)(settings, stuck, window, residual, nothing)
    update = jax.jit(contaminated.update)
    for _ in range(10):
        found = update(settings, found, window, omega, residual, nothing)
    flagged = np.asarray(found.probability) > 0.5
    assert flagged[outlying].mean() > 0.95
    assert flagged[~outlying].mean() < 0.02
    np.testing.assert_allclose(contaminated.typical_noise(found), 1.0, rtol=0.3)


def test_no_shrinking_where_nothing_can_be_an_outlier():
    settings, window, _, residual, nothing, stuck, _ = many_outliers(robust=False)
    assert float(stuck.probability.max()) < 1e-9
    small = jax.jit(shrunk)(settings, stuck, window, residual, nothing)
    np.testing.assert_array_equal(small.noise_rate, stuck.noise_rate)
    np.testing.assert_array_equal(small.probability, stuck.probability)
