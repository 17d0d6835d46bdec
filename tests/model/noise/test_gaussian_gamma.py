"""The paper's outlier model: each coordinate step against its definition."""

import dense
import numpy as np
import pytest

from undertow.model import elbo
from undertow.model.factors.rows import temporal_weights
from undertow.model.noise import gaussian_gamma

pytestmark = pytest.mark.usefixtures("double")


def setting(shape, size, length, **changes):
    settings, core = dense.random_core(shape, size, length, "paper", seed=6, filled=max(length - 1, 1), **changes)
    rng = np.random.default_rng(6)
    residual, variance = rng.normal(size=core.window.values.shape), rng.uniform(0, 1, core.window.values.shape)
    omega = dense.slice_weights(settings, core.window)
    return (
        settings,
        core,
        residual,
        variance,
        omega,
        {name: np.asarray(value) for name, value in vars(core.outliers).items()},
    )


@dense.CASES
def test_weights_and_targets(shape, size, length):
    settings, core, _, _, omega, s = setting(shape, size, length)
    weights, targets = gaussian_gamma.weights_and_targets(core.outliers, core.window, omega)
    for index in dense.entries(weights):
        expected = omega[index[0]] * 1.5 if core.window.mask[index] else 0
        np.testing.assert_allclose(weights[index], expected, rtol=1e-12)
    np.testing.assert_allclose(targets, np.asarray(core.window.values) - s["sparse"], rtol=1e-12)
    np.testing.assert_array_equal(temporal_weights(settings, omega), omega > 0)


@pytest.mark.slow
@dense.CASES
def test_sparse_term_and_its_precisions(shape, size, length):
    _, core, residual, _, _, s = setting(shape, size, length)
    newest = int(core.window.newest)
    new = gaussian_gamma.update_sparse(core.outliers, core.window, residual)
    for i in dense.entries(s["gamma_rate"]):
        variance = 1 / (0.6 / s["gamma_rate"][i] + 1.5)
        expected = variance * 1.5 * residual[(newest, *i)] if core.window.mask[(newest, *i)] else 0
        np.testing.assert_allclose(new.sparse[(newest, *i)], expected, rtol=1e-10)
        np.testing.assert_allclose(new.sparse_variance[i], variance, rtol=1e-10)
    past = np.arange(length) != newest
    np.testing.assert_array_equal(np.asarray(new.sparse)[past], s["sparse"][past])
    newer = gaussian_gamma.update_gamma(new, core.window)
    expected = 1e-6 + (np.asarray(new.sparse)[newest] ** 2 + np.asarray(new.sparse_variance)) / 2
    np.testing.assert_allclose(newer.gamma_rate, expected, rtol=1e-10)
    np.testing.assert_allclose(newer.gamma_shape, 0.500001, rtol=1e-12)


@dense.CASES
@pytest.mark.parametrize("tau", ["window", "slice"])
def test_noise(shape, size, length, tau):
    settings, core, residual, variance, omega, s = setting(shape, size, length, tau=tau)
    newest = int(core.window.newest)
    count = total = 0.0
    for index in dense.entries(residual):
        t = index[0]
        if not core.window.mask[index] or omega[t] == 0 or (tau == "slice" and t != newest):
            continue
        own = s["sparse_variance"][index[1:]] if t == newest else 0
        count += 1
        total += omega[t] * ((residual[index] - s["sparse"][index]) ** 2 + variance[index] + own)
    new = gaussian_gamma.update_noise(settings, core.outliers, core.window, omega, residual, variance)
    np.testing.assert_allclose(new.noise_shape, 1e-6 + count / 2, rtol=1e-10)
    np.testing.assert_allclose(new.noise_rate, 1e-6 + total / 2, rtol=1e-10)


@pytest.mark.slow
@dense.CASES
def test_elbo(shape, size, length):
    settings, core, residual, variance, omega, _ = setting(shape, size, length)
    got = elbo.gaussian_gamma(settings, core.outliers, core.window, omega, residual, variance)
    expected = dense.gaussian_gamma_elbo(settings, core.outliers, core.window, residual, variance)
    np.testing.assert_allclose(got, expected, rtol=1e-10)
