"""Symmetric matrices against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.linalg.symmetric import least_direction, log_determinant

found = jax.jit(least_direction)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 6.0], ids=["close", "apart"])
def test_the_direction_of_the_smallest_eigenvalue(spread):
    rng = np.random.default_rng(0)
    for _ in range(20):
        basis, _ = np.linalg.qr(rng.normal(size=(9, 9)))
        values = 10 ** rng.uniform(-spread, 0, 9)
        matrix = (basis * values) @ basis.T
        direction = np.asarray(found(matrix.astype(np.float32)), float)
        np.testing.assert_allclose(direction @ direction, 1, rtol=1e-5)
        least = values.min()
        assert direction @ matrix @ direction <= 1.005 * least + 2e-6 * values.sum()


@pytest.mark.slow
def test_of_empty_directions_any_is_the_least():
    matrix = np.diag([0, 3, 0, 1]).astype(np.float32)
    direction = np.asarray(found(matrix))
    assert abs(direction @ matrix @ direction) < 1e-5
    nothing = np.asarray(found(np.zeros((4, 4), np.float32)))
    np.testing.assert_allclose(nothing @ nothing, 1, rtol=1e-5)


@pytest.mark.slow
def test_logarithms_of_determinants():
    roots = np.random.default_rng(1).normal(size=(5, 20, 40))
    matrices = roots @ roots.swapaxes(1, 2)
    made = log_determinant(jnp.asarray(matrices, jnp.float32))
    np.testing.assert_allclose(made, np.linalg.slogdet(matrices)[1], rtol=1e-4)
