"""Times: from every library's types and from texts, through JSON and back, steps between them."""

import datetime
import json

import numpy as np
import pytest

from undertow.sources import StreamError
from undertow.sources.times import are_ordered, from_json, is_unknown, parse_step, parse_time, plain_time, to_json
from undertow.sources.times import usual_step as step_of


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, 1),
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.timedelta64(1500, "ms"), 1.5),
        (b"noon", "noon"),
        (np.datetime64("2024-05-01"), np.datetime64("2024-05-01")),
        (datetime.date(2024, 5, 1), "2024-05-01"),
    ],
)
def test_plain_times(value, plain):
    assert plain_time(value) == plain
    assert type(plain_time(value)) is type(plain)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-05-01", np.datetime64("2024-05-01T00:00", "us")),
        ("2024-05-01T12:30:00+02:00", np.datetime64("2024-05-01T10:30", "us")),
        ("2024-05-99", "2024-05-99"),
        ("frame7", "frame7"),
        (7, 7),
    ],
)
def test_texts_become_dates_where_they_are_dates(text, time):
    assert parse_time(text) == time


@pytest.mark.parametrize("time", [None, 3, 0.25, "a", np.datetime64("2024-05-01T12:00", "5m")])
def test_times_survive_json(time):
    back = from_json("a.npy", json.loads(json.dumps(to_json(time))))
    assert back == time
    assert getattr(back, "dtype", None) == getattr(time, "dtype", None)


@pytest.mark.parametrize("wrong", [{}, {"datetime64": "us"}, {"datetime64": "us|1", "count": "x"}])
def test_a_time_of_another_source_is_refused(wrong):
    with pytest.raises(StreamError, match=r"a\.npy from belongs to another source"):
        from_json("a.npy", wrong)


def test_order_is_defined_among_dates_and_among_numbers():
    date = np.datetime64("2024-05-01")
    assert are_ordered(1, 2.5)
    assert are_ordered(date, date)
    assert not are_ordered(1, date)
    assert not are_ordered("a", "b")
    assert is_unknown(np.datetime64("NaT"))
    assert is_unknown(float("nan"))
    assert not is_unknown(0)


@pytest.mark.parametrize(
    ("given", "step"), [("5min", np.timedelta64(5, "m")), ("30 s", np.timedelta64(30, "s")), ("0.5", 0.5), (2, 2)]
)
def test_steps(given, step):
    assert parse_step(given) == step


def test_the_usual_step_is_the_median_of_the_steps_forward():
    assert step_of(np.array([0, 1, 2, 7, 3, 4])) == 1
    assert step_of(np.array([0, 1])) is None
    assert step_of(np.array(["a", "b", "c"])) is None
