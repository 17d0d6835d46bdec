"""Coordinate updates of the default outlier model against their definitions."""

import dense
import numpy as np
import pytest
from bounds import slice_sums
from scipy.special import digamma, expit

from undertow.model import elbo, types
from undertow.model.noise import updates

pytestmark = pytest.mark.usefixtures("double")


def setting(shape, size, length, seed=5):
    settings, core = dense.random_core(shape, size, length, "default", seed=seed, filled=max(length - 1, 1))
    square = np.random.default_rng(seed).uniform(0, 4, core.window.values.shape)
    weights = dense.slice_weights(settings, core.window)
    np.testing.assert_allclose(core.window.slice_weights(settings.forgetting), weights, rtol=1e-14)
    return settings, core, square, weights, {name: np.asarray(value) for name, value in vars(core.outliers).items()}


@pytest.mark.slow
@dense.CASES
def test_probabilities_rate_ratio_and_scales(shape, size, length):
    settings, core, square, omega, s = setting(shape, size, length)
    mask = np.asarray(core.window.mask)
    tau = s["noise_shape"] / s["noise_rate"]
    new, sums = updates.update_probability(core.outliers, core.window, square)
    for index in dense.entries(square):
        phi = s["slice_scale"][index[0]]
        clean = digamma(s["rate_b"]) - 0.5 * np.log(phi) - 0.5 * tau[index[1:]] * square[index] / phi
        outlying = digamma(s["rate_a"]) - 0.5 * np.log(s["ratio"]) - 0.5 * tau[index[1:]] * square[index] / s["ratio"]
        expected = expit(outlying - clean) if mask[index] else 0
        np.testing.assert_allclose(new.probability[index], expected, rtol=1e-10)

    rho = s["probability"]
    per_entry = omega.reshape(-1, *[1] * len(shape))
    for found, expected in zip(sums, slice_sums(new, core.window, square), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    sums = slice_sums(core.outliers, core.window, square)
    new = updates.update_rate(settings, core.outliers, omega, sums)
    np.testing.assert_allclose(new.rate_a, 0.02 * 50 + (per_entry * rho).sum(), rtol=1e-10)
    np.testing.assert_allclose(new.rate_b, 0.98 * 50 + (per_entry * mask * (1 - rho)).sum(), rtol=1e-10)

    larger = slice_sums(core.outliers, core.window, square * 100)
    new = updates.update_ratio(settings, core.outliers, omega, larger)
    expected = (per_entry * rho * tau * square * 100).sum() / (per_entry * rho).sum()
    np.testing.assert_allclose(new.ratio, max(expected, 30, s["slice_scale"].max()), rtol=1e-10)

    new = updates.update_slice_scale(core.outliers, sums)
    for t in range(length):
        clean = mask[t] * (1 - rho[t])
        ratio = (30 + (clean * tau * square[t]).sum()) / (30 + clean.sum())
        np.testing.assert_allclose(new.slice_scale[t], min(ratio, s["ratio"]), rtol=1e-10)


@pytest.mark.slow
@dense.CASES
def test_noise_of_entries(shape, size, length):
    settings, core, square, omega, s = setting(shape, size, length)
    counts, sums = np.zeros(shape), np.zeros(shape)
    for index in dense.entries(square):
        if core.window.mask[index]:
            rho = s["probability"][index]
            counts[index[1:]] += omega[index[0]]
            robustness = (1 - rho) / s["slice_scale"][index[0]] + rho / s["ratio"]
            sums[index[1:]] += omega[index[0]] * robustness * square[index]
    new = updates.update_noise(settings, core.outliers, core.window, omega, square)
    np.testing.assert_allclose(new.noise_shape, s["pool_shape"] + counts / 2, rtol=1e-10)
    np.testing.assert_allclose(new.noise_rate, new.pool_rate + sums / 2, rtol=1e-10)


@pytest.mark.slow
@dense.CASES
def test_elbo(shape, size, length):
    settings, core, square, omega, _ = setting(shape, size, length)
    residual = np.sqrt(square / 2)
    got = elbo.contaminated(settings, core.outliers, core.window, omega, residual, square / 2)
    np.testing.assert_allclose(got, dense.contaminated_elbo(settings, core.outliers, core.window, square), rtol=1e-10)


@pytest.mark.slow
@dense.CASES
def test_large_windows_are_added_up_slice_by_slice(shape, size, length, monkeypatch):
    _, core, square, omega, _ = setting(shape, size, length)
    expected = updates.noise_statistics(core.outliers, core.window, omega, square)
    monkeypatch.setattr(types, "SMALL_WINDOW", 0)
    found = updates.noise_statistics(core.outliers, core.window, omega, square)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
