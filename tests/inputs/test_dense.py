import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from undertow.inputs.dense import as_slice, peek_shape

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
DTYPES = st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u4", "?"])


@given(data=st.data(), shape=SHAPES, dtype=DTYPES)
def test_observed_values_survive_and_the_rest_is_zero(data, shape, dtype):
    x = data.draw(hnp.arrays(dtype, shape, elements=_finite(dtype)))
    mask = data.draw(hnp.arrays(bool, shape))
    before = x.copy()
    made = as_slice(x, mask)
    assert made.values.dtype == (np.float32 if dtype in ("f2", "f4", "i1", "?") else np.float64)
    assert made.values.flags.c_contiguous
    assert not np.shares_memory(made.values, x)
    assert not np.shares_memory(made.mask, mask)
    np.testing.assert_array_equal(made.mask, mask)
    np.testing.assert_array_equal(made.values, np.where(mask, x, 0))
    np.testing.assert_array_equal(x, before)


@given(data=st.data(), shape=SHAPES, garbage=st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -7.0]))
def test_masked_values_never_matter(data, shape, garbage):
    x = data.draw(hnp.arrays("f8", shape, elements=_finite("f8")))
    mask = data.draw(hnp.arrays(bool, shape))
    spoilt = np.where(mask, x, garbage)
    for made in (
        as_slice(spoilt, mask),
        as_slice(np.ma.MaskedArray(spoilt, ~mask)),
        as_slice(np.where(mask, x, np.nan)),
    ):
        np.testing.assert_array_equal(made.values, as_slice(x, mask).values)
        np.testing.assert_array_equal(made.mask, mask)


def _finite(dtype):
    if dtype.startswith("f"):
        width = 8 * int(dtype[1])
        return st.floats(-1000, 1000, width=width)
    return None


def test_all_three_ways_of_hiding_combine():
    x = np.ma.MaskedArray([1.0, np.nan, 3.0, 4.0], [True, False, False, False])
    made = as_slice(x, mask=[1, 1, 0, 1])
    assert made.mask.tolist() == [False, False, False, True]
    assert made.values.tolist() == [0, 0, 0, 4]


def test_lists_transposed_views_and_long_doubles():
    assert as_slice([[1, 2], [3, 4]]).values.dtype == np.float64
    view = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(as_slice(view).values, view)
    assert as_slice(view).values.flags.c_contiguous
    assert as_slice(np.ones(2, dtype=np.longdouble)).values.dtype == np.float64


def test_result_cannot_be_changed():
    made = as_slice([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        made.values[0] = 3
    with pytest.raises(AttributeError):
        made.mask = 3


class LabelledArray:
    """Looks like ``xarray.DataArray`` as far as slices are concerned."""

    def __init__(self, values, dims, coords):
        self._values, self.dims, self.coords = values, dims, coords
        self.shape, self.dtype = values.shape, values.dtype

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype=dtype)


def test_labelled_array():
    x = LabelledArray(np.array([1.0, np.nan]), ("site",), {"site": np.array(["a", "b"])})
    assert as_slice(x).mask.tolist() == [True, False]


def test_xarray_itself():
    xarray = pytest.importorskip("xarray")
    stream = xarray.DataArray(np.ones((3, 2)), dims=("time", "site"), coords={"time": [10, 20, 30]})
    assert as_slice(stream[1]).shape == (2,)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.array([1 + 2j]), TypeError, "complex128"),
        (np.array([1, None]), TypeError, "object"),
        (["a", "b"], TypeError, "real numbers"),
        ("abc", TypeError, "got str"),
        (None, TypeError, "got NoneType"),
        ({1: 2}, TypeError, "got dict"),
        (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "datetime64"),
        (np.zeros(2, dtype=[("a", float)]), TypeError, "real numbers"),
        (3.0, ValueError, "single number"),
        (np.float32(3), ValueError, "single number"),
        ([], ValueError, r"shape \(0,\)"),
        (np.empty((3, 0)), ValueError, r"shape \(3, 0\)"),
        ([[1, 2], [3]], ValueError, "rectangular"),
        ([1.0, np.inf, -np.inf], ValueError, r"2 infinite of 3 entries, the first at \(1,\)"),
        (np.array([[0.0, 0.0], [np.inf, 0.0]]), ValueError, r"1 infinite of 4 entries, the first at \(1, 0\)"),
    ],
)
def test_bad_input_is_one_clear_sentence(x, error, words):
    with pytest.raises(error, match=words) as caught:
        as_slice(x)
    message = str(caught.value)
    assert message.startswith("x must")
    assert "\n" not in message
    assert ": " in message  # the remedy


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        ([True], ValueError, r"\(2,\), got \(1,\)"),
        (True, ValueError, r"got \(\)"),
        ([[True, True]], ValueError, r"got \(1, 2\)"),
        ([0.5, 1.0], ValueError, "True and False"),
        ([np.nan, 1.0], ValueError, "True and False"),
        ([2, 1], ValueError, "True and False"),
        (["yes", "no"], TypeError, "True and False"),
        (np.ma.MaskedArray([True, True], [True, False]), TypeError, "masked array"),
    ],
)
def test_bad_masks(mask, error, words):
    with pytest.raises(error, match=words) as caught:
        as_slice([1.0, 2.0], mask)
    assert str(caught.value).startswith("mask must")


def test_other_shape_than_the_stream():
    with pytest.raises(ValueError, match=r"shape \(2, 2\) like the stream before it, got \(2, 3\)"):
        as_slice(np.ones((2, 3)), shape=(2, 2))
    assert as_slice(np.ones((2, 3)), shape=[2, 3]).shape == (2, 3)


def test_huge_views_are_refused_without_being_allocated():
    huge = np.broadcast_to(np.float32(1), (10**6, 10**6, 10**3))
    assert peek_shape(huge) == (10**6, 10**6, 10**3)
    with pytest.raises(ValueError, match="like the stream"):
        as_slice(huge, shape=(2, 2))
    with pytest.raises(ValueError, match="must fit into 1000000 bytes"):
        as_slice(huge, max_bytes=10**6)
    with pytest.raises(ValueError, match="mask must have the shape"):
        as_slice(np.ones(2), mask=np.broadcast_to(True, (10**6, 10**6, 10**3)))


def test_size_limit_counts_values_and_mask():
    assert as_slice(np.ones(10), max_bytes=90).shape == (10,)
    with pytest.raises(ValueError, match="takes 90"):
        as_slice(np.ones(10), max_bytes=89)


@pytest.mark.parametrize(
    ("x", "shape"), [([[1, 2, 3]], (1, 3)), ([], (0,)), (5, ()), ([np.ones((2, 3))], (1, 2, 3)), ([[]], (1, 0))]
)
def test_peek_shape_of_lists(x, shape):
    assert peek_shape(x) == shape


def test_more_modes_than_can_be_compiled_in_a_reasonable_time_are_refused():
    assert as_slice(np.zeros((1,) * 12)).shape == (1,) * 12
    with pytest.raises(ValueError, match="at most 12 modes, got 13"):
        as_slice(np.zeros((1,) * 13))
