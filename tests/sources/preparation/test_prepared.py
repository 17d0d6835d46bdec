"""Slices as they are delivered: missing values, and resuming with every option."""

import numpy as np
import pytest
from stream_files import SHAPE, labelled, numbers, values

from undertow.sources import StreamError, open_stream


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", ">f4"])
def test_missing_values_in_the_precision_of_the_data(dtype):
    x = np.array([[[1, 2], [255, 0]]]).astype(dtype)
    if x.dtype.kind == "f":
        x[0, 0, 0] = 0.1
    made = values(open_stream(x, missing_value="0.1,255,-1"))
    expected = np.array([[[0.1, 2], [255, 0]]]) if x.dtype.kind == "f" else np.array([[[1, 2], [255, 0]]])
    np.testing.assert_array_equal(np.isnan(made), np.isin(expected, [0.1, 255]))


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
    items = list(open_stream(labelled(), **options).slices())
    assert len(items) > 2
    for done, item in enumerate(items, start=1):
        rest = list(open_stream(labelled(), **options).slices(item.position))
        assert [then.time for then in rest] == [then.time for then in items[done:]]
        for now, then in zip(rest, items[done:], strict=True):
            np.testing.assert_array_equal(now.values, then.values)


def test_half_a_character_in_a_label_is_refused_or_replaced():
    labels = {"mode_2": ["a", "b\ud800", "c", "d", "e"]}
    with pytest.raises(StreamError, match=r"the label 'b\\ud800' in mode_2, .* --on-bad skip"):
        open_stream(numbers(), labels=labels)
    stream = open_stream(numbers(), labels=labels, on_bad="skip")
    assert stream.labels[1] == ("a", "b?", "c", "d", "e")
    assert any("question mark" in notice for notice in stream.notices)
