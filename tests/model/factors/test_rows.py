"""Rows of the factors, reconstruction and variance against the naive dense version."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.factors import predict
from undertow.model.factors.rows import plan, solve_rows, sweep, update_axes
from undertow.model.linalg.symmetric import multiplicity, outer, pack, unpack

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.slow
@dense.WITH_VECTORS
def test_each_axis_is_updated_as_the_definition_says(shape, size, length):
    _, core = dense.random_core(shape, size, length, "default", seed=1, filled=max(length - 1, 1))
    rng = np.random.default_rng(0)
    weights = np.asarray(core.window.mask) * rng.uniform(0.5, 2, core.window.mask.shape)
    targets = np.asarray(core.window.values)
    time_weights = np.where(
        np.asarray(core.window.mask).reshape(length, -1).any(axis=1), rng.uniform(0.3, 1, length), 0
    )
    for axis in range(len(shape) + 1):
        expected = dense.updated_rows(core.factors, weights, targets, time_weights if axis == 0 else np.ones(99), axis)
        for over in {(axis + 1) % (len(shape) + 1), (axis - 1) % (len(shape) + 1)}:
            updated, failed = jax.jit(update_axes, static_argnums=(4, 5))(
                core.factors,
                jnp.asarray(weights),
                jnp.asarray(targets),
                jnp.asarray(time_weights),
                (axis,),
                over,
            )
            np.testing.assert_allclose(dense.means_of(updated)[axis], expected[0], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(dense.covariances_of(updated)[axis], expected[1], rtol=1e-10, atol=1e-12)
            assert failed == 0


@pytest.mark.slow
@dense.CASES
def test_a_sweep_updates_the_biggest_mode_then_the_others_then_time(shape, size, length):
    _, core = dense.random_core(shape, size, length, "default", seed=2)
    weights, targets = core.window.mask * 1.5, core.window.values
    time_weights = jnp.ones(length)
    swept, _ = jax.jit(sweep)(core.factors, weights, targets, time_weights)
    biggest, _ = plan(weights.shape)
    order = [biggest, *(axis for axis in range(1, len(shape) + 1) if axis != biggest), 0]
    expected = core.factors
    for axis in order:
        over = next(other for other in range(len(shape) + 1) if other != axis)
        expected, _ = jax.jit(update_axes, static_argnums=(4, 5))(
            expected, weights, targets, time_weights, (axis,), over
        )
    for one, other in zip(dense.means_of(swept), dense.means_of(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@dense.CASES
def test_mean_and_variance_of_the_low_rank(shape, size, length):
    _, core = dense.random_core(shape, size, length, "default", seed=3)
    mean, variance = jax.jit(lambda factors: (predict.low_rank(factors), predict.variance(factors)))(core.factors)
    np.testing.assert_allclose(mean, dense.low_rank(core.factors), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(variance, dense.variance(core.factors), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_variance_does_not_cancel_in_single_precision():
    """At a signal-to-noise ratio of 1000, E[x²] − x̄² would lose all digits; the telescoped sum must not."""
    _, core = dense.random_core((4, 3), 3, 3, "default", seed=4)
    factors = core.factors
    factors = replace(
        factors,
        covariances=tuple(covariance * 1e-8 for covariance in factors.covariances),
        row_covariances=factors.row_covariances * 1e-8,
    )
    exact = np.asarray(jax.jit(predict.variance)(factors))
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == jnp.float64 else leaf, factors)
    np.testing.assert_allclose(jax.jit(predict.variance)(single), exact, rtol=1e-4)


def test_a_row_that_cannot_be_solved_is_reported():
    gram = jnp.full((2, 3), jnp.nan)
    mean, _, solved = solve_rows(gram, jnp.ones((2, 2)), jnp.ones(2), jnp.ones(2, bool), jnp.ones(2))
    assert not solved.any()
    assert mean.shape == (2, 2)


@pytest.mark.slow
def test_packing_keeps_symmetric_matrices():
    root = np.random.default_rng(0).normal(size=(5, 4, 4))
    matrices = jnp.asarray(root + root.transpose(0, 2, 1))
    np.testing.assert_array_equal(unpack(pack(matrices)), matrices)
    vectors = jnp.asarray(root[:, 0])
    np.testing.assert_allclose(unpack(outer(vectors)), vectors[:, :, None] * vectors[:, None, :])
    np.testing.assert_allclose((pack(matrices) * multiplicity(4)).sum(-1), matrices.sum((-1, -2)), rtol=1e-12)
