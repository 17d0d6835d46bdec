"""Labels that come: a stream with free places, and slices whose rows are named."""

import numpy as np
import pytest
from level_service import Level
from service_of_tests import service
from stubs import StubTracker
from test_durability import crash_copy

from undertow.client import Client
from undertow.inputs.labels import growing
from undertow.service import spec
from undertow.service.hosted import Models

FREE = {"shape": [4, 2], "dims": ["src", "way"], "labels": [["a", "b", None, None], ["in", "out"]]}


def client_of(asked):
    return Client("http://127.0.0.1:8765", transport=asked._transport)


def push(asked, values, labels, **more):
    content = {"values": values, "labels": labels, **more}
    return asked.post("/api/streams/r/slices?fields=data,mean", json=content)


def test_a_router_that_appears_takes_a_free_place_for_good(tmp_path):
    """Through a crash, too."""
    (tmp_path / "first").mkdir()
    with service(tmp_path / "first") as asked:
        assert asked.put("/api/streams/r", json=FREE).status_code == 201
        answer = push(asked, [[1, 2], [3, 4]], [["b", "a"], None]).json()["results"][0]
        assert answer["data"] == [[3, 4], [1, 2], [None, None], [None, None]]
        answer = push(asked, [[90, 6]], [["new"], ["out", "in"]]).json()["results"][0]
        assert answer["data"] == [[None, None], [None, None], [6, 90], [None, None]]
        assert asked.get("/api/streams/r").json()["labels"] == [["a", "b", "new", None], ["in", "out"]]
        assert asked.put("/api/streams/r", json=FREE).status_code == 200  # who asks again need not know who has come
        other = {**FREE, "labels": [["a", "c", None, None], ["in", "out"]]}
        assert asked.put("/api/streams/r", json=other).status_code == 409
        after = crash_copy(tmp_path / "first", tmp_path / "second")
    with service(after) as asked:
        assert asked.get("/api/streams/r").json()["labels"] == [["a", "b", "new", None], ["in", "out"]]
        alerts = push(asked, [[6000, 90]], [["new"], None]).json()["results"][0]["alerts"]
        assert [one["labels"] for one in alerts if one["position"] == [2, 0]] == [["new", "in"]]
        model = StubTracker()
        for x in ([[3, 4], [1, 2]], [[np.nan] * 2, [np.nan] * 2, [6, 90]], [[np.nan] * 2, [np.nan] * 2, [6000, 90]]):
            whole = np.full((4, 2), np.nan)
            whole[: len(x)] = x
            expected = model.update(whole)
        np.testing.assert_allclose(asked.get("/api/streams/r/slices/2").json()["mean"], expected.mean, rtol=1e-6)


@pytest.mark.slow
def test_incidents_name_who_has_come(tmp_path):
    labels = [["a", "b", "c", "d", None, None], list("vwxyz")]
    with service(tmp_path, Models(Level, Level.load)) as asked:
        asked.put(
            "/api/streams/r", json={"shape": [6, 5], "dims": ["src", "way"], "labels": labels, "false_alarms": "1/100"}
        )
        draw = np.random.default_rng(0)
        slices = []
        for number in range(102):
            rows = draw.normal(10, 1, (5, 5))
            rows[4] += 400 * (number >= 100)
            slices.append({"values": rows.tolist(), "labels": [["a", "b", "c", "d", "new"], None]})
        asked.post("/api/streams/r/slices", json={"slices": slices})
        (found,) = asked.get("/api/streams/r/incidents").json()["incidents"]
        assert found["where"] == "src new"


def test_without_a_place_nothing_is_accepted_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(spec, "MOST_LABELS", 4)
    with service(tmp_path) as asked:
        asked.put("/api/streams/r", json=FREE)
        refused = push(asked, [[1, 2]] * 5, [list("abcde"), None])
        assert refused.status_code == 422
        assert refused.json()["error"] == "mode src may have 4 labels, and would have 5"
        assert asked.get("/api/streams/r").json()["next"] == 0
        assert asked.get("/api/streams/r").json()["labels"] == FREE["labels"]
        named = {"shape": [2], "dims": ["src"], "labels": [["a", "b"]]}  # nobody is to come
        asked.put("/api/streams/named", json=named)
        refused = asked.post("/api/streams/named/slices", json={"values": [1], "labels": [["c"]]})
        assert refused.status_code == 422
        assert "mode src has no free place for the label 'c': its 2 are taken" in refused.json()["error"]


def test_a_stream_of_no_more_entries_than_allowed_does_not_grow(tmp_path):
    with service(tmp_path, entries=10) as asked:
        asked.put("/api/streams/r", json=FREE)
        refused = push(asked, [[1, 2]] * 6, [list("abcdef"), None])
        assert refused.status_code == 422
        assert refused.json()["error"] == "slices may have 10 entries, and would have 12 with these labels"


