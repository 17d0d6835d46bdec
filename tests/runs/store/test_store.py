"""What the loop wrote, read back by xarray and pyarrow as a user would."""

import csv
import datetime
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
from stubs import StubModel, StubStream, load_stub, slice_at

from undertow.runs import RunError, run
from undertow.runs.errors import StoreError
from undertow.runs.options import parse_keep
from undertow.runs.store.layout import chunk_length, distinct
from undertow.runs.store.reader import is_store, open_store
from undertow.runs.store.times import Times


def follow(folder, stream=None, **options):
    return run(stream or StubStream(20), StubModel(), store=folder, load=load_stub, **options)


def expected(count=20, shape=(3, 4)):
    model = StubModel()
    return [model.update(slice_at(index, shape)) for index in range(count)]


def test_xarray_finds_dims_labels_and_values(tmp_path):
    follow(tmp_path / "s", keep="low_rank,std,outliers,outlier_probability,low_rank_std,data", checkpoint_every=6)
    found = xr.open_zarr(tmp_path / "s")
    results = expected()
    assert found["low_rank"].dims == ("time", "site", "column")
    assert found.sizes == {"time": 20, "site": 3, "column": 4}
    assert list(found["site"].values) == ["a", "b", "c"]
    assert "column" not in found.coords
    for name in ("low_rank", "std", "outliers", "outlier_probability", "low_rank_std"):
        np.testing.assert_array_equal(found[name], np.stack([getattr(r, name) for r in results]).astype(np.float32))
    np.testing.assert_array_equal(found["data"], np.stack([slice_at(t) for t in range(20)]).astype(np.float32))
    np.testing.assert_array_equal(found["rank"], [r.rank for r in results])
    np.testing.assert_array_equal(found["noise_std"], [r.noise_std for r in results])
    np.testing.assert_array_equal(found["evidence"], [r.elbo for r in results])
    assert [str(text) for text in found["status"].values[5:8]] == ["ok", "RANK_FULL", "ok"]
    np.testing.assert_array_equal(found["time"], range(20))
    assert found.sel(site="b").isel(time=3)["low_rank"].shape == (4,)


def test_values_per_step_are_what_they_say(tmp_path):
    follow(tmp_path / "s", threshold=0.4)
    found = xr.open_zarr(tmp_path / "s")
    for index, result in enumerate(expected()):
        x = slice_at(index)
        seen, flagged = ~np.isnan(x), result.outlier_probability >= 0.4
        clean = seen & ~flagged
        assert found["observed"].values[index] == seen.mean()
        assert found["outlier_rate"].values[index] == (seen & flagged).sum() / seen.sum()
        size = np.linalg.norm(x[clean])
        error = np.linalg.norm((x - result.low_rank)[clean]) / size if size else np.nan
        assert found["fit_error"].values[index] == pytest.approx(error, nan_ok=True)


def test_keep_and_precision(tmp_path):
    follow(tmp_path / "s", keep=["outliers"], precision="double")
    found = xr.open_zarr(tmp_path / "s")
    assert {"outliers"} == set(found.data_vars) - {
        "rank", "noise_std", "evidence", "status", "observed", "outlier_rate", "fit_error",
    }  # fmt: skip
    assert found["outliers"].dtype == np.float64
    np.testing.assert_array_equal(found["outliers"], np.stack([r.outliers for r in expected()]))
    follow(tmp_path / "none", keep="none")
    assert open_store(tmp_path / "none").kept == ()


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
    follow(tmp_path / "s", StubStream(20, times=times), alerts="parquet", checkpoint_every=8)
    read = xr.open_zarr(tmp_path / "s")["time"].values
    wanted = [np.datetime64(first, "ns"), np.datetime64(last, "ns")] if read.dtype.kind == "M" else [first, last]
    assert list(read[[0, -1]]) == wanted
    assert set(pq.read_table(tmp_path / "s" / "alerts").column("time").to_numpy()) <= set(read)


def test_a_time_of_another_kind_ends_the_run_in_one_sentence_and_the_rest_is_kept(tmp_path):
    mixed = StubStream(20, times=lambda t: t if t < 12 else f"late {t}")
    with pytest.raises(
        RunError, match="the time of slice 12 is 'late 12', and the times before it were of another kind"
    ):
        follow(tmp_path / "s", mixed, checkpoint_every=4)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 12


