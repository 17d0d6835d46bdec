import itertools
import re
import shutil
import sqlite3
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from service_of_tests import body, service
from stubs import StubTracker, slice_at

from undertow.service import inference
from undertow.service.hosted import Hosted, Models
from undertow.service.store import outbox
from undertow.service.store.opening import open_store
from undertow.service.store.outbox import StoreOutbox

SHAPE = {"shape": [3, 4]}
kept = Hosted.checkpoint


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


def test_what_took_long_to_learn_is_saved_early(tmp_path, monkeypatch):
    """By a clock that ticks whenever it is asked: a slice takes as long as saving does."""
    monkeypatch.setattr(inference, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    saved = []
    monkeypatch.setattr(
        Hosted, "checkpoint", lambda hosted, history: saved.append(hosted.next) or kept(hosted, history)
    )
    with service(tmp_path, checkpoint_every=1000) as client:
        client.put("/api/streams/a", json=SHAPE)
        pushed(client, range(25))
        assert saved == [1, 11, 21]


def test_a_step_of_several_streams_counts_for_each_what_it_took_of_it(tmp_path, noted, monkeypatch):
    """By a clock that ticks whenever it is asked: every step takes a second, however many streams it has."""
    monkeypatch.setattr(inference, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    with service(tmp_path, noted, checkpoint_every=10**6) as client:
        for name in "abcd":
            client.put(f"/api/streams/{name}", json=SHAPE)
            slices = {"slices": [body(n, sequence=n) for n in range(7)]}
            client.post(f"/api/streams/{name}/slices?async=1", json=slices)
        for name in "abcd":
            pushed(client, [7], name)
        sum_of_all = re.search(r"undertow_step_seconds_sum (\S+)", client.get("/metrics").text)
    assert sum(Noted.calls) == 32
    assert float(sum_of_all[1]) == pytest.approx(len(Noted.calls))


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
        client.get("/api/streams/c/export")  # answers come before others are let go; this one waits for that
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


def told_across_an_end(store):
    """What an outbox and a mark in this store say after it was closed."""
    with open_store(store) as found:
        box = StoreOutbox(found, ["x", "y"])
        assert box.add("one", {"what": "opened"})
        assert box.add("two", {"what": "closed"})
        box.done("one", "x")
        found.set_mark("where", "3")
        found.set_mark("where", "4")
    with open_store(store) as found:
        box = StoreOutbox(found, ["x", "y"])
        assert not box.add("one", {"what": "opened"})
        assert box.pending("x") == [("two", {"what": "closed"})]
        assert [key for key, _ in box.pending("y")] == ["one", "two"]
        assert StoreOutbox(found, ["later"]).pending("later") == []
        assert (found.mark("where"), found.mark("elsewhere")) == ("4", None)


def test_what_is_still_to_be_told_is_in_the_store(tmp_path, monkeypatch):
    told_across_an_end(str(tmp_path / "s.db"))
    monkeypatch.setattr(outbox, "KEYS", 10)
    with open_store(str(tmp_path / "many.db")) as found:
        box = StoreOutbox(found, ["x"])
        assert all(box.add(str(number), {}) for number in range(20))
        assert not box.add("19", {})
        assert box.add("0", {})  # so long ago that it is not known any more


def test_a_store_is_for_one_service(tmp_path):
    from undertow.service.errors import ServiceError

    with service(tmp_path), pytest.raises(ServiceError, match="in use by another service"), service(tmp_path):
        pass


class Noted(StubTracker):
    """Says with whom it was stepped; fails where it is asked to."""

    calls: list = []  # noqa: RUF012
    poison = None
    gate = threading.Event()

    @classmethod
    def together(cls, models, slices, times):
        cls.calls.append(len(models))
        assert cls.gate.wait(30)
        if any(values[0, 0] == cls.poison for values in slices):
            raise RuntimeError("a defect")
        return [model.update(values) for model, values in zip(models, slices, strict=True)]


@pytest.fixture
def noted():
    Noted.calls, Noted.poison = [], None
    Noted.gate.set()
    return Models(Noted, Noted.load, Noted.together)


def test_streams_that_wait_are_stepped_together_each_in_its_order(tmp_path, noted):
    names = [f"s{n}" for n in range(5)]
    with service(tmp_path, noted, checkpoint_every=3) as client:
        for name in names:
            client.put(f"/api/streams/{name}", json=SHAPE)
        client.put("/api/streams/other", json={"shape": [2, 2]})
        for name in names:
            slices = {"slices": [body(n, sequence=n) for n in range(7)]}
            client.post(f"/api/streams/{name}/slices?async=1", json=slices)
        client.post("/api/streams/other/slices", json={"values": [[1, 2], [3, 4]]})
        model = StubTracker()
        expected = [model.update(slice_at(n)).mean for n in range(8)][-1]
        for name in names:
            answer = client.post(f"/api/streams/{name}/slices", json=body(7, sequence=7)).json()["results"][0]
            np.testing.assert_array_equal(answer["mean"], expected)
            assert client.get(f"/api/streams/{name}/series").json()["sequence"][:7] == list(range(7))
        after = crash_copy(tmp_path, tmp_path / "crashed")
    assert sum(Noted.calls) == 5 * 8 + 1
    Noted.calls = []
    with service(after, noted, checkpoint_every=100) as client:
        for name in names:
            assert client.get(f"/api/streams/{name}").json()["next"] == 8
        pushed(client, [8], "s0")
        assert max(Noted.calls) > 1  # they catch up together, too


@pytest.mark.parametrize(
    ("names", "together", "calls"),
    [("abc", 64, [1, 1, 1]), ("abcd", 64, [4]), ("abcd", 2, [2, 2]), ("abcd", 1, [1, 1, 1, 1])],
)
def test_too_few_that_wait_are_stepped_one_by_one(tmp_path, noted, names, together, calls):
    with service(tmp_path, replace(noted, fewest=4), together=together) as client:
        client.put("/api/streams/other", json={"shape": [2, 2]})
        for name in names:
            client.put(f"/api/streams/{name}", json=SHAPE)
        Noted.gate.clear()  # the other one is being learned until all have a slice
        client.post("/api/streams/other/slices?async=1", json={"values": [[1, 2], [3, 4]]})
        for name in names:
            client.post(f"/api/streams/{name}/slices?async=1", json=body(0))
        Noted.gate.set()
        for name in names:
            client.get(f"/api/streams/{name}/export")
    assert Noted.calls == [1, *calls]


def test_slices_that_take_long_come_in_turn_with_those_of_others(tmp_path, noted):
    """Where others wait, one at a time; else many together."""
    late = replace(noted, long=lambda model: model.steps == 1)
    with service(tmp_path, late) as client:
        for name in ("other", *"abcdxyz"):
            client.put(f"/api/streams/{name}", json=SHAPE)
        for name in "abcd":
            pushed(client, [0], name)
        Noted.calls = []

        def waits(names, sequence):
            for name in names:
                client.post(f"/api/streams/{name}/slices?async=1", json=body(sequence, sequence=sequence))

        Noted.gate.clear()
        waits(["other"], 0)
        waits("abcd", 1)
        waits("xyz", 0)
        Noted.gate.set()
    # The other one; one of the four; the three who would not wait; the rest of the four, beside whom nobody waits.
    assert Noted.calls == [1, 1, 3, 3]


def test_a_defect_of_one_stream_does_not_stop_those_it_is_stepped_with(tmp_path, noted):
    with service(tmp_path, noted) as client:
        for name in "abc":
            client.put(f"/api/streams/{name}", json=SHAPE)
            pushed(client, [0], name)
        Noted.poison = 99.0
        bad = body(1)
        bad["values"][0][0] = 99.0
        client.post("/api/streams/b/slices?async=1", json=bad)
        for name in "ac":
            client.post(f"/api/streams/{name}/slices?async=1", json={"slices": [body(n) for n in (1, 2)]})
        for name in "ac":
            assert pushed(client, [3], name).status_code == 200
            model = StubTracker()
            expected = [model.update(slice_at(n)).mean for n in range(5)][-1]
            answer = client.post(f"/api/streams/{name}/slices", json=body(4)).json()["results"][0]
            np.testing.assert_array_equal(answer["mean"], expected)
