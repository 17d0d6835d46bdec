"""What is done to every slice, whatever its format: parts, masks, missing values, sizes, times."""

import numpy as np
import pytest
from stream_files import LENGTH, SHAPE, TARGETS, labelled, moments, numbers

from undertow.sources import StreamError, open_stream
from undertow.sources.preparation.resizing import Resizer


def values(stream):
    return np.array([item.values for item in stream.slices()])


def times(stream):
    return [item.time for item in stream.slices()]


@pytest.mark.parametrize(
    ("select", "where"),
    [
        ({"time": "2:5"}, np.s_[2:5]),
        ({"time": slice(1, None, 2)}, np.s_[1::2]),
        ({"time": "-3:"}, np.s_[-3:]),
        (["src=1:4", "dst=::2"], np.s_[:, 1:4, ::2]),
        ({"src": "s4,s1"}, np.s_[:, [4, 1]]),
        ({"src": "s1..s3", "dst": "1..2"}, np.s_[:, 1:4, 1:3]),
        ({0: [0, -1], "dst": 3}, np.s_[:, [0, -1], 3:4]),
        ({"time": "2024-05-01T12:05..2024-05-01T12:15"}, np.s_[1:4]),
        ({"time": "..2024-05-01T12:10"}, np.s_[:3]),
        ({"time": "2024-05-01.."}, np.s_[:]),
    ],
)
def test_select(select, where):
    stream = open_stream(labelled(), select=select)
    np.testing.assert_array_equal(values(stream), numbers()[where])
    assert stream.length == len(numbers()[where])
    assert stream.shape == numbers()[where].shape[1:]


def test_selected_labels_are_told():
    stream = open_stream(labelled(), select={"src": "s4,s1"})
    assert stream.labels == (("s4", "s1"), tuple(TARGETS))
    assert open_stream(numbers(), select={0: "2:4"}).labels == ((2, 3), None)


@pytest.mark.parametrize(
    "select",
    [
        {"nowhere": "1:2"},
        {"src": "s9"},
        {"src": "4:4"},
        {"src": "::0"},
        {"dst": "x..y"},
        {"time": "5:2:-1"},
        {"time": "s1"},
        {"time": "yesterday.."},
        {7: "0:1"},
        "src",
    ],
)
def test_selections_that_mean_nothing_are_refused(select):
    with pytest.raises(StreamError):
        list(open_stream(labelled(), select=select).slices())


def test_selecting_by_time_needs_times():
    with pytest.raises(StreamError, match="has none"):
        list(open_stream(numbers(), select={"time": "1.."}).slices())


@pytest.mark.parametrize(("old", "new"), [((6, 4), (3, 2)), ((6, 5), (4, 3)), ((5, 7), (9, 7)), ((4, 4), (1, 1))])
def test_resizing_keeps_the_mean_and_constants(old, new):
    x = np.random.default_rng(0).normal(size=old)
    made = Resizer(old, new)(x)
    assert made.shape == new
    assert made.mean() == pytest.approx(x.mean())
    np.testing.assert_allclose(Resizer(old, new)(np.full(old, 3.5)), 3.5)


@pytest.mark.parametrize(("old", "new"), [((6, 4), (3, 2)), ((7, 5), (3, 9)), ((10, 3, 4), (4, 3, 1))])
def test_resizing_is_a_product_with_shares_of_areas(old, new):
    """The naive way: every new entry looks at every old one."""
    x = np.random.default_rng(0).normal(size=old)
    made = x
    for mode, (a, b) in enumerate(zip(old, new, strict=True)):
        shares = [[max(0, min((i + 1) * a / b, j + 1) - max(i * a / b, j)) * b / a for j in range(a)] for i in range(b)]
        made = np.moveaxis(np.tensordot(shares, made, axes=(1, mode)), 0, mode)
    np.testing.assert_allclose(Resizer(old, new)(x), made, atol=1e-12)


