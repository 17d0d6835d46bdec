"""The time that a labelled slice carries."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from undertow.inputs.labels.moments import moment

DATES = pd.date_range("2026-03-01", periods=3, freq="h")
FRAME = pd.DataFrame(np.ones((3, 2)), DATES, ["a", "b"])
ARRAY = xr.DataArray(np.ones((3, 2)), dims=("time", "site"), coords={"time": DATES, "site": ["a", "b"]})


@pytest.mark.parametrize("x", [ARRAY[1], ARRAY.rename(time="when").isel(when=1), FRAME.iloc[1]])
def test_dates_of_slices(x):
    assert np.datetime64(moment(x)) == DATES[1]


def test_a_time_zone_is_kept():
    assert moment(FRAME.tz_localize("Europe/Berlin").iloc[1]) == DATES[1].tz_localize("Europe/Berlin")


@pytest.mark.parametrize(
    "x",
    [
        np.ones(3),
        [1.0, 2.0],
        FRAME,
        FRAME.reset_index(drop=True).iloc[1],
        ARRAY,  # a stack has no single time
        ARRAY.drop_vars("time")[1],
        ARRAY.assign_coords(time=[0, 1, 2])[1],
        ARRAY.assign_coords(made=DATES[0])[1],  # which of the two is it?
    ],
)
def test_others_have_none(x):
    assert moment(x) is None
