"""Resetting and shrinking the noise."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model import elbo
from undertow.model.defaults import SHRINK_SWEEPS
from undertow.model.noise import contaminated, mixture, tempering

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.slow
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


@pytest.mark.slow
def test_shrinking_finds_many_outliers_where_updates_do_not():
    settings, window, omega, residual, nothing, stuck, outlying = many_outliers()
    assert (np.asarray(stuck.probability)[outlying] > 0.5).mean() < 0.1
    assert tempering.too_wide(settings, stuck, window, residual, nothing)
    factor = tempering.median_noise(stuck, window, residual, nothing)
    found = tempering.scaled_noise(stuck, factor)
    np.testing.assert_allclose(contaminated.typical_noise(found), factor * contaminated.typical_noise(stuck))
    update, bound = jax.jit(contaminated.update), jax.jit(elbo.contaminated)
    for _ in range(SHRINK_SWEEPS):
        found = update(settings, found, window, omega, residual, nothing)
    before, after = (float(bound(settings, one, window, omega, residual, nothing)) for one in (stuck, found))
    assert after > before
    flagged = np.asarray(found.probability) > 0.5
    assert flagged[outlying].mean() > 0.95
    assert flagged[~outlying].mean() < 0.02
    assert not tempering.too_wide(settings, found, window, residual, nothing)


@pytest.mark.slow
def test_no_shrinking_where_nothing_can_be_an_outlier():
    settings, window, _, residual, nothing, stuck, _ = many_outliers(robust=False)
    assert float(stuck.probability.max()) < 1e-9
    assert not tempering.too_wide(settings, stuck, window, residual, nothing)
