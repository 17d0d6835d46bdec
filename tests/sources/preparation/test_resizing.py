"""Resizing: averages over areas."""

import numpy as np
import pytest
from stream_files import LENGTH, labelled, values

from undertow.sources import StreamError, open_stream
from undertow.sources.preparation.resizing import Resizer


@pytest.mark.parametrize(("old", "new"), [((6, 4), (3, 2)), ((6, 5), (4, 3)), ((5, 7), (9, 7)), ((4, 4), (1, 1))])
def test_resizing_keeps_the_mean_and_constants(old, new):
    x = np.random.default_rng(0).normal(size=old)
    made = Resizer(old, new)(x)
    assert made.shape == new
    assert made.mean() == pytest.approx(x.mean())
    np.testing.assert_allclose(Resizer(old, new)(np.full(old, 3.5)), 3.5)


@pytest.mark.parametrize(("old", "new"), [((6, 4), (3, 2)), ((7, 5), (3, 9)), ((10, 3, 4), (4, 3, 1))])
def test_resizing_is_a_product_with_fractions_of_areas(old, new):
    """The naive way: a dense matrix of overlaps per mode."""
    x = np.random.default_rng(0).normal(size=old)
    made = x
    for mode, (a, b) in enumerate(zip(old, new, strict=True)):
        ends = [(i * a / b, (i + 1) * a / b) for i in range(b)]
        fractions = [[max(0, min(high, j + 1) - max(low, j)) * b / a for j in range(a)] for low, high in ends]
        made = np.moveaxis(np.tensordot(fractions, made, axes=(1, mode)), 0, mode)
    np.testing.assert_allclose(Resizer(old, new)(x), made, atol=1e-12)


def test_resizing_averages_what_was_observed():
    x = np.array([[1.0, 3.0, np.nan, np.nan], [5.0, np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(Resizer((2, 4), (1, 2))(x), [[3.0, np.nan]])


@pytest.mark.parametrize(
    ("resize", "shape"), [("3x5", (3, 5)), (0.5, (3, 2)), ((2,), (2, 5)), ({"dst": 1}, (6, 1)), ("0.34", (2, 2))]
)
def test_resize_options(resize, shape):
    stream = open_stream(labelled(), resize=resize)
    assert stream.shape == shape
    assert values(stream).shape == (LENGTH, *shape)
    assert all(known is None or len(known) == size for known, size in zip(stream.labels, shape, strict=True))


@pytest.mark.parametrize("resize", ["0x3", -1, "big", (1, 2, 3), {"x": 3}, (2.5, 2), float("nan"), 1e9])
def test_bad_resize_options_are_refused(resize):
    with pytest.raises(StreamError):
        open_stream(labelled(), resize=resize)
