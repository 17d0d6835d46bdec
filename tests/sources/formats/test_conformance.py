"""Every format: the slices that went in come out, from the beginning and from every position."""

import json

import numpy as np
import pytest
from stream_files import LENGTH, MAKERS, SOURCES, TARGETS, labelled, moments, numbers

from undertow.sources import Stream, StreamError, open_stream

FORMATS = sorted(MAKERS)


DATED = ["npz", "netcdf", "netcdf3", "zarr", "zarr2", "csv", "csv_compressed", "csv_shuffled", "parquet", "arrow_rows"]


DATED += ["arrow", "jsonl", "json_rows"]


TABLES = ["csv", "csv_compressed", "csv_shuffled", "parquet", "arrow_rows", "json_rows"]


@pytest.mark.parametrize("name", FORMATS)
def test_slices_come_out_as_they_went_in(name, made):
    stream = made(name).open()
    items = list(stream.slices())
    assert isinstance(stream, Stream)
    assert all(item.values.shape == stream.shape for item in items)
    assert all(item.values.dtype in (np.float32, np.float64) for item in items)
    assert len(stream.dims) == len(stream.labels) == len(stream.shape)
    assert stream.length in (None, len(items))
    if made(name).exact:
        np.testing.assert_array_equal([item.values for item in items], numbers())
    stream.close()


@pytest.mark.parametrize("name", FORMATS)
def test_resume_from_every_position_gives_the_same_rest(name, made):
    stream = made(name).open()
    items = list(stream.slices())
    assert len(items) >= LENGTH
    for done, item in enumerate(items, start=1):
        position = json.loads(json.dumps(item.position))
        again = made(name).open()  # a new process would open it anew
        assert again.fingerprint == stream.fingerprint
        rest = list(again.slices(position))
        assert len(rest) == len(items) - done
        for now, then in zip(rest, items[done:], strict=True):
            np.testing.assert_array_equal(now.values, then.values)
            assert now.time == then.time
            assert now.position == then.position
        again.close()
    stream.close()


@pytest.mark.parametrize("name", DATED)
def test_times_survive(name, made):
    times = [item.time for item in made(name).open().slices()]
    assert all(isinstance(time, np.datetime64) for time in times)
    np.testing.assert_array_equal(np.array(times).astype("datetime64[us]"), moments())


def test_times_in_other_arrays_and_in_headers(made):
    assert [item.time for item in made("npz_compressed").open().slices()] == list(range(LENGTH))
    assert [item.time for item in made("mat5").open().slices()] == [2.0 * t for t in range(LENGTH)]
    assert [item.time for item in made("mat73").open().slices()] == [0.5 * t for t in range(LENGTH)]
    assert [item.time for item in made("nifti").open().slices()] == [2.5 * t for t in range(LENGTH)]
    assert [item.time for item in made("dicom").open().slices()] == pytest.approx([0.1 * t for t in range(LENGTH)])
    assert [item.time for item in made("video").open().slices()] == pytest.approx([0.1 * t for t in range(15)])
    assert [item.time for item in made("npy").open().slices()] == [None] * LENGTH


@pytest.mark.parametrize("name", [*TABLES, "netcdf", "zarr", "zarr2"])
def test_labels_survive(name, made):
    stream = made(name).open()
    assert stream.dims == ("src", "dst")
    assert stream.labels == (tuple(SOURCES), tuple(TARGETS))


@pytest.mark.parametrize("name", FORMATS)
def test_a_position_of_another_source_is_refused(name, made):
    stream = made(name).open()
    for wrong in ({"index": -1}, {"index": "x"}, {"index": 1, "source": 7}, {"index": 1, "source": {}}):
        with pytest.raises(StreamError):
            list(stream.slices(wrong))


@pytest.mark.slow
def test_several_variables_are_listed(tmp_path, made):
    import h5py
    from scipy.io import savemat

    two = labelled().to_dataset().assign(other=labelled() * 2)
    two.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    two.to_zarr(tmp_path / "a.zarr")
    np.savez(tmp_path / "a.npz", flow=numbers(), other=2 * numbers())
    savemat(tmp_path / "a.mat", {"flow": np.moveaxis(numbers(), 0, -1), "other": np.moveaxis(2 * numbers(), 0, -1)})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/flow"], file["g/other"] = numbers(), 2 * numbers()
    for name in ("a.nc", "a.zarr", "a.npz", "a.mat", "a.h5"):
        with pytest.raises(StreamError, match=r"several arrays, (g/)?flow .*other .*: name one of them with variable"):
            open_stream(tmp_path / name)
        chosen = "g/other" if name == "a.h5" else "other"
        items = list(open_stream(tmp_path / name, variable=chosen).slices())
        np.testing.assert_array_equal([item.values for item in items], 2 * numbers())
        with pytest.raises(StreamError):
            open_stream(tmp_path / name, variable="third")
