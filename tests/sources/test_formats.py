"""Every format: the slices that went in come out, from the beginning and from every position."""

import json

import numpy as np
import pytest
from stream_files import LENGTH, MAKERS, SHAPE, SOURCES, TARGETS, dicom_dataset, labelled, moments, numbers

from undertow.sources import Stream, StreamError, open_stream

FORMATS = sorted(MAKERS)
DATED = ["npz", "netcdf", "netcdf3", "zarr", "zarr2", "csv", "csv_packed", "csv_shuffled", "parquet", "arrow_rows"]
DATED += ["arrow", "jsonl", "json_rows"]
TABLES = ["csv", "csv_packed", "csv_shuffled", "parquet", "arrow_rows", "json_rows"]


def opened(file, **more):
    return open_stream(file.path, **file.options, **more)


@pytest.mark.parametrize("name", FORMATS)
def test_slices_come_out_as_they_went_in(name, made):
    stream = opened(made(name))
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
    whole = opened(made(name))
    items = list(whole.slices())
    assert len(items) >= LENGTH
    for done, item in enumerate(items, start=1):
        position = json.loads(json.dumps(item.position))
        again = opened(made(name))  # a new process would open it anew
        assert again.fingerprint == whole.fingerprint
        rest = list(again.slices(position))
        assert len(rest) == len(items) - done
        for now, then in zip(rest, items[done:], strict=True):
            np.testing.assert_array_equal(now.values, then.values)
            assert now.time == then.time
            assert now.position == then.position
        again.close()
    whole.close()


@pytest.mark.parametrize("name", DATED)
def test_times_survive(name, made):
    times = [item.time for item in opened(made(name)).slices()]
    assert all(isinstance(time, np.datetime64) for time in times)
    np.testing.assert_array_equal(np.array(times).astype("datetime64[us]"), moments())


def test_times_beside_arrays_and_in_headers(made):
    assert [item.time for item in opened(made("npz_packed")).slices()] == list(range(LENGTH))
    assert [item.time for item in opened(made("mat5")).slices()] == [2.0 * t for t in range(LENGTH)]
    assert [item.time for item in opened(made("mat73")).slices()] == [0.5 * t for t in range(LENGTH)]
    assert [item.time for item in opened(made("nifti")).slices()] == [2.5 * t for t in range(LENGTH)]
    assert [item.time for item in opened(made("dicom")).slices()] == pytest.approx([0.1 * t for t in range(LENGTH)])
    assert [item.time for item in opened(made("video")).slices()] == pytest.approx([0.1 * t for t in range(15)])
    assert [item.time for item in opened(made("npy")).slices()] == [None] * LENGTH


@pytest.mark.parametrize("name", [*TABLES, "netcdf", "zarr", "zarr2"])
def test_labels_survive(name, made):
    stream = opened(made(name))
    assert stream.dims == ("src", "dst")
    assert stream.labels == (tuple(SOURCES), tuple(TARGETS))


@pytest.mark.parametrize("name", FORMATS)
def test_a_position_of_another_source_is_refused(name, made):
    stream = opened(made(name))
    for wrong in ({"index": -1}, {"index": "x"}, {"index": 1, "source": 7}, {"index": 1, "source": {}}):
        with pytest.raises(StreamError):
            list(stream.slices(wrong))


def test_pictures_are_sorted_by_number_and_named_by_file(made):
    assert [item.time for item in opened(made("images")).slices()] == [f"frame{t}" for t in range(6, 13)]


def test_dicom_values_are_rescaled_and_files_ordered_by_instance(made):
    items = list(opened(made("dicom")).slices())
    np.testing.assert_array_equal([item.values for item in items], 2 * numbers())


def test_dicom_volumes_over_time(tmp_path):
    for t in range(3):
        for place in range(2):
            header = dicom_dataset(2 * numbers()[2 * t + place], 2 * t + place, float(place), 50.0 * t)
            header.save_as(tmp_path / f"{place}_{t}.dcm", enforce_file_format=True)
    stream = open_stream(tmp_path)
    assert stream.shape == (*SHAPE, 2)
    assert stream.dims == ("row", "column", "slice")
    for t, item in enumerate(stream.slices()):
        np.testing.assert_array_equal(item.values[..., 1], 2 * numbers()[2 * t + 1])
        assert item.time == pytest.approx(0.05 * t)


def test_video_frames_are_what_was_filmed(made):
    items = list(opened(made("video")).slices())
    assert len(items) == 15
    assert abs(float(np.median(items[0].values)) - 40) < 8
    assert [int(item.values.mean(axis=1).argmax()) for item in items] == list(range(15))
    colour = opened(made("video_colour"))
    assert colour.shape == (16, 16, 3)
    assert colour.labels[2] == ("red", "green", "blue")
    first = next(iter(colour.slices())).values
    assert first[0, :, 0].mean() > first[0, :, 1].mean() + 50


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p", "yuv444p"])
def test_raw_video_in_colour(pixels, tmp_path):
    av = pytest.importorskip("av")
    picture = np.zeros((16, 32, 3), np.uint8)
    picture[:, :16, 0] = 200
    frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format=pixels)
    (tmp_path / "a.yuv").write_bytes(frame.to_ndarray().tobytes())
    stream = open_stream(tmp_path / "a.yuv", size=(32, 16), pixels=pixels, colour=True)
    (item,) = stream.slices()
    assert stream.shape == (16, 32, 3)
    assert abs(item.values[4, 4, 0] - 200) < 12
    assert item.values[4, 28].max() < 12


def test_arrays_that_are_already_there():
    for source in (numbers(), labelled()):
        items = list(open_stream(source).slices())
        np.testing.assert_array_equal([item.values for item in items], numbers())
    masked = np.ma.MaskedArray(numbers(), numbers() > 100)
    items = list(open_stream(masked).slices())
    np.testing.assert_array_equal(np.isnan([item.values for item in items]), numbers() > 100)


def test_slices_belong_to_the_receiver():
    source = numbers()
    for item in open_stream(source).slices():
        item.values[:] = -1
    np.testing.assert_array_equal(source, numbers())
