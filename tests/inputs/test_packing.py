"""Entries of a sparse slice in the window and back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.inputs import packing
from undertow.inputs.packing import entry_capacity, fibres
from undertow.inputs.split import half


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_goes_in_comes_back(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    size = int(np.prod(shape))
    where = np.array(data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=20)), int)
    indices = np.unravel_index(where, shape)
    values = np.array(data.draw(st.lists(st.floats(-9, 9), min_size=where.size, max_size=where.size)))
    x = ut.Entries(indices, values, shape)
    capacity = entry_capacity(where.size)
    assert capacity >= max(64, where.size)
    (kept,) = packing.packed(x, capacity, x.values)
    np.testing.assert_array_equal(packing.unpacked(kept, x), values)
    entry_index = packing.entry_index(x, capacity)
    whole = x.to_slice()
    sorted_ones = tuple(index[: where.size] for index in entry_index.indices)
    np.testing.assert_array_equal(whole.values[sorted_ones], kept[: where.size])
    np.testing.assert_array_equal(half(whole, 7)[indices], half(x, 7))
    smaller = sorted(range(len(shape)), key=lambda mode: -shape[mode])
    for level, fibre in enumerate(fibres(sorted_ones, shape), start=1):
        rest = np.stack([sorted_ones[mode] for mode in smaller[level:]])
        np.testing.assert_array_equal(rest[:, fibre], rest)
        assert len(set(fibre)) == len({tuple(column) for column in rest.T})


def test_capacities_are_few_and_fit():
    capacities = [entry_capacity(count) for count in range(1, 5000)]
    assert all(capacity >= count for count, capacity in enumerate(capacities, start=1))
    assert sorted(set(capacities)) == [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144]
