"""Names, chunks and arrays of a store."""

import xarray as xr
from stubs import StubStream, store_stub

from undertow.runs.store.layout import chunk_length, distinct


def test_chunks_follow_from_the_shape_and_the_interval_alone():
    assert chunk_length((144, 176), "single", None) == 32
    assert chunk_length((144, 176), "single", 10) == 10
    assert chunk_length((2000, 2000), "single", 50) == 1
    assert chunk_length((2, 2), "single", None) == 1024
    assert chunk_length((2, 2), "double", 5000) == 1024


def test_names_of_modes_never_clash_with_variables(tmp_path):
    stream = StubStream(5)
    stream.dims = ("rank", "time")
    store_stub(tmp_path / "s", stream)
    found = xr.open_zarr(tmp_path / "s")
    assert found["low_rank"].dims == ("time", "rank_", "time_")
    assert list(found["rank_"].values) == ["a", "b", "c"]
    assert distinct(("x", "x"), "time") == ("x", "x_")
