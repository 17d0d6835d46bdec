"""Nearly full windows: separable sums, less the missing entries, against the sweep over all entries."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.engine import capacity
from undertow.engine.capacity import missing_capacity
from undertow.lab.synthetic.streams import drifting
from undertow.model.defaults import NO_OUTLIERS
from undertow.model.factors import predict, separable
from undertow.model.factors import rows as dense_factors
from undertow.model.noise import contaminated
from undertow.model.types import over_slice

PLAIN = {"robust": False, "noise": "shared"}


def setting(shape, size, length, filled=None, observed=0.9):
    settings, core = dense.random_core(shape, size, length, "default", 5, filled=filled, observed=observed, **PLAIN)
    outliers = replace(
        core.outliers,
        probability=jnp.zeros_like(core.outliers.probability),
        rate_a=jnp.asarray(NO_OUTLIERS),
        noise_shape=jnp.full_like(core.outliers.noise_shape, core.outliers.pool_shape),
        noise_rate=jnp.full_like(core.outliers.noise_rate, core.outliers.pool_rate),
    )
    core = replace(core, outliers=outliers)
    if length > 2:  # a slice of which nothing was observed
        values, mask = core.window.values.at[1].set(0), core.window.mask.at[1].set(False)
        core = replace(core, window=replace(core.window, values=values, mask=mask))
    missing = separable.missing_entries(core.window, core.window.mask.size)
    return settings, core, missing, core.window.slice_weights(settings.forgetting)


@jax.jit
def both_sweeps(core, missing, omega):
    """Over all entries, and by separable sums."""
    weights, targets = contaminated.weights_and_targets(core.outliers, core.window, omega)
    expected, _ = dense_factors.sweep(core.factors, weights, targets, omega, 0.6)
    alike = separable.weights(core.outliers, core.window, omega)
    gaps = separable.Missing(*missing)
    return expected, separable.sweep(core.factors, core.window.values, alike, omega, gaps, 0.6)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("short", [0, 1])
@dense.WITH_VECTORS
def test_a_sweep_is_the_sweep_over_all_entries(shape, size, length, short):
    _, core, missing, omega = setting(shape, size, length, filled=max(length - short, 1))
    expected, (found, failed) = both_sweeps(core, (missing.indices, missing.real), omega)
    assert failed == 0
    for one, other in zip(dense.means_of(found), dense.means_of(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    for one, other in zip(dense.covariances_of(found), dense.covariances_of(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@dense.CASES
def test_sums_of_squares_and_the_noise(shape, size, length):
    settings, core, missing, omega = setting(shape, size, length)
    residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
    expected = over_slice(jnp.where(core.window.mask, residual**2 + variance, 0))
    found = separable.squares(core.factors, core.window, missing)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    one = contaminated.update(settings, core.outliers, core.window, omega, residual, variance)
    other = separable.update(settings, core.outliers, core.window, omega, found)
    for name in ("rate_a", "rate_b", "ratio", "slice_scale", "pool_rate", "noise_rate", "noise_shape"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, err_msg=name)


@pytest.mark.full
def test_a_stream_comes_out_the_same_with_and_without_separable_sums(monkeypatch):
    """The way changes when too much is missing, and back."""
    data = drifting((9, 8), 2, observed=1.0, outlier_fraction=0.0, slices=24, seed=3)
    values = data.values.copy()
    values[5, 2, 3] = values[9, 1, 1] = np.nan
    values[19, 4, 4] = 1e15  # too large to compute with: a hole that nobody announced
    values[14, :6] = np.nan
    settings = {"max_rank": 4, "window": 4, "dtype": "float64", **PLAIN}
    masked, quick = ut.RobustCP(**settings), ut.RobustCP(**settings)
    taken = []
    for x in values:
        monkeypatch.setattr(capacity, "LARGE_WINDOW", 10**9)
        expected = masked.update(x)
        monkeypatch.setattr(capacity, "LARGE_WINDOW", 0)
        monkeypatch.setattr(capacity, "REVIEW_INTERVAL", 10**9)  # the capacity stays as it is
        found = quick.update(x)
        taken.append(missing_capacity(quick.state))
        np.testing.assert_allclose(found.low_rank, expected.low_rank, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(found.std, expected.std, rtol=1e-6)
        assert found.iterations == expected.iterations
        assert found.rank == expected.rank
    assert taken[3] == 0
    assert taken[10] == 4 * 72 // 50
    assert taken[14] is None
    assert taken[19] == 4 * 72 // 50
    assert taken[-1] == 0


def test_only_models_with_separable_weights_use_separable_sums():
    shape = (200, 200)
    for settings, expected in (
        (PLAIN, True),
        ({"robust": True, "noise": "shared"}, False),
        ({"robust": False, "noise": "entry"}, False),
        ({**PLAIN, "level": True}, False),
    ):
        state = ut.init(ut.make_config(max_rank=2, **settings), shape)
        assert (missing_capacity(state) is not None) == expected
    assert missing_capacity(ut.init(ut.make_config(max_rank=2, **PLAIN), (5, 5))) is None


def test_few_missing_entries_take_little_capacity():
    """Capacity for none, for one in 500 entries, for one in 50."""
    state = ut.init(ut.make_config(max_rank=2, window=4, **PLAIN), (200, 200))
    entries = 4 * 200 * 200
    for count, most in (
        (0, 0),
        (1, entries // 500),
        (entries // 500 + 1, entries // 50),
        (entries // 50 + 1, None),
    ):
        assert missing_capacity(replace(state, missing=(count,))) == most
