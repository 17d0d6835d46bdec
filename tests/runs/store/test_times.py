"""Times of all kinds come back as they were."""

import datetime

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
from stubs import StubStream, store_stub

from undertow.runs import RunError
from undertow.runs.errors import StoreError
from undertow.runs.store.times import Times


@pytest.mark.parametrize(
    ("times", "first", "last"),
    [
        (lambda t: np.datetime64("2024-01-01T10:00") + 5 * t, "2024-01-01T10:00", "2024-01-01T11:35"),
        (lambda t: datetime.datetime(2024, 1, 1, 10, t), "2024-01-01T10:00", "2024-01-01T10:19"),
        (lambda t: 10 * t, 0, 190),
        (lambda t: 0.5 * t, 0.0, 9.5),
        (lambda t: f"scan é{t}", "scan é0", "scan é19"),
        (None, 0, 19),
    ],
    ids=["datetime64", "datetime", "whole", "number", "text", "none"],
)
def test_times_come_back_as_they_were(tmp_path, times, first, last):
    store_stub(tmp_path / "s", StubStream(20, times=times), alerts="parquet", checkpoint_every=8)
    read = xr.open_zarr(tmp_path / "s")["time"].values
    wanted = [np.datetime64(first, "ns"), np.datetime64(last, "ns")] if read.dtype.kind == "M" else [first, last]
    assert list(read[[0, -1]]) == wanted
    assert set(pq.read_table(tmp_path / "s" / "alerts").column("time").to_numpy()) <= set(read)


def test_a_time_of_another_kind_ends_the_run_in_one_sentence_and_the_rest_is_kept(tmp_path):
    mixed = StubStream(20, times=lambda t: t if t < 12 else f"late {t}")
    with pytest.raises(
        RunError, match="the time of slice 12 is 'late 12', and the times before it were of another kind"
    ):
        store_stub(tmp_path / "s", mixed, checkpoint_every=4)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 12


def test_times_that_cannot_be_stored_are_refused():
    with pytest.raises(StoreError, match="1678 to 2262"):
        Times("datetime").stored(np.datetime64("3000-01-01"), 0)
    with pytest.raises(StoreError, match="dates, numbers or text"):
        Times.like([1])
    assert Times("whole").stored(3.0, 0) == 3
    with pytest.raises(StoreError, match=r"the time of slice 4 is 2024-05-01, and .* of another kind \(integers\)"):
        Times("whole").stored(np.datetime64("2024-05-01"), 4)
    with pytest.raises(StoreError, match="another kind"):
        Times("whole").stored(3.5, 0)
    assert Times("datetime").shown(1) == "1970-01-01T00:00:00.000000001"
    assert Times("datetime").shown(10**9) == "1970-01-01T00:00:01"
