"""The formulas of contaminated normal noise that have no naive version in `dense.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.model.noise.mixture import median

sizes = st.one_of(st.floats(0, np.inf, width=32), st.just(np.nan), st.integers(0, 3).map(float))


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


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_the_median_of_a_fleet(count):
    values = np.random.default_rng(0).normal(size=(3, count)).astype("float32") ** 2
    values[1, : count // 2] = np.nan
    np.testing.assert_allclose(jax.vmap(median)(values), np.nanmedian(values, axis=1), rtol=1e-6)
