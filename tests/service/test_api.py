import re
import struct

import numpy as np
import orjson
import pytest
from pages import ROOT
from service_of_tests import NPY, as_lists, body, npy
from stubs import StubTracker, slice_at

from undertow.service import bodies, schemas, times


def test_a_stream_is_created_listed_shown_and_deleted(client):
    again = client.put(
        "/api/streams/a", json={"shape": [3, 4], "dims": ["site", "hour"], "labels": [["x", "y", "z"], None]}
    )
    assert again.status_code == 200
    assert client.put("/api/streams/b", json={"shape": [7]}).status_code == 201
    listed = schemas.StreamList.model_validate_json(client.get("/api/streams").content)
    assert [one.name for one in listed.streams] == ["a", "b"]
    assert client.delete("/api/streams/b").status_code == 204
    assert client.get("/api/streams/b").status_code == 404
    assert client.put("/api/streams/a", json={"shape": [4, 3]}).status_code == 409


def test_json_numpy_and_arrow_give_what_the_model_gives(client):
    pa = pytest.importorskip("pyarrow")
    slices = [slice_at(index) for index in range(6)]
    answers = [client.post("/api/streams/a/slices", json={"values": as_lists(slices[0]), "time": "2024-05-01T00:00"})]
    answers.append(client.post("/api/streams/a/slices", json={"slices": [{"values": as_lists(slices[1])}]}))
    answers.append(client.post("/api/streams/a/slices", content=npy(slices[2]), headers=NPY))
    answers.append(client.post("/api/streams/a/slices", content=npy(np.stack(slices[3:5])), headers=NPY))
    flat = [[None if np.isnan(x) else x for x in slices[5].ravel()]]
    table, sink = pa.table({"values": flat, "sequence": [5]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    kind = {"content-type": "application/vnd.apache.arrow.stream"}
    answers.append(client.post("/api/streams/a/slices", content=sink.getvalue().to_pybytes(), headers=kind))
    results = [one for answer in answers for one in schemas.PushAnswer.model_validate_json(answer.content).results]
    model = StubTracker()
    for result, values in zip(results, slices, strict=True):
        expected = model.update(values)
        np.testing.assert_allclose(result.mean, expected.mean)
        np.testing.assert_allclose(result.outlier_probability, expected.outlier_probability)
    assert [one.sequence for one in results] == list(range(6))
    assert results[0].time == "2024-05-01T00:00:00Z"


def test_named_rows_come_by_arrow_as_by_json(client):
    pa = pytest.importorskip("pyarrow")
    rows = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
    labels = [["z", "x"], None]
    given = {"values": [rows[0] + rows[1]], "labels": [labels]}
    table, sink = pa.table(given), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    kind = {"content-type": "application/vnd.apache.arrow.stream"}
    url = "/api/streams/a/slices?fields=data"
    by_arrow = client.post(url, content=sink.getvalue().to_pybytes(), headers=kind).json()["results"][0]
    by_json = client.post(url, json={"values": rows, "labels": labels}).json()["results"][0]
    assert by_arrow["data"] == by_json["data"] == [rows[1], [None] * 4, rows[0]]


def test_the_documentation_is_of_a_kind_that_tools_read(client):
    """Lists of unlike items are beyond many of them, and beyond the fuzzing of this service."""
    assert "prefixItems" not in client.get("/openapi.json").text


def test_the_documentation_of_a_slice_names_all_that_is_read(client):
    content = client.get("/openapi.json").json()["paths"]["/api/streams/{name}/slices"]["post"]["requestBody"]
    one = content["content"]["application/json"]["schema"]["anyOf"][0]
    assert set(one["properties"]) == bodies._FIELDS


def test_alerts_carry_labels_and_only_they_come_when_asked(client):
    answer = client.post("/api/streams/a/slices?alerts_only=true", json={"slices": [body(n) for n in range(8)]}).json()
    assert 0 < len(answer["results"]) < 8
    for one in answer["results"]:
        assert "mean" not in one
        for alert in one["alerts"]:
            site, hour = alert["position"]
            assert alert["labels"] == ["xyz"[site], str(hour)]
            assert alert["probability"] >= 0.5
            assert alert["value"] == pytest.approx(slice_at(one["sequence"])[site, hour])


def test_asynchronous_slices_are_learned_later(client):
    answer = client.post("/api/streams/a/slices?async=1", json={"slices": [body(n) for n in range(4)]})
    assert answer.status_code == 202
    assert all("numbers" not in one for one in answer.json()["results"])
    assert client.post("/api/streams/a/slices", json=body(4)).json()["results"][0]["sequence"] == 4
    assert client.get("/api/streams/a/export").status_code == 200


def test_what_was_answered_can_be_read_at_once(client):
    for number in range(20):
        client.post("/api/streams/a/slices", json=body(number))
        assert client.get(f"/api/streams/a/slices/{number}").status_code == 200
        assert client.get("/api/streams/a").json()["newest"]["sequence"] == number
        assert client.get(f"/api/streams/a/series?first={number}").json()["sequence"] == [number]


def test_the_past_can_be_read(client):
    client.post("/api/streams/a/slices", json={"slices": [body(n) for n in range(5)]})
    series = schemas.Series.model_validate_json(client.get("/api/streams/a/series?first=1&last=4").content)
    assert series.sequence == [1, 2, 3]
    assert len(series.numbers["rank"]) == 3
    one = schemas.SliceResult.model_validate_json(client.get("/api/streams/a/slices/2?fields=data,mean").content)
    np.testing.assert_allclose(np.array(one.data, float), slice_at(2).astype("f4"))
    cell = schemas.Cell.model_validate_json(client.get("/api/streams/a/cell?position=1,2").content)
    expected = [slice_at(n)[1, 2] for n in range(5)]
    np.testing.assert_allclose(np.array(cell.data, float), np.float32(expected))
    assert cell.labels == ["y", "2"]
    frame = client.get("/api/streams/a/frames/newest").content
    length = struct.unpack("<I", frame[:4])[0]
    assert orjson.loads(frame[4 : 4 + length])["sequence"] == 4
    np.testing.assert_array_equal(np.frombuffer(frame[4 + length :], "<f4")[:12], slice_at(4).astype("f4").ravel())
    rows = client.get("/api/grafana/series?stream=a").json()
    assert rows[1]["time"] == 1000 * (1_700_000_000 + 60)


def test_an_export_goes_on(client):
    client.post("/api/streams/a/slices", json={"slices": [body(n) for n in range(3)]})
    model = StubTracker.load(client.get("/api/streams/a/export").content)
    expected = model.update(slice_at(3)).mean
    np.testing.assert_allclose(
        client.post("/api/streams/a/slices", json=body(3)).json()["results"][0]["mean"], expected
    )


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("PUT", "/api/streams/..", {"shape": [3]}, 404),
        ("PUT", "/api/streams/%2e%2e%2fetc", {"shape": [3]}, 404),
        ("PUT", "/api/streams/a%20b", {"shape": [3]}, 422),
        ("PUT", "/api/streams/c", {"shape": []}, 422),
        ("PUT", "/api/streams/c", {"shape": [0]}, 422),
        ("PUT", "/api/streams/c", {"shape": [3], "labels": [["x"]]}, 422),
        ("PUT", "/api/streams/c", {"shape": [3], "false_alarms": "often"}, 422),
        ("PUT", "/api/streams/c", {"shape": [10_000, 10_000]}, 413),
        ("POST", "/api/streams/none/slices", {"values": [1]}, 404),
        ("POST", "/api/streams/a/slices", {"values": [[1, 2]]}, 422),
        ("POST", "/api/streams/a/slices", {"values": [["x"] * 4] * 3}, 422),
        ("POST", "/api/streams/a/slices", {"values": [[1e400] * 4] * 3}, 422),
        ("POST", "/api/streams/a/slices", {"values": [[1] * 4] * 3, "time": "soon"}, 422),
        ("POST", "/api/streams/a/slices", {"values": [[1] * 4] * 3, "sequence": -1}, 422),
        ("POST", "/api/streams/a/slices", {"slices": []}, 422),
        ("POST", "/api/streams/a/slices?fields=nothing", {"values": [[1] * 4] * 3}, 422),
        ("GET", "/api/streams/a/slices/0", None, 404),
        ("GET", "/api/streams/a/cell?position=9,9", None, 404),
        ("POST", "/api/streams/a/incidents/1/feedback", {"false_alarm": True}, 404),
        ("GET", "/api/streams/a/export", None, 404),
        ("GET", "/page/..%2fapp.py", None, 404),
    ],
)
def test_bad_requests_get_one_sentence_and_change_nothing(client, method, path, content, status):
    given = {} if content is None else {"content": orjson.dumps(content).replace(b"null", b"1e400")}
    answer = client.request(method, path, headers={"content-type": "application/json"}, **given)
    assert answer.status_code == status, answer.text
    assert schemas.Error.model_validate_json(answer.content).error
    assert client.get("/api/streams/a").json()["next"] == 0


