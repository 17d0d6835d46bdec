"""Exports are read back by the libraries that their users would use."""

import csv
import hashlib

import av
import nibabel
import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, StubStream, load_stub

from undertow.export import export
from undertow.export.video import grey_scale, side_by_side
from undertow.runs import run
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import open_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "s"
    stream = StubStream(12, times=lambda index: np.datetime64("2024-05-01T00:00") + index)
    run(stream, StubModel(), store=folder, load=load_stub, keep="data,low_rank,outliers")
    return folder


def test_csv_has_a_row_for_every_entry(store, tmp_path):
    done = []
    path = export(store, tmp_path / "x.csv", progress=done.append)
    assert done[-1] == 12
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    found = xr.open_zarr(store)
    assert list(rows[0]) == ["time", "site", "column", "low_rank", "outliers", "data"]
    assert len(rows) == 12 * 3 * 4
    low_rank = np.array([row["low_rank"] for row in rows], np.float32).reshape(12, 3, 4)
    np.testing.assert_array_equal(low_rank, found["low_rank"])
    data = np.array([row["data"] or "nan" for row in rows], np.float32).reshape(12, 3, 4)
    np.testing.assert_array_equal(data, found["data"])
    assert (rows[13]["time"][:19], rows[13]["site"], rows[13]["column"]) == ("2024-05-01T00:01:00", "a", "1")
    few = export(store, tmp_path / "y.csv", variables=["data"])
    assert few.read_text().startswith("time,site,column,data\n")


def test_netcdf_opens_as_the_same_dataset(store, tmp_path):
    path = export(store, tmp_path / "x.nc")
    with xr.open_dataset(path, engine="h5netcdf") as read:
        found = xr.open_zarr(store)
        assert read.sizes == found.sizes
        for name in ("data", "low_rank", "outliers", "rank", "noise_std", "time"):
            np.testing.assert_array_equal(read[name], found[name])
        assert [str(text) for text in read["site"].values] == ["a", "b", "c"]
        assert [str(text) for text in read["status"].values] == [str(text) for text in found["status"].values]
        assert read.attrs["source"] == "stub"


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_nifti_holds_volumes_over_time(store, tmp_path, name):
    path = export(store, tmp_path / name)
    values = np.asarray(nibabel.load(path).dataobj)
    assert values.shape == (3, 4, 1, 12)
    np.testing.assert_array_equal(np.moveaxis(values[:, :, 0], -1, 0), xr.open_zarr(store)["low_rank"])
    first = hashlib.sha256(path.read_bytes()).digest()
    assert hashlib.sha256(export(store, tmp_path / name).read_bytes()).digest() == first


@pytest.mark.parametrize("name", ["x.mp4", "x.mkv"])
def test_video_shows_original_background_and_outliers(store, tmp_path, name):
    path = export(store, tmp_path / name, frames_per_second=10)
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert container.streams.video[0].average_rate == 10
    assert len(frames) == 12
    # 3 rows of 3 panels with 4 columns and 2 gaps of 2 columns, 80 times enlarged.
    assert frames[0].shape == (240, 16 * 80, 3)
    found = open_store(store)
    low, high = grey_scale(found, "data")
    wanted = np.clip((found.slice("low_rank", 11) - low) / (high - low) * 255, 0, 255)
    shown = frames[11][40::80, (6 * 80) + 40 : 10 * 80 : 80, 0]
    np.testing.assert_allclose(shown, wanted, atol=12)


def test_colours_and_volumes_make_pictures():
    colours = np.zeros((3, 2, 3))
    colours[..., 0] = 200
    picture = side_by_side({"low_rank": colours, "outliers": 0 * colours}, 0, 255)
    assert tuple(picture[0, 0]) == (200, 0, 0)
    volume = np.arange(4 * 5 * 2.0).reshape(4, 2, 5)
    assert side_by_side({"low_rank": volume, "outliers": 0 * volume}, 0, 255).shape == (240, 19 * 60, 3)


def test_pixels_keep_their_grey(tmp_path):
    class Pixels(StubStream):
        def slices(self, position=None):
            for item in super().slices(position):
                item.values[:] = np.arange(12).reshape(3, 4) * 20
                yield item

    run(Pixels(3), StubModel(), store=tmp_path / "s", load=load_stub, keep="data,low_rank,outliers")
    assert grey_scale(open_store(tmp_path / "s"), "data") == (0.0, 255.0)


def test_impossible_exports_are_one_sentence_and_leave_nothing(store, tmp_path):
    for name, options, sentence in [
        ("x.txt", {}, "x.txt must end in .mp4"),
        ("x.csv", {"variables": ["std"]}, "does not hold std: choose among low_rank, outliers, data"),
        ("x.nii", {"variables": ["data", "low_rank"]}, "NIfTI holds one array"),
        ("x.mp4", {"frames_per_second": 0}, "frames per second must be"),
        ("x.mp4", {"variables": ["data"]}, "a video always shows"),
    ]:
        with pytest.raises(StoreError, match=sentence):
            export(store, tmp_path / name, **options)
    run(StubStream(3, shape=(5,)), StubModel(), store=tmp_path / "line", load=load_stub)
    with pytest.raises(StoreError, match="one mode, which make no picture"):
        export(tmp_path / "line", tmp_path / "x.mp4")
    run(StubStream(3), StubModel(), store=tmp_path / "bare", load=load_stub, keep="none")
    with pytest.raises(StoreError, match="values per slice only"):
        export(tmp_path / "bare", tmp_path / "x.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"line", "bare"}
