"""`make load` in small: what it finds, and that it would find what is wrong."""

import numpy as np
import pytest
from ports import free_port
from service_of_tests import STUBS, body, service
from stubs import slice_at

from undertow.service import load, load_check, load_run

GOOD = {
    "lost": 0,
    "twice": 0,
    "streams_compared": 2,
    "not_kept": 0,
    "largest_difference": 0.2,
    "typical_of_worst_stream": 0.01,
    "streams_whose_incidents_differ": 0,
    "deliveries_expected": 3,
    "deliveries_missing": 0,
    "delivered_twice": 0,
    "together": 64,
}


def test_every_promise_counts():
    assert load.broken(GOOD) == []
    some = {"streams_compared", "deliveries_expected"}
    for name in GOOD.keys() - {"largest_difference", "together"}:
        assert load.broken(GOOD | {name: int(name not in some)}) != []
    assert load.broken(GOOD | {"typical_of_worst_stream": float("nan")}) != []
    # Streams that were stepped one by one must be the same to the bit.
    assert load.broken(GOOD | {"together": 1}) != []
    assert load.broken(GOOD | {"together": 1, "largest_difference": 0.0}) == []


def test_slices_stay_what_they_were_when_rows_begin_to_fail():
    run = load_run.Load(5, (6, 5), "load.db", 1)
    first = [load_run.slice_of(0, number, (6, 5), run.failing) for number in range(50)]
    later = [load_run.slice_of(0, number, (6, 5), 50) for number in range(53)]
    np.testing.assert_array_equal(first, later[:50])
    assert not np.array_equal(later[51], load_run.slice_of(0, 51, (6, 5), run.failing), equal_nan=True)


def test_other_results_and_slices_that_are_gone_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(load_check, "trackers", lambda: STUBS)
    with service(tmp_path) as client:
        for name in "ab":
            client.put(f"/api/streams/{name}", json={"shape": [3, 4]})
            client.post(f"/api/streams/{name}/slices", json={"slices": [body(n) for n in range(6)]})

    def given(stream, number):
        return "2024-05-01T00:00:00Z", slice_at(number) + (stream == 1 and number == wrong)

    def found(learned=(6, 6), seconds=60.0):
        return load_check.compared(str(tmp_path / "streams.db"), "ab", learned, given, seconds=seconds)

    wrong = None
    same = found()
    assert (same["streams_compared"], same["compared"], same["not_kept"]) == (2, 12, 0)
    assert same["streams_whose_incidents_differ"] == 0
    assert same["largest_difference"] < 1e-6
    assert found((6, 8))["not_kept"] == 2
    assert found(seconds=-1.0)["streams_compared"] == 0  # no time is left
    wrong = 3
    assert found()["largest_difference"] == np.inf


@pytest.mark.full
def test_some_streams_killed_twice(tried):
    arguments = [
        "--streams",
        "6",
        "--seconds",
        "20",
        "--kills",
        "2",
        "--shape",
        "6,5",
        "--port",
        str(free_port()),
        "--known",
        "42",
        "--paced",
        "4",
        "--every",
        "2",
        "--together",
        "1",
    ]
    found = load.main(arguments)
    assert load.broken(found) == []
    assert found["compared"] >= found["slices"] > 0
    assert found["paced_slices"] >= 12  # at their moments, done or not
    assert found["streams_compared"] == 6
    assert found["deliveries_expected"] >= 2
    tried("service killed under load", 2)