def test_a_refusal_says_what_to_do(client):
    for path, content, sentence in (
        ("/api/streams/a/slices", {"values": [[1, 2]]}, "the shape of the stream, [3, 4], got [1, 2]"),
        ("/api/stream", {}, "/openapi.json lists what there is"),
        ("/healthz", {}, "POST is not for this address"),
    ):
        assert sentence in client.post(path, json=content).json()["error"]


@pytest.mark.parametrize("content", [b"", b"no numpy", npy(np.array(["x"] * 12).reshape(3, 4)), npy(np.zeros((2, 2)))])
def test_bad_numpy_files_are_refused(client, content):
    assert client.post("/api/streams/a/slices", content=content, headers=NPY).status_code == 422


def test_pickles_are_not_read(client):
    content = npy(np.array([[{}] * 4] * 3, dtype=object))
    assert client.post("/api/streams/a/slices", content=content, headers=NPY).status_code == 422


def test_other_formats_are_refused(client):
    assert client.post("/api/streams/a/slices", content=b"x", headers={"content-type": "text/csv"}).status_code == 415


def test_the_dashboard_asks_for_numbers_that_there_are(client):
    client.post("/api/streams/a/slices", json=body(0))
    dashboard = (ROOT / "docs" / "assets" / "grafana-dashboard.json").read_text()
    there = set(re.findall(r"^undertow_\w+", client.get("/metrics").text, re.MULTILINE))
    asked = set(re.findall(r"undertow_\w+", dashboard))
    assert len(asked) > 5
    assert asked <= there


def test_times_that_clients_name_count_and_times_of_arrival_do_not():
    assert times.sent(times.now()) is None
    for named in ("2024-05-01T12:00", "2024-05-01T12:00:00.125Z", 1714564800.5):
        moment = times.checked(named)
        assert times.sent(moment) == times.moment(moment)
