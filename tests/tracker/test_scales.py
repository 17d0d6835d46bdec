"""The scales: x as a function of z, its inverse, and its mean."""

import jax.numpy as jnp
import numpy as np
import pytest

from undertow.tracker import scales

ALL = pytest.mark.parametrize("scale", [scales.LINEAR, scales.ROOT, scales.LOG])
SIZES = np.geomspace(1e-6, 1e6, 40)
X = np.concatenate([-SIZES[::-1], [0.0], SIZES])


@pytest.mark.slow
@ALL
def test_plain_undoes_scaled(scale, double):
    there_and_back = scales.plain(scales.scaled(jnp.asarray(X), scale), scale)
    np.testing.assert_allclose(there_and_back, X, rtol=1e-9, atol=1e-12)


@ALL
def test_scales_grow_and_are_odd(scale, double):
    z = np.asarray(scales.scaled(jnp.asarray(X), scale))
    assert (np.diff(z) > 0).all()
    np.testing.assert_allclose(z, -z[::-1], rtol=1e-12)


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("variance", [0.0, 0.04, 0.5])
def test_expected_is_the_mean_of_x_where_z_is_normal(scale, variance, double):
    z = np.array([-3.0, -0.2, 0.0, 0.1, 0.5, 2.0, 6.0])
    nodes = np.linspace(-8, 8, 20_001)
    weights = np.exp(-(nodes**2) / 2)
    around = np.asarray(scales.plain(jnp.asarray(z[:, None] + np.sqrt(variance) * nodes), scale))
    mean = around @ (weights / weights.sum())
    found = scales.expected(jnp.asarray(z), variance, scale)
    np.testing.assert_allclose(found, mean, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_the_logarithm_is_linear_near_0_and_survives_everything():
    small = jnp.asarray([-1e-3, 0.0, 1e-3])
    np.testing.assert_allclose(scales.scaled(small, scales.LOG), 2 * small, rtol=1e-5)
    assert np.isfinite(scales.plain(jnp.asarray([-1e30, 1e30]), scales.LOG)).all()
    assert np.isfinite(scales.scaled(jnp.asarray([-1e12, 1e12]), scales.LOG)).all()
