"""Times out of order, repeated, missing."""

import numpy as np
import pytest
from stream_files import moments, numbers, values

from undertow.sources import StreamError, open_stream


def times(stream):
    return [item.time for item in stream.slices()]


def stream_with(times, **options):
    import xarray

    array = xarray.DataArray(np.arange(len(times) * 2.0).reshape(-1, 2), {"time": times}, ("time", "x"))
    return open_stream(array, **options)


def test_late_and_repeated_slices():
    order = [0, 1, 4, 2, 4, 5]
    kept = stream_with(order)
    assert times(kept) == order
    assert any(
        "1 slice of array came after a later one and was kept where it came" in notice for notice in kept.notices
    )
    assert any("1 slice of array repeated a time and was kept where it came" in notice for notice in kept.notices)
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
    items = list(stream_with(stamps, gaps="fill", late=late, step=0.1).slices())
    assert len(items) > len(stamps)
    for done, item in enumerate(items, start=1):
        rest = list(stream_with(stamps, gaps="fill", late=late, step=0.1).slices(item.position))
        assert [then.time for then in rest] == [then.time for then in items[done:]]


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