def test_times_that_cannot_be_stored_are_refused():
    with pytest.raises(StoreError, match="1678 to 2262"):
        Times("datetime").stored(np.datetime64("3000-01-01"), 0)
    with pytest.raises(StoreError, match="dates, numbers or text"):
        Times.like([1])
    assert Times("whole").stored(3.0, 0) == 3
    with pytest.raises(StoreError, match="another kind"):
        Times("whole").stored(3.5, 0)
    assert Times("datetime").shown(1) == "1970-01-01T00:00:00.000000001"
    assert Times("datetime").shown(10**9) == "1970-01-01T00:00:01"


def rows_of(format, folder):
    if format == "parquet":
        return pq.read_table(folder / "alerts").to_pylist()
    with open(folder / f"alerts.{format}", newline="") as file:
        if format == "jsonl":
            return [json.loads(line) for line in file]
        return list(csv.DictReader(file))


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_alerts_are_the_entries_above_the_threshold(tmp_path, format):
    summary = follow(tmp_path / "s", alerts=format, threshold=0.9, checkpoint_every=7)
    rows = rows_of(format, tmp_path / "s")
    wanted = [
        (t, "abc"[i], j, slice_at(t)[i, j], r.low_rank[i, j], r.std[i, j], r.outlier_probability[i, j])
        for t, r in enumerate(expected())
        for i, j in zip(*np.nonzero(r.outlier_probability >= 0.9), strict=True)
    ]
    assert len(wanted) > 5
    assert summary.alerts == len(wanted)
    assert list(rows[0]) == ["time", "site", "column", "value", "expected", "std", "probability"]
    converted = [(int(r["time"]), r["site"], int(r["column"]), *map(float, list(r.values())[3:])) for r in rows]
    assert converted == wanted
    assert len(list(open_store(tmp_path / "s").alerts())) == len(wanted)


def test_no_alerts_if_not_asked_for(tmp_path):
    follow(tmp_path / "s", alerts=None)
    assert not list((tmp_path / "s").glob("alerts*"))
    assert list(open_store(tmp_path / "s").alerts()) == []


def test_values_too_large_for_single_precision(tmp_path):
    class Large(StubModel):
        def update(self, x):
            result = super().update(x)
            result.low_rank[:] = 1e300
            return result

    with pytest.raises(RunError, match=r"low_rank of slice 0 is too large for single precision: .* --precision double"):
        run(StubStream(3), Large(), store=tmp_path / "s", load=load_stub)


def test_names_of_modes_never_clash_with_variables(tmp_path):
    stream = StubStream(5)
    stream.dims = ("rank", "time")
    follow(tmp_path / "s", stream)
    found = xr.open_zarr(tmp_path / "s")
    assert found["low_rank"].dims == ("time", "rank_", "time_")
    assert list(found["rank_"].values) == ["a", "b", "c"]
    assert distinct(("x", "x"), "time") == ("x", "x_")


def test_chunks_follow_from_the_shape_and_the_interval_alone():
    assert chunk_length((144, 176), "single", None) == 32
    assert chunk_length((144, 176), "single", 10) == 10
    assert chunk_length((2000, 2000), "single", 50) == 1
    assert chunk_length((2, 2), "single", None) == 1024
    assert chunk_length((2, 2), "double", 5000) == 1024


def test_keep_is_checked():
    assert parse_keep("data, low_rank") == ("low_rank", "data")
    with pytest.raises(RunError, match=r"keep must be among low_rank, .* got 'lowrank'"):
        parse_keep("lowrank")


def test_what_is_no_store_is_refused_in_one_sentence(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        assert not is_store(path)
        with pytest.raises(StoreError, match="undertow run wrote"):
            open_store(path)
    follow(tmp_path / "s")
    (tmp_path / "s" / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        open_store(tmp_path / "s")


def test_a_folder_of_someone_else_is_left_alone(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.txt").write_text("years of work")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match="not empty and was not made by undertow run"):
            follow(tmp_path / "s", **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="must be a folder"):
        follow(tmp_path / "file")
    assert (tmp_path / "s" / "thesis.txt").read_text() == "years of work"


def test_overwrite_removes_results_and_nothing_else(tmp_path):
    follow(tmp_path / "s", keep="data", alerts="jsonl")
    (tmp_path / "s" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="holds results already: continue with --resume"):
        follow(tmp_path / "s")
    follow(tmp_path / "s", StubStream(5), overwrite=True)
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "s" / "data").exists()
    assert not (tmp_path / "s" / "alerts.jsonl").exists()
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 5
