"""A state that has seen nothing, and shapes that cannot be."""

import numpy as np
import pytest

import undertow as ut


@pytest.mark.parametrize("shape", [(), (0, 3), (-1,), 5, (2.5, 3)])
def test_shapes_that_cannot_be(shape):
    with pytest.raises((ValueError, TypeError), match="shape must"):
        ut.init(ut.make_config(), shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_new_state_has_the_precision_and_capacity_of_its_settings(dtype):
    state = ut.init(ut.make_config(max_rank=3, window=4, dtype=dtype), (6, 5))
    assert state.core.window.values.dtype == dtype
    assert (state.capacity, state.entry_capacity, state.steps) == (3, None, 0)
    assert not state.active.any()
    copy = state.copy()
    np.testing.assert_array_equal(copy.core.window.values, state.core.window.values)
    assert copy.core.window.values is not state.core.window.values


def test_where_only_observed_entries_are_kept_some_settings_are_refused():
    config = ut.make_config(max_rank=3, window=4, noise="shared")
    assert ut.init(config, (6, 5), entries=70).entry_capacity == 96
    with pytest.raises(ValueError, match="noise must be 'shared' where only observed entries are kept, got 'entry'"):
        ut.init(ut.make_config(), (6, 5), entries=8)
