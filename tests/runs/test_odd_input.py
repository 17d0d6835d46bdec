"""Odd arrays, series and frames in `ut.clean` and in stacks: taken as they are, or refused in one sentence."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_input import INDICES, KINDS, LABEL, attempted, column, index
from stubs import StubModel

import undertow.adapters.pandas  # noqa: F401 (registers it)
from undertow.inputs.dense import as_slice
from undertow.inputs.labels.slices import taken
from undertow.inputs.labels.stacks import restacked, slices_of
from undertow.runs.cleaning import clean

QUICK = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
DIMS = st.lists(st.sampled_from(["time", "x", "mean", "data", "flags", "", 0, None, "x y"]), max_size=3, unique=True)


class Stub(StubModel):
    """With what `clean` reads."""

    def update(self, x):
        result = super().update(np.nan_to_num(x))
        result.plain = lambda name: getattr(result, name)
        result.weights = {}
        return result


def cleaned(X, **options):
    """Every entry that went in comes out, at the same place."""
    found = attempted(clean, X, model=Stub(), progress=False, **options)
    if found is not None:
        assert set(found["mean"].dims) == set(found["data"].dims)
        assert np.isfinite(found["mean"].values).all()
    return found


@st.composite
def arrays(draw):
    dims = draw(DIMS)
    sizes = [draw(st.integers(0, 3)) for _ in dims]
    kind = draw(st.sampled_from(["float64", "float32", "int8", "bool", "datetime64[ns]", "complex64", "object", "U1"]))
    values = np.arange(np.prod(sizes, dtype=int)).reshape(sizes).astype(kind)
    made = xr.DataArray(values, dims=dims, name=draw(st.sampled_from([None, "flows", "mean", 3])))
    if dims and draw(st.booleans()):
        other = draw(st.sampled_from(["std", "status", "incidents", "extra"]))
        made = made.assign_coords({other: (dims[:1], np.arange(sizes[0]))})
    for dim, size in zip(dims, sizes, strict=True):
        how = draw(st.sampled_from([None, *INDICES]))
        if how is None:
            continue
        labels = index(how, size)
        try:
            levels = how == "levels"
            made = made.assign_coords(xr.Coordinates.from_pandas_multiindex(labels, dim) if levels else {dim: labels})
        except (TypeError, ValueError):  # xarray itself refuses it
            continue
    return made


@pytest.mark.slow
@QUICK
@given(arrays(), st.sampled_from([None, "time", "x", "nothing"]))
def test_odd_arrays_of_xarray(array, time):
    found = attempted(taken, array, None, None, None)
    if found is not None and attempted(as_slice, found.x, found.mask) is not None:
        assert found.way.back(np.asarray(found.x, float)).dims == array.dims
    slices = attempted(slices_of, array)
    for one in slices or ():
        attempted(taken, one, None, None, None)
    if slices is not None:
        same = attempted(restacked, array, list(slices_of(array)))
        assert same is None or same.dims == array.dims
    back = cleaned(array, **({} if time is None else {"time": time}))
    if back is not None:
        assert back["mean"].size == array.size


@pytest.mark.slow
@QUICK
@given(st.integers(0, 6), LABEL, st.sampled_from(KINDS), st.sampled_from(INDICES))
def test_odd_series(rows, name, kind, how):
    series = column(kind, rows)
    series.index = index(how, rows)
    if name is not None:
        try:
            series.name = name
        except TypeError:  # pandas itself refuses it
            return
    found = attempted(taken, series, None, None, None)
    if found is not None and attempted(as_slice, found.x, found.mask) is not None:
        assert found.way.back(np.asarray(found.x, float)).size == np.size(found.x)
    cleaned(series)


@pytest.mark.slow
@QUICK
@given(
    st.integers(0, 6),
    st.lists(st.tuples(LABEL, st.sampled_from(KINDS)), min_size=0, max_size=3),
    st.sampled_from(INDICES),
)
def test_odd_frames_are_cleaned_or_refused(rows, columns, how):
    frame = pd.concat([column(k, rows) for _, k in columns], axis=1) if columns else pd.DataFrame(index=range(rows))
    frame.columns = pd.Index([name for name, _ in columns], dtype=object, tupleize_cols=False)
    frame.index = index(how, rows)
    cleaned(frame)


def moments(kind, rows):
    """A column of times."""
    dates = pd.date_range("2024-10-26T22:00", periods=rows, freq="h")
    made = {
        "dates": dates,
        "zoned": dates.tz_localize("UTC").tz_convert("Europe/Berlin"),
        "zoned and not": [one.tz_localize("UTC") if n % 2 else one for n, one in enumerate(dates)],
        "texts": [str(one) for one in dates],
        "numbers": np.arange(rows)[::-1],
        "one gone": [None, *dates[1:]],
        "mixed": [1, "b", *dates[2:]],
    }
    return pd.Series(made[kind][:rows])


@pytest.mark.slow
@QUICK
@given(
    st.lists(LABEL, min_size=1, max_size=6),
    st.sampled_from(["dates", "zoned", "zoned and not", "texts", "numbers", "one gone", "mixed"]),
    st.sampled_from(KINDS),
    st.sampled_from(INDICES),
    st.sampled_from([{}, {"time": "when"}, {"time": "when", "modes": "room", "value": "x"}]),
)
def test_odd_long_frames_are_cleaned_or_refused(labels, times, kind, how, said):
    rows = len(labels)
    room = pd.Series(labels, dtype=object)
    frame = pd.DataFrame({"when": moments(times, rows), "room": room, "x": column(kind, rows)})
    frame.index = index(how, rows)
    cleaned(frame, **said)
    options = {"model": Stub(), "progress": False, **said}
    flags = attempted(frame.undertow.outliers, **options)
    assert flags is None or flags.index.equals(frame.index)
    completed = attempted(frame.undertow.completed, **options)
    assert completed is None or len(completed)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_the_hour_that_comes_twice_is_two_slices(zone):
    dates = pd.date_range("2024-10-26T22:00", periods=8, freq="h", tz="UTC").tz_convert(zone)
    frame = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0)}, dates)
    found = cleaned(frame)
    assert found.sizes["time"] == 8
    np.testing.assert_array_equal(found["time"], dates.tz_convert("UTC").tz_localize(None).to_numpy())
