"""Slots for components follow the rank, and change nothing else; which entries are kept."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.engine import capacity
from undertow.lab.synthetic.streams import drifting
from undertow.model.factors import predict, rank


def a_state(window, steps, active=2, seen=0):
    """Random factors of some active components; `seen` slots of the window are not empty."""
    state = ut.init(ut.make_config(max_rank=16, window=window), (6, 5))
    rng = np.random.default_rng(0)
    on = jnp.arange(16) < active
    means = tuple(jnp.asarray(rng.normal(size=mean.shape), jnp.float32) * on for mean in state.core.factors.means)
    rows = jnp.asarray(rng.normal(size=state.core.factors.row_means.shape), jnp.float32) * on
    factors = replace(state.core.factors, means=means, row_means=rows, active=on)
    mask = state.core.window.mask.at[:seen].set(True)
    core = replace(state.core, factors=factors, window=replace(state.core.window, mask=mask))
    return replace(state, steps=steps, core=core)


@pytest.fixture
def large(monkeypatch):
    """However small: so that tests need not be large."""
    monkeypatch.setattr(capacity, "LARGE_WINDOW", 0)


def test_the_ladder_of_slots():
    assert capacity.slot_ladder(16) == [16, 8, 4]
    assert capacity.slot_ladder(15) == [15, 8, 4]
    assert capacity.slot_ladder(3) == [3]


@pytest.mark.slow
def test_small_windows_keep_all_slots():
    state = a_state(window=3, steps=10)
    assert capacity.with_fitting_slots(state) is state


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_slots_shrink_to_the_active_components_and_change_nothing_else():
    state = a_state(window=3, steps=10)
    fitting = capacity.with_fitting_slots(state)
    assert fitting.capacity == 4
    np.testing.assert_allclose(
        predict.low_rank(fitting.core.factors), predict.low_rank(state.core.factors), rtol=1e-5, atol=1e-6
    )
    assert capacity.with_fitting_slots(replace(state, steps=11)).capacity == 16


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_slots_grow_when_they_are_full():
    state = a_state(window=3, steps=10)
    factors = rank.resized(state.core.factors, 4)
    full = replace(state, core=replace(state.core, factors=replace(factors, active=factors.active | True)))
    grown = capacity.with_fitting_slots(full)
    assert grown.capacity == 8
    assert int(grown.core.factors.active.sum()) == 4
    assert capacity.with_fitting_slots(replace(full, steps=11)).capacity == 4


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_huge_windows_need_not_wait_for_few_slots(monkeypatch):
    known = a_state(window=20, steps=capacity.REVIEW_INTERVAL, seen=capacity.REVIEW_INTERVAL)
    assert capacity.with_fitting_slots(known).capacity == 16
    monkeypatch.setattr(capacity, "HUGE_WINDOW", 20 * 30)
    assert capacity.with_fitting_slots(known).capacity == 4
    less = a_state(window=20, steps=capacity.REVIEW_INTERVAL, seen=capacity.REVIEW_INTERVAL - 1)
    assert capacity.with_fitting_slots(less).capacity == 16


@pytest.mark.full
def test_a_stream_with_few_slots_has_the_results_of_all_slots(monkeypatch, tmp_path):
    data = drifting((9, 8), 2, observed=0.8, slices=40, seed=4)
    settings = {"max_rank": 16, "window": 4, "dtype": "float64"}
    full, narrow = ut.RobustCP(**settings), ut.RobustCP(**settings)
    slots = []
    for x in data.values:
        monkeypatch.setattr(capacity, "LARGE_WINDOW", math.inf)
        expected = full.update(x)
        monkeypatch.setattr(capacity, "LARGE_WINDOW", 0)
        found = narrow.update(x)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.std, expected.std, rtol=1e-5)
        assert found.status.codes == expected.status.codes
        slots.append(narrow.state.capacity)
    assert slots[0] == 16
    assert slots[-1] < 16
    narrow.save(tmp_path / "narrow.ckpt")
    again = ut.load(tmp_path / "narrow.ckpt")
    np.testing.assert_array_equal(again.update(data.values[0]).mean, narrow.update(data.values[0]).mean)


def test_the_first_slice_decides_which_entries_are_kept():
    row = np.arange(40)
    few = ut.Entries((row, row), row + 1.0, (20_000, 500))
    assert capacity.prefers_entries(20, few)
    assert not capacity.prefers_entries(20, replace(few, shape=(200, 400)))  # small
    many = np.unravel_index(np.arange(60_000), (1000, 1000))
    assert not capacity.prefers_entries(20, ut.Entries(many, np.ones(60_000), (1000, 1000)))  # 6 %


def test_a_window_of_observed_entries_grows_and_keeps_them():
    config = ut.make_config(max_rank=3, window=4, noise="shared")
    state = ut.init(config, (6, 5), entries=8)
    values = jnp.arange(4.0 * 64).reshape(4, 64)
    state = replace(state, core=replace(state.core, window=replace(state.core.window, values=values)))
    assert capacity.with_entry_capacity(state, 64) is state
    wide = capacity.with_entry_capacity(state, 96)
    assert wide.entry_capacity == 96
    np.testing.assert_array_equal(wide.core.window.values, np.pad(values, ((0, 0), (0, 32))))
    shapes = {array.shape for array in wide.core.window.entry_index.indices}
    assert shapes == {wide.core.window.mask.shape, (4, 96)} == {wide.core.outliers.probability.shape}
