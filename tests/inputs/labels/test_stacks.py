"""Several labelled slices in one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from undertow.inputs.labels.slices import taken
from undertow.inputs.labels.stacks import restacked, slices_of

VALUES = np.arange(12.0).reshape(4, 3)
DAYS = pd.date_range("2024-01-01", periods=4)


def rows(X):
    return [taken(x, None, None, None) for x in slices_of(X)]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame(VALUES, DAYS, list("abc")),
        pd.DataFrame(VALUES, DAYS.tz_localize("Europe/Berlin"), list("abc")).astype("Float64"),
        pl.DataFrame({"day": DAYS.to_numpy(), **{name: VALUES[:, n] for n, name in enumerate("abc")}}),
        xr.DataArray(VALUES.T, dims=("site", "time"), coords={"site": list("abc")}),
        xr.DataArray(VALUES.T, dims=("site", "day"), coords={"site": list("abc"), "day": DAYS}),
    ],
)
def test_every_time_is_a_slice_with_labels(X):
    found = rows(X)
    np.testing.assert_array_equal([one.x for one in found], VALUES)
    assert found[0].labels.coords == (("a", "b", "c"),)
    again = restacked(X, [one.way.back(one.x + 1) for one in found])
    assert type(again) is type(X)
    if isinstance(X, pl.DataFrame):
        assert again.equals(X.with_columns(pl.col(*"abc") + 1))
    else:
        np.testing.assert_array_equal(np.asarray(again, float), np.asarray(X, float) + 1)
        assert isinstance(X, xr.DataArray) or (again.index is X.index and again.columns.equals(X.columns))


def test_arrays_and_lists_are_stacks_along_their_first_axis():
    np.testing.assert_array_equal([one.x for one in rows(VALUES)], VALUES)
    np.testing.assert_array_equal([one.x for one in rows(list(VALUES))], VALUES)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (VALUES[0], r"X must be a stack of slices, \(T, I_1, …\), got shape \(3,\)"),
        (xr.DataArray(VALUES[0]), "use update"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "column 'b' of x must hold real numbers"),
        (pl.DataFrame({"a": [1.0], "b": ["x"]}), "column 'b' of X must hold real numbers"),
    ],
)
def test_what_is_no_stack_is_refused(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        slices_of(X)
