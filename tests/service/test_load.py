"""`make load` in small: what it finds, and that it would find what is wrong."""

import numpy as np
import pytest
from ports import free_port
from service_of_tests import STUBS, body, service
from stubs import slice_at

from undertow.service import load, load_check

GOOD = {
    "lost": 0,
    "twice": 0,
    "not_kept": 0,
    "largest_difference": 1e-7,
    "streams_whose_incidents_differ": 0,
    "deliveries_missing": 0,
    "delivered_twice": 0,
}


def test_every_promise_counts():
    assert load.broken(GOOD) == []
    for name in GOOD:
        assert load.broken(GOOD | {name: 1}) != []
    assert load.broken(GOOD | {"largest_difference": float("nan")}) != []


def test_other_results_and_slices_that_are_gone_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(load_check, "trackers", lambda: STUBS)
    with service(tmp_path) as client:
        for name in "ab":
            client.put(f"/api/streams/{name}", json={"shape": [3, 4]})
            client.post(f"/api/streams/{name}/slices", json={"slices": [body(n) for n in range(6)]})

    def given(stream, number):
        return "2024-05-01T00:00:00Z", slice_at(number) + (stream == 1 and number == wrong)

    def found(learned=(6, 6)):
        return load_check.compared(str(tmp_path / "streams.db"), "ab", learned, given)

    wrong = None
    same = found()
    assert (same["compared"], same["not_kept"], same["streams_whose_incidents_differ"]) == (12, 0, 0)
    assert same["largest_difference"] < 1e-6
    assert found((6, 8))["not_kept"] == 2
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
    ]
    found = load.main(arguments)
    assert load.broken(found) == []
    assert found["compared"] >= found["slices"] > 0
    assert found["deliveries_expected"] >= 2
    tried("service killed under load", 2)
