"""Arrays in memory."""

import numpy as np
from stream_files import labelled, numbers

from undertow.sources import open_stream


def test_arrays_in_memory():
    for source in (numbers(), labelled()):
        items = list(open_stream(source).slices())
        np.testing.assert_array_equal([item.values for item in items], numbers())
    masked = np.ma.MaskedArray(numbers(), numbers() > 100)
    items = list(open_stream(masked).slices())
    np.testing.assert_array_equal(np.isnan([item.values for item in items]), numbers() > 100)


def test_slices_are_copies():
    source = numbers()
    for item in open_stream(source).slices():
        item.values[:] = -1
    np.testing.assert_array_equal(source, numbers())
