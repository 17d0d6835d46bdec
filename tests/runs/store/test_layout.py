"""Names, chunks and arrays of a store."""

import pytest
import xarray as xr
from stubs import StubStream, minute, reported_store, store_stub

from undertow.export import export
from undertow.report import write_report
from undertow.runs.options import RunOptions
from undertow.runs.store.layout import chunk_length, distinct
from undertow.runs.store.reader import open_store
from undertow.runs.store.times import Times


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
    assert found["mean"].dims == ("time", "rank_", "time_")
    assert list(found["rank_"].values) == ["a", "b", "c"]
    assert distinct(("x", "x"), "time") == ("x", "x_")


def named(name):
    stream = StubStream(20, times=minute)
    stream.time_name = name
    return stream


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rank", "status", "std", "observed", "data", "value"])
def test_a_time_may_have_any_name(tmp_path, name):
    folder = reported_store(tmp_path / "s", named(name))
    found = xr.open_zarr(folder)
    assert found["mean"].dims == (f"{name}_", "site", "column")
    assert found[f"{name}_"].values[3] == minute(3)
    assert next(iter(next(open_store(folder).alerts()))) == f"{name}_"
    assert write_report(folder).exists()
    assert export(folder, tmp_path / "x.nc").exists()
    store_stub(folder, named(name), resume=True, keep=open_store(folder).kept, threshold=0.9)


def test_a_store_begun_with_another_name_of_its_time_keeps_it():
    begun = RunOptions().layout(StubStream(), Times("index")).identity()
    earlier = {key: value for key, value in begun.items() if key != "checksums"} | {"time_name": "value"}
    layout = RunOptions().layout(named("value"), Times("index"), earlier)
    assert layout.identity() == earlier
