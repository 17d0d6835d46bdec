"""Pruning redundant components."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import states

from undertow.model.control import redundant_due
from undertow.model.factors import predict
from undertow.model.phases.components import adapt
from undertow.model.phases.redundant import prune_redundant

pytestmark = pytest.mark.usefixtures("double")
adapt_once = jax.jit(adapt)
prune = jax.jit(prune_redundant)


def two_terms(columns):
    """A state with these components (lists of columns: time, then modes), on data with two terms of random columns."""
    rng = np.random.default_rng(5)
    truth = [rng.normal(size=(rows, 2)) for rows in (6, 9, 8)]
    settings, core = dense.random_core((9, 8), 4, 6, "default", seed=4, observed=0.9)
    signal = np.einsum("tr,ir,jr->tij", *truth)
    mask = np.asarray(core.window.mask)
    values = np.where(mask, signal + 0.05 * rng.normal(size=signal.shape), 0)
    time, *modes = (np.stack(axis, axis=1) for axis in zip(*columns(*truth), strict=True))
    active = jnp.arange(4) < time.shape[1]

    def padded(mean):
        return jnp.asarray(np.pad(mean, [(0, 0), (0, 4 - mean.shape[1])]))

    def certain(rows):
        return jnp.broadcast_to(jnp.diag(1e-4 * active), (rows, 4, 4))

    factors = replace(
        core.factors,
        means=tuple(padded(mode) for mode in modes),
        covariances=tuple(certain(mode.shape[0]) for mode in modes),
        row_means=padded(time),
        row_covariances=certain(6),
        active=active,
    )
    outliers = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    window = replace(core.window, values=jnp.asarray(values))
    core = replace(core, window=window, factors=factors, outliers=outliers)
    start = states.progress(core)
    residual = window.values - predict.low_rank(factors)
    return settings, core, replace(start, residual=residual, variance=predict.variance(factors)), signal


def collinear(time, left, right):
    """The same two terms by four: sums and differences in time, so that none of them can be pruned alone."""
    plus, minus = time.sum(axis=1), time[:, 0] - time[:, 1]
    return [(plus / 2, left[:, r], right[:, r]) for r in (0, 1)] + [
        (sign * minus / 2, left[:, r], right[:, r]) for r, sign in ((0, 1), (1, -1))
    ]


def test_collinear_components_are_pruned():
    settings, core, start, signal = two_terms(collinear)
    np.testing.assert_allclose(predict.low_rank(start.factors), signal, rtol=1e-9)
    assert bool(redundant_due(start))
    after = prune(settings, core.window, start)
    assert int(after.factors.active.sum()) < 4
    assert int(adapt_once(settings, core.window, after).factors.active.sum()) == 2  # what has shrunk is pruned
    found = predict.low_rank(after.factors)
    assert np.linalg.norm(found - signal) < 0.1 * np.linalg.norm(signal)
    np.testing.assert_allclose(after.residual, core.window.values - found, atol=1e-12)
    assert not bool(after.redundancy)


def test_components_that_are_needed_stay():
    settings, core, start, _ = two_terms(
        lambda time, left, right: [(time[:, r], left[:, r], right[:, r]) for r in (0, 1)]
    )
    assert not bool(redundant_due(start))
    after = prune(settings, core.window, start)  # asked all the same
    np.testing.assert_array_equal(after.factors.active, start.factors.active)
    np.testing.assert_array_equal(after.residual, start.residual)
