import numpy as np
import pytest

from undertow.lab.cases.disturbing import (
    GARBAGE,
    SHIFT,
    size,
    with_first,
    with_row_at_zero,
    with_slice_off,
    without_slices,
)


@pytest.fixture
def data(case):
    return case.data


@pytest.mark.parametrize("kind", ["zeros", "nothing", "garbage"])
def test_a_slice_before_the_others_is_not_scored(data, kind):
    changed = with_first(data, kind, seed=1)
    assert len(changed) == len(data) + 1
    assert changed.burn_in == data.burn_in + 1
    np.testing.assert_array_equal(changed.values[1:], data.values)
    assert not changed.hidden[0].any()
    first = changed.values[0]
    if kind == "nothing":
        assert np.isnan(first).all()
    else:
        assert size(first) == pytest.approx(0 if kind == "zeros" else GARBAGE * size(data.values), rel=0.5)


def test_slices_of_nothing(data):
    changed, empty = without_slices(data, 0.4, seed=0)
    assert 0 < empty.sum() < len(data)
    assert not empty[0]
    np.testing.assert_array_equal(np.isnan(changed.values).all(axis=(1, 2)), empty)
    np.testing.assert_array_equal(changed.values[~empty], data.values[~empty])


@pytest.mark.parametrize("kind", ["shifted", "doubled", "noise"])
def test_one_slice_is_off(data, kind):
    changed = with_slice_off(data, 4, kind, seed=0)
    np.testing.assert_array_equal(changed.shown, data.shown)
    np.testing.assert_array_equal(np.delete(changed.values, 4, 0), np.delete(data.values, 4, 0))
    assert changed.corrupted[4].all()
    assert changed.corrupted.sum() == changed.corrupted[4].size
    if kind == "shifted":
        np.testing.assert_allclose(np.nanmin(changed.values[4] - data.values[4]), SHIFT * size(data.values))
    elif kind == "doubled":
        np.testing.assert_array_equal(changed.values[4], 2 * data.values[4])


def test_a_row_at_zero_stays_hidden_where_it_was(data):
    changed = with_row_at_zero(data, 2, 3, 6)
    np.testing.assert_array_equal(changed.shown, data.shown)
    assert np.nansum(np.abs(changed.values[3:6, 2])) == 0
    np.testing.assert_array_equal(changed.values[6:], data.values[6:])
    assert changed.corrupted.sum() == 3 * data.shape[1]
