"""Precisions and pruning: definitions, and gains that equal the change of the whole ELBO."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds import bound

from undertow.model import elbo
from undertow.model.factors import predict, rank
from undertow.model.noise import contaminated

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.slow
@dense.CASES
def test_precisions(shape, size, length):
    settings, core = dense.random_core(shape, size, length, "default", seed=9)
    weights = np.random.default_rng(1).uniform(0.2, 1, length)
    known = [np.arange(rows) % 3 > 0 for rows in shape]  # in the others nothing was observed
    new = rank.update_precision(
        core.factors, jnp.asarray(weights), settings.precision_prior, tuple(map(jnp.asarray, known))
    )
    c0 = d0 = settings.precision_prior
    for r in range(size):
        rate = d0
        for axis, (mean, variance) in enumerate(
            zip(dense.means_of(core.factors), dense.covariances_of(core.factors), strict=True)
        ):
            weight = weights if axis == 0 else known[axis - 1]
            rate += 0.5 * sum(weight[i] * (mean[i, r] ** 2 + variance[i, r, r]) for i in range(mean.shape[0]))
        np.testing.assert_allclose(new.precision_rate[r], rate, rtol=1e-10)
        np.testing.assert_allclose(
            new.precision_shape[r], c0 + 0.5 * (sum(map(sum, known)) + weights.sum()), rtol=1e-10
        )


@pytest.mark.slow
@dense.CASES
def test_pruning_gains_what_it_says(shape, size, length):
    settings, core = dense.random_core(shape, size, length, "default", seed=10)
    shrunk = replace(core.factors, means=tuple(mean.at[:, 0].multiply(1e-9) for mean in core.factors.means))
    core = replace(core, factors=shrunk)

    @jax.jit
    def both_ways(core):
        omega = core.window.slice_weights(settings.forgetting)
        weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
        residual, variance = targets - predict.low_rank(core.factors), predict.variance(core.factors)
        smallest = jnp.argmin(jnp.where(core.factors.active, rank.sizes(core.factors), jnp.inf))
        smaller = replace(core, factors=rank.without(core.factors, smallest))
        prior = settings.precision_prior
        start = (core.factors, residual, variance, jnp.zeros(()))
        start, nothing = rank.prune_smallest(*start, weights, omega, prior, evaluate=True)
        (factors, *left, rows), pruned = rank.prune_smallest(*start, weights, omega, prior)
        found = factors, *left, pruned, rows - elbo.low_rank(factors, omega, prior), nothing
        expected = targets - predict.low_rank(factors), predict.variance(factors)
        return found, expected, bound(settings, smaller) - bound(settings, core)

    (after, residual, variance, pruned, difference, nothing), expected, change = both_ways(core)
    assert not nothing
    np.testing.assert_allclose(difference, 0, atol=1e-9)
    assert bool(pruned) == bool(change > 0)
    assert int(after.active.sum()) == int(core.factors.active.sum()) - int(pruned)
    np.testing.assert_allclose(residual, expected[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variance, expected[1], rtol=1e-9, atol=1e-12)