def test_resizing_averages_what_was_observed():
    x = np.array([[1.0, 3.0, np.nan, np.nan], [5.0, np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(Resizer((2, 4), (1, 2))(x), [[3.0, np.nan]])


@pytest.mark.parametrize(
    ("resize", "shape"), [("3x5", (3, 5)), (0.5, (3, 2)), ((2,), (2, 5)), ({"dst": 1}, (6, 1)), ("0.34", (2, 2))]
)
def test_resize_options(resize, shape):
    stream = open_stream(labelled(), resize=resize)
    assert stream.shape == shape
    assert values(stream).shape == (LENGTH, *shape)
    assert all(known is None or len(known) == size for known, size in zip(stream.labels, shape, strict=True))


@pytest.mark.parametrize("resize", ["0x3", -1, "big", (1, 2, 3), {"x": 3}, (2.5, 2), float("nan"), 1e9])
def test_bad_resize_options_are_refused(resize):
    with pytest.raises(StreamError):
        open_stream(labelled(), resize=resize)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", ">f4"])
def test_missing_values_in_the_precision_of_the_data(dtype):
    x = np.array([[[1, 2], [255, 0]]]).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 0, 0] = 0.1
    made = values(open_stream(x, missing_value="0.1,255,-1"))
    expected = np.array([[[0.1, 2], [255, 0]]]) if x.dtype.kind == "f" else np.array([[[1, 2], [255, 0]]])
    np.testing.assert_array_equal(np.isnan(made), np.isin(expected, [0.1, 255]))


def test_masks_of_all_kinds(tmp_path):
    from PIL import Image

    still = np.random.default_rng(0).random(SHAPE) < 0.5
    moving = np.random.default_rng(1).random((LENGTH, *SHAPE)) < 0.5
    np.save(tmp_path / "still.npy", still)
    np.save(tmp_path / "moving.npy", moving)
    Image.fromarray(still.astype(np.uint8) * 255).save(tmp_path / "still.png")
    for mask in (still, tmp_path / "still.npy", str(tmp_path / "still.png")):
        made = values(open_stream(numbers(), mask=mask))
        np.testing.assert_array_equal(np.isnan(made), np.broadcast_to(~still, made.shape))
    for mask in (moving, tmp_path / "moving.npy"):
        made = values(open_stream(numbers(), mask=mask))
        np.testing.assert_array_equal(np.isnan(made), ~moving)
    part = values(open_stream(numbers(), mask=moving, select={"time": "2:4", 0: "1:3"}))
    np.testing.assert_array_equal(np.isnan(part), ~moving[2:4, 1:3])


@pytest.mark.parametrize("mask", [np.ones((2, 2)), np.ones((3, *SHAPE)), "nowhere.npy", np.array(["a"])])
def test_bad_masks_are_refused(mask):
    with pytest.raises(StreamError):
        list(open_stream(numbers(), mask=mask).slices())


def stream_with(times, **options):
    import xarray

    array = xarray.DataArray(np.arange(len(times) * 2.0).reshape(-1, 2), {"time": times}, ("time", "x"))
    return open_stream(array, **options)


def test_late_and_repeated_slices():
    order = [0, 1, 4, 2, 4, 5]
    kept = stream_with(order)
    assert times(kept) == order
    assert any("1 slices of array came after a later one" in notice for notice in kept.notices)
    assert any("1 slices of array repeated a time" in notice for notice in kept.notices)
    assert times(stream_with(order, late="skip")) == [0, 1, 4, 5]
    with pytest.raises(StreamError, match=r"slice of 2 comes after 4"):
        times(stream_with(order, late="refuse"))


def test_gaps():
    stamps = moments()[[0, 1, 2, 5, 6]].astype("datetime64[ns]")
    kept = stream_with(stamps)
    assert len(times(kept)) == 5
    assert kept.notices == ["2 times of array had no slice and were passed over"]
    filled = stream_with(stamps, gaps="fill")
    np.testing.assert_array_equal(np.array(times(filled)), moments())
    assert np.isnan(values(filled)).all(axis=1).tolist() == [False] * 3 + [True] * 2 + [False] * 2
    with pytest.raises(StreamError, match="2 slices are missing between"):
        times(stream_with(stamps, gaps="refuse"))
    assert len(times(stream_with(stamps, gaps="fill", step="7min"))) == 6


@pytest.mark.parametrize("late", ["keep", "skip"])
def test_resuming_between_filled_slices(late):
    stamps = [0.0, 0.1, 0.2, 0.7000000001, 0.65, 0.8, 1.35]
    whole = list(stream_with(stamps, gaps="fill", late=late, step=0.1).slices())
    assert len(whole) > len(stamps)
    for done, item in enumerate(whole, start=1):
        rest = list(stream_with(stamps, gaps="fill", late=late, step=0.1).slices(item.position))
        assert [then.time for then in rest] == [then.time for then in whole[done:]]


@pytest.mark.parametrize(
    "options",
    [
        {"select": {"time": "1:6:2", "src": "1:3"}},
        {"select": {"time": "2024-05-01T12:10.."}, "resize": "2x2"},
        {"late": "skip", "missing_value": 3, "mask": np.arange(30).reshape(SHAPE) % 2},
        {"select": {"time": "::3"}, "gaps": "fill", "step": "5min"},
    ],
)
def test_resuming_with_options(options):
    whole = list(open_stream(labelled(), **options).slices())
    assert len(whole) > 2
    for done, item in enumerate(whole, start=1):
        rest = list(open_stream(labelled(), **options).slices(item.position))
        assert [then.time for then in rest] == [then.time for then in whole[done:]]
        for now, then in zip(rest, whole[done:], strict=True):
            np.testing.assert_array_equal(now.values, then.values)


def test_absurd_gaps_and_steps_are_refused():
    with pytest.raises(StreamError, match="more than"):
        times(stream_with([0, 1, 2, 10**9], gaps="fill"))
    with pytest.raises(StreamError, match="give step"):
        open_stream(numbers(), gaps="fill")
    for step in ("0s", -1, "soon", float("nan")):
        with pytest.raises(StreamError, match="step must be"):
            stream_with([0, 1], step=step)
    with pytest.raises(StreamError, match="step must fit"):
        times(stream_with([0, 1, 5], step="5min"))


def test_slices_without_a_valid_time_are_noticed():
    stream = stream_with([np.inf, 0.0, 1.0, np.nan, 3.0])
    assert len(times(stream)) == 5
    assert "2 slices of array had no valid time" in stream.notices


@pytest.mark.parametrize("source", [7, None, "no/such/file.npy", {"a": 1}, "/dev/null"])
def test_what_is_no_source_is_one_sentence(source):
    with pytest.raises(StreamError):
        open_stream(source)
