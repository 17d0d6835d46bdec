"""Resetting the noise."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import pytest

from undertow.model.noise import mixture, tempering

pytestmark = pytest.mark.usefixtures("double")


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
