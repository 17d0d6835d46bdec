"""The default outlier model: weights, noise that is reported, when the rank is checked."""

from dataclasses import replace

import dense
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.noise import contaminated

pytestmark = pytest.mark.usefixtures("double")


def setting(shape, size, length, seed=5):
    settings, core = dense.random_core(shape, size, length, "default", seed=seed, filled=max(length - 1, 1))
    square = np.random.default_rng(seed).uniform(0, 4, core.window.values.shape)
    weights = dense.slice_weights(settings, core.window)
    np.testing.assert_allclose(core.window.slice_weights(settings.forgetting), weights, rtol=1e-14)
    return settings, core, square, weights, {name: np.asarray(value) for name, value in vars(core.outliers).items()}


@pytest.mark.slow
@dense.CASES
def test_weights_are_the_robust_part_of_the_precision(shape, size, length):
    _, core, _, omega, s = setting(shape, size, length)
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    for index in dense.entries(weights):
        t, i, rho = index[0], index[1:], s["probability"][index]
        tau = s["noise_shape"][i] / s["noise_rate"][i]
        expected = (
            omega[t] * tau * ((1 - rho) / s["slice_scale"][t] + rho / s["ratio"]) if core.window.mask[index] else 0
        )
        np.testing.assert_allclose(weights[index], expected, rtol=1e-10)
    np.testing.assert_array_equal(targets, core.window.values)


@dense.CASES
def test_the_usual_noise_does_not_depend_on_how_noise_is_shared_between_slices_and_entries(shape, size, length):
    _, core, _, omega, _ = setting(shape, size, length)
    own, found = core.outliers, float(contaminated.usual_noise(core.outliers, omega))
    moved = replace(own, slice_scale=own.slice_scale * 7, ratio=own.ratio * 7, pool_rate=own.pool_rate / 7)
    np.testing.assert_allclose(contaminated.usual_noise(moved, omega), found, rtol=1e-12)

    def prior(factor):
        phi = np.asarray(own.slice_scale) * factor
        return -omega @ (np.log(phi) + 1 / phi)

    best = float(contaminated.typical_noise(own)) / found
    assert prior(best) > max(prior(best * 1.01), prior(best / 1.01))
    assert contaminated.usual_noise(own, omega * 0) == contaminated.typical_noise(own)


@pytest.mark.slow
def test_the_rank_is_checked_now_and_then_and_where_a_slice_does_not_fit():
    settings, core = dense.random_core((4, 3), 3, 3, "default", seed=5)
    often = []
    for slot in range(3):
        for misfit in (1.0, 9.0):
            window = replace(core.window, newest=jnp.asarray(slot))
            outliers = replace(core.outliers, slice_scale=jnp.full(3, 0.1).at[slot].set(0.1 * misfit))
            often.append(bool(contaminated.adapt_likely(settings, outliers, window)))
    assert often == [True, True, False, True, False, True]
