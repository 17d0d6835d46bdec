"""Parts of modes and of time."""

import numpy as np
import pytest
from stream_files import TARGETS, labelled, numbers, values

from undertow.sources import StreamError, open_stream


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


def test_labels_follow_the_selection():
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
