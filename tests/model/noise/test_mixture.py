"""The formulas of contaminated normal noise that have no naive version in `dense.py`."""

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.model.defaults import SMALLEST_SCALE
from undertow.model.noise import mixture
from undertow.model.noise.mixture import median

sizes = st.one_of(st.floats(0, np.inf, width=32), st.just(np.nan), st.integers(0, 3).map(float))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(sizes, min_size=9, max_size=9), st.sampled_from(["float32", "float64"]))
def test_the_median_is_that_of_numpy(values, dtype):
    values = np.array(values, dtype)
    expected = np.nan if np.isnan(values).all() else np.nanmedian(values.astype("float64"))
    with jax.enable_x64(dtype == "float64"):
        ours = median(jnp.asarray(values))
    assert ours.dtype == dtype
    largest = np.finfo(dtype).max / 2  # beyond, the mean of the middle two does not fit
    if not expected > largest:
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-37)  # means too small for their type are 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_the_median_of_a_fleet(count):
    values = np.random.default_rng(0).normal(size=(3, count)).astype("float32") ** 2
    values[1, : count // 2] = np.nan
    np.testing.assert_allclose(jax.vmap(median)(values), np.nanmedian(values, axis=1), rtol=1e-6)


@pytest.mark.usefixtures("double")
def test_the_first_scale_of_a_slice_is_by_its_median():
    _, core = dense.random_core((40, 50), 1, 1, "default", seed=4)
    rng = np.random.default_rng(4)
    state = core.outliers
    noise = np.sqrt(np.asarray(mixture.noise_now(state)))
    mask = rng.random((1, 40, 50)) < 0.8
    square = (noise * rng.normal(size=mask.shape)) ** 2
    for scale in (0.25, 1.0, 9.0):
        np.testing.assert_allclose(mixture.median_scale(state, mask, scale * square), [scale], rtol=0.15)
    few = np.where(rng.random(mask.shape) < 0.1, 1e6, square)
    np.testing.assert_allclose(mixture.median_scale(state, mask, few), [1.0], rtol=0.4)
    hidden = np.where(mask, square, 1e6)
    np.testing.assert_array_equal(mixture.median_scale(state, mask, hidden), mixture.median_scale(state, mask, square))


@pytest.mark.usefixtures("double")
def test_the_first_scale_has_limits_and_needs_no_data():
    _, core = dense.random_core((40, 50), 1, 1, "default", seed=4)
    state, mask = core.outliers, np.ones((1, 40, 50), bool)
    assert mixture.median_scale(state, ~mask, np.ones(mask.shape)) == 1
    assert mixture.median_scale(state, mask, np.zeros(mask.shape)) == SMALLEST_SCALE
    assert mixture.median_scale(state, mask, np.full(mask.shape, 1e9)) > state.ratio