def test_where_no_place_is_left_the_mode_grows_without_a_restart(tmp_path):
    """And a crash changes nothing; the past has the shape that it had, and who knows the former shape may go on."""
    models = Models(Level, Level.load)
    (tmp_path / "first").mkdir()
    with service(tmp_path / "first", models, checkpoint_every=3) as asked:
        asked.put("/api/streams/r", json=FREE)
        for number in range(4):
            push(asked, [[1, 2 + number]] * 4, [list("abcd"), None])
        answer = push(asked, [[7, 8], [1, 2]], [["e", "a"], None]).json()["results"][0]
        assert answer["data"] == [[1, 2], *[[None, None]] * 3, [7, 8], [None, None]]
        known = asked.get("/api/streams/r").json()
        assert known["shape"] == [6, 2]
        assert known["labels"][0] == ["a", "b", "c", "d", "e", None]
        assert known["grown"] == [[0, [4, 2]], [4, [6, 2]]]
        assert asked.put("/api/streams/r", json=FREE).status_code == 200  # who asks again need not know
        whole = asked.post("/api/streams/r/slices?fields=data", json={"values": [[1, 2]] * 4}).json()["results"][0]
        assert whole["data"] == [*[[1, 2]] * 4, *[[None, None]] * 2]
        assert asked.post("/api/streams/r/slices", json={"values": [[1, 2]] * 5}).status_code == 422
        after = crash_copy(tmp_path / "first", tmp_path / "second")
        wanted = push(asked, [[7, 9]], [["e"], None]).json()["results"][0]
        past = asked.get("/api/streams/r/slices/3?fields=data").json()
        assert past["data"] == [[1, 5]] * 4
        cell = asked.get("/api/streams/r/cell?position=0,1").json()
        assert cell["data"] == [2, 3, 4, 5, 2, 2, None]
        assert asked.get("/api/streams/r/cell?position=4,1").json()["data"] == [8, None, 9]
        assert asked.get("/api/streams/r/cell?position=0,1&most=4").json()["data"] == [5, 2, 2, None]
        frame = asked.get("/api/streams/r/frames/0").content
        assert len(frame) == 4 + int.from_bytes(frame[:4], "little") + 4 * 4 * 12
    with service(after, models) as asked:
        assert asked.get("/api/streams/r").json()["shape"] == [6, 2]
        again = push(asked, [[7, 9]], [["e"], None]).json()["results"][0]
        assert again["sequence"] == 6
        assert again["mean"] == wanted["mean"]


class Forgets(Level):
    """A model that can forget rows."""

    def forget(self, rows):
        self.mean[rows[0]] = 0
        self.spread[rows[0]] = 1


def test_who_is_silent_for_long_leaves_the_place_to_others(tmp_path, monkeypatch):
    """And a crash right afterwards changes nothing."""
    monkeypatch.setattr(growing, "SILENT", 3)
    monkeypatch.setattr(spec, "MOST_LABELS", 4)
    models = Models(Forgets, Forgets.load)
    (tmp_path / "first").mkdir()
    with service(tmp_path / "first", models) as asked:
        asked.put("/api/streams/r", json=FREE)
        push(asked, [[1, 2]] * 4, [list("abcd"), None])
        for _ in range(2):
            push(asked, [[1, 2]] * 2, [["a", "b"], None])
            assert push(asked, [[5, 5]], [["e"], None]).status_code == 422
        push(asked, [[1, 2]] * 2, [["a", "d"], None])
        answer = push(asked, [[5, 7]], [["e"], None]).json()["results"][0]
        assert answer["data"][2] == [5, 7]  # c was not heard of in the last three
        assert asked.get("/api/streams/r").json()["labels"][0] == ["a", "b", "e", "d"]
        np.testing.assert_allclose(answer["mean"][2], [0.3, 0.3])  # what was known of c would have said 1.3 and 2.3
        after = crash_copy(tmp_path / "first", tmp_path / "second")
        wanted = push(asked, [[5, 7]], [["e"], None]).json()["results"][0]
    with service(after, models) as asked:
        assert asked.get("/api/streams/r").json()["labels"][0] == ["a", "b", "e", "d"]
        again = push(asked, [[5, 7]], [["e"], None]).json()["results"][0]
        assert again["sequence"] == 5
        assert again["mean"] == wanted["mean"]


@pytest.mark.parametrize(("values", "labels", "message"), [
    ([[1, 2]], [["a", "b"], None], "a row for each label"),
    ([[1, 2], [3, 4]], [["a", "a"], None], "was given one label twice"),
    ([[1, 2]], [["a"]], "labels must be 2 lists"),
    ([[1, 2]], [[7], None], "labels must be texts"),
    ([[1, 2]], "a", "labels must be 2 lists"),
])  # fmt: skip
def test_labels_that_do_not_fit_are_refused(tmp_path, values, labels, message):
    with service(tmp_path) as asked:
        asked.put("/api/streams/r", json=FREE)
        answer = push(asked, values, labels)
        assert answer.status_code == 422
        assert message in answer.json()["error"]


def test_the_client_names_rows(tmp_path):
    with service(tmp_path) as asked:
        client = client_of(asked)
        client.create("r", (4, 2), labels=FREE["labels"])
        x = np.array([[1, np.nan], [3, 4]])
        result = client.push("r", x, labels=[["new", "a"], None], fields="data")["results"][0]
        assert result["data"] == [[3, 4], [None, None], [1, None], [None, None]]
        results = client.push("r", np.stack([x, x]), labels=[["new", "a"], None], sequence=1)["results"]
        assert [one["sequence"] for one in results] == [1, 2]
