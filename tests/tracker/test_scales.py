"""The scales: x as a function of z, its inverse and its derivative."""

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
def test_slope_is_the_derivative(scale, double):
    z = np.concatenate([np.linspace(-6, -0.1, 20), np.linspace(0.1, 6, 20)])
    step = 1e-6
    numerical = (scales.plain(jnp.asarray(z + step), scale) - scales.plain(jnp.asarray(z - step), scale)) / (2 * step)
    np.testing.assert_allclose(scales.slope(jnp.asarray(z), scale), numerical, rtol=1e-6)


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("variance", [0.0, 0.04, 0.5])
def test_expected_is_the_mean_of_x_where_z_is_normal(scale, variance, double):
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    z = np.array([2.0, 4.0, 6.0])
    around = z[:, None] + np.sqrt(variance) * nodes
    mean = np.asarray(scales.plain(jnp.asarray(around), scale)) @ (weights / weights.sum())
    # z |z| is z² only where z is not near 0: what lies beyond it is 0.3 % at z = 2 and a variance of 0.5.
    np.testing.assert_allclose(scales.expected(jnp.asarray(z), variance, scale), mean, rtol=3e-3)


@pytest.mark.slow
def test_the_logarithm_is_linear_near_0_and_survives_everything():
    small = jnp.asarray([-1e-3, 0.0, 1e-3])
    np.testing.assert_allclose(scales.scaled(small, scales.LOG), 2 * small, rtol=1e-5)
    assert np.isfinite(scales.plain(jnp.asarray([-1e30, 1e30]), scales.LOG)).all()
    assert np.isfinite(scales.scaled(jnp.asarray([-1e12, 1e12]), scales.LOG)).all()
