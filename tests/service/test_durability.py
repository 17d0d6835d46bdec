import shutil
import sqlite3

import numpy as np
import pytest
from service_of_tests import body, service
from stubs import StubTracker, slice_at

SHAPE = {"shape": [3, 4]}


def pushed(client, numbers, name="a"):
    return client.post(f"/api/streams/{name}/slices", json={"slices": [body(n, sequence=n) for n in numbers]})


def crash_copy(folder, other):
    """The store as a crash at this moment would leave it: whatever is on the disk, nothing closed."""
    other.mkdir()
    for file in folder.glob("streams.db*"):
        (shutil.copytree if file.is_dir() else shutil.copy)(file, other / file.name)
    return other


@pytest.mark.parametrize("every", [1, 3, 100])
def test_after_a_crash_every_stream_goes_on_exactly_where_it_was(tmp_path, every):
    (tmp_path / "first").mkdir()
    with service(tmp_path / "first", checkpoint_every=every) as client:
        for name in ("a", "b"):
            client.put(f"/api/streams/{name}", json=SHAPE)
        pushed(client, range(7))
        client.post("/api/streams/b/slices?async=1", json={"slices": [body(n) for n in range(5)]})
        after = crash_copy(tmp_path / "first", tmp_path / "second")
    with service(after, checkpoint_every=every) as client:
        assert [one["next"] for one in client.get("/api/streams").json()["streams"]] == [7, 5]
        models = {"a": StubTracker(), "b": StubTracker()}
        for name, seen in (("a", 7), ("b", 5)):
            for n in range(seen):
                models[name].update(slice_at(n))
            answer = client.post(f"/api/streams/{name}/slices", json=body(seen, sequence=seen)).json()["results"][0]
            np.testing.assert_array_equal(answer["mean"], models[name].update(slice_at(seen)).mean)
            series = client.get(f"/api/streams/{name}/series").json()["sequence"]
            assert series[:seen] == list(range(seen))


def test_an_orderly_end_leaves_nothing_to_learn_again(tmp_path):
    with service(tmp_path) as client:
        client.put("/api/streams/a", json=SHAPE)
        pushed(client, range(4))
    with sqlite3.connect(tmp_path / "streams.db") as found:
        assert found.execute("SELECT COUNT(*) FROM slices").fetchone() == (0,)
        assert found.execute("SELECT next FROM checkpoints").fetchone() == (4,)
    with service(tmp_path) as client:
        assert client.get("/readyz").json()["catching_up"] == 0
        assert pushed(client, [4]).json()["next"] == 5


def test_retries_are_safe(client):
    first = pushed(client, range(3)).json()["results"]
    again = pushed(client, range(1, 5)).json()
    assert [one["duplicate"] for one in again["results"]] == [True, True, False, False]
    assert again["next"] == 5
    np.testing.assert_allclose(again["results"][0]["mean"], first[1]["mean"], rtol=1e-6)
    gap = pushed(client, [7])
    assert gap.status_code == 409
    assert "waits for slice 5" in gap.json()["error"]
    assert (
        client.post("/api/streams/a/slices", json={"slices": [body(5, sequence=5), body(7, sequence=7)]}).status_code
        == 422
    )


def test_models_that_do_not_fit_into_memory_wait_in_the_store(tmp_path):
    with service(tmp_path, resident_bytes=1) as client:
        models = {name: StubTracker() for name in "abc"}
        for name in models:
            client.put(f"/api/streams/{name}", json=SHAPE)
        for n in range(5):
            for name, model in models.items():
                answer = pushed(client, [n], name).json()["results"][0]
                np.testing.assert_array_equal(answer["mean"], model.update(slice_at(n)).mean)
        assert "undertow_streams_resident 1.0" in client.get("/metrics").text


@pytest.mark.slow
def test_the_past_is_bounded(tmp_path):
    with service(tmp_path, history=5, checkpoint_every=2) as client:
        client.put("/api/streams/a", json=SHAPE)
        pushed(client, range(20))
        pushed(client, [0])
        assert len(client.get("/api/streams/a/series").json()["sequence"]) <= 6


def test_a_store_that_cannot_be_written_acknowledges_nothing(tmp_path, monkeypatch):
    from undertow.service.store.sql import SqlStore

    with service(tmp_path) as client:
        client.put("/api/streams/a", json=SHAPE)

        def full(self, writes):
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(SqlStore, "write", full)
        assert pushed(client, [0]).status_code == 503
        assert client.get("/readyz").status_code == 503


def test_a_store_is_for_one_service(tmp_path):
    from undertow.service.errors import ServiceError

    with service(tmp_path), pytest.raises(ServiceError, match="in use by another service"), service(tmp_path):
        pass
