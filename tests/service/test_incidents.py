import json

import numpy as np
from level_service import Level
from service_of_tests import NPY, npy, service
from test_durability import crash_copy

from undertow.service.hosted import Models

LEVELS = Models(Level, Level.load)


def slice_of(number):
    x = 10 + np.random.default_rng(number).normal(size=(6, 5))
    if 60 <= number < 66:
        x[2] += 30
    return x


def pushed(client, first, last):
    stack = npy(np.stack([slice_of(number) for number in range(first, last)]))
    url = f"/api/streams/a/slices?fields=&sequence={first}&time=2024-05-01T00:00:00Z"
    assert client.post(url, content=stack, headers=NPY).status_code == 200


def told(file):
    return [(one["what"], one["incident"]["id"]) for one in map(json.loads, file.read_text().splitlines())]


def test_a_failing_row_is_one_incident_delivered_once_across_a_crash(tmp_path):
    (tmp_path / "first").mkdir()
    file = tmp_path / "told.jsonl"
    with service(tmp_path / "first", LEVELS, deliver=(str(file),), checkpoint_every=7) as client:
        client.put("/api/streams/a", json={"shape": [6, 5], "false_alarms": "1/10000", "step": 60})
        pushed(client, 0, 63)
        pushed(client, 62, 63)  # once more: comes back when everything is kept
        found = client.get("/api/streams/a/incidents?open=true").json()["incidents"]
        assert [one["rows"] for one in found] == [[[0, 2]]]
        after = crash_copy(tmp_path / "first", tmp_path / "second")
    with service(after, LEVELS, deliver=(str(file),), checkpoint_every=7) as client:
        pushed(client, 63, 120)
        number = client.get("/api/streams/a/incidents").json()["incidents"][-1]["id"]
        answer = client.post(f"/api/streams/a/incidents/{number}/feedback", json={"false_alarm": True})
        assert answer.status_code == 200
        client.post("/api/streams/a/slices?sequence=0", content=npy(slice_of(0)), headers=NPY)
        last = crash_copy(after, tmp_path / "third")
    with service(last, LEVELS) as client:  # feedback is part of the state
        pushed(client, 120, 121)
        assert client.get("/api/streams/a/incidents").json()["incidents"][-1]["false_alarm"] is True
    assert told(file)[:2] == [("opened", 1), ("closed", 1)]
    assert len(told(file)) == len(set(told(file)))


def test_a_sensor_that_falls_silent_is_told_until_it_is_heard_again(tmp_path):
    file = tmp_path / "told.jsonl"
    stack = 10 + np.random.default_rng(5).normal(size=(99, 6, 5))
    stack[60:95, 4, 1] = np.nan
    with service(tmp_path, LEVELS, deliver=(str(file),)) as client:
        client.put("/api/streams/a", json={"shape": [6, 5], "false_alarms": "1/1000", "step": 60})
        assert client.post("/api/streams/a/slices?fields=", content=npy(stack), headers=NPY).status_code == 200
        (found,) = client.get("/api/streams/a/incidents").json()["incidents"]
    assert (found["kind"], found["since"], found["until"], found["entries"]) == ("silent", 60, 94, [[4, 1]])
    assert told(file) == [("opened", 1), ("closed", 1)]
