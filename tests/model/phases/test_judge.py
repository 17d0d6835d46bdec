"""Pruning and adding components."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import states
from bounds import bound

from undertow.model.factors import predict
from undertow.model.noise import contaminated
from undertow.model.phases.judge import judge

pytestmark = pytest.mark.usefixtures("double")
judge_once = jax.jit(judge)


@pytest.mark.slow
def test_components_are_added_for_what_is_there_and_nothing_else():
    """Candidates are judged by the whole ELBO, after the outlier model has been updated for the new residuals."""
    settings, core, signal = states.planted((8, 7), 4)
    after = judge_once(settings, core.window, states.progress(core))
    assert bool(after.adapting)
    factors = after.factors
    grown = replace(core, factors=factors, outliers=after.outliers)
    assert bound(settings, grown) > bound(settings, core)
    assert np.linalg.norm(np.asarray(predict.low_rank(factors)) - signal) < 0.2 * np.linalg.norm(signal)
    noise = np.random.default_rng(0).normal(size=core.window.values.shape) * np.asarray(core.window.mask)
    window = replace(core.window, values=jnp.asarray(noise))
    converged = contaminated.init(settings, (8, 7), jnp.float64)
    update = jax.jit(contaminated.update)
    for _ in range(5):
        omega = window.slice_weights(settings.forgetting)
        converged = update(settings, converged, window, omega, window.values, jnp.zeros_like(window.values))
    after = judge_once(settings, window, states.progress(replace(core, window=window, outliers=converged)))
    assert not after.adapting
    assert not after.factors.active.any()


@pytest.mark.slow
def test_at_full_capacity_no_component_is_added():
    settings, core, _ = states.planted((8, 7), 4)
    full = replace(core.factors, active=jnp.ones(3, bool), means=tuple(mean + 1.0 for mean in core.factors.means))
    variance = tuple(covariance + 1e-3 * jnp.eye(3) for covariance in core.factors.covariances)
    full = replace(full, covariances=variance, row_covariances=core.factors.row_covariances + 1e-3 * jnp.eye(3))
    full = replace(full, row_means=core.factors.row_means + jnp.asarray([3.0, 2.0, 1.0]))
    after = judge_once(settings, core.window, states.progress(replace(core, factors=full)))
    assert int(after.factors.active.sum()) <= 3
