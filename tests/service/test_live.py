import struct
import threading
import time

import orjson
from service_of_tests import LIVE, STUBS, body, service
from stubs import StubTracker

from undertow.service.hosted import Models


def test_a_page_gets_the_newest_frame_and_an_overview(client):
    with client.websocket_connect(LIVE) as socket:
        socket.send_text('{"watch": "a"}')
        client.post("/api/streams/a/slices", json=body(0))
        frames, overviews = [], []
        for number in range(1, 1000):
            client.post("/api/streams/a/slices?fields=", json=body(number))
            message = socket.receive()
            (frames if message.get("bytes") else overviews).append(message)
            if len(frames) > 2 and any(orjson.loads(one["text"])["streams"] for one in overviews):
                break
    length = struct.unpack("<I", frames[0]["bytes"][:4])[0]
    header = orjson.loads(frames[0]["bytes"][4 : 4 + length])
    assert header["stream"] == "a"
    assert (len(frames[0]["bytes"]) - 4 - length) == 4 * 4 * 12
    newest = orjson.loads(overviews[-1]["text"])["streams"][0]
    assert newest["stream"] == "a"
    assert "outlier_rate" in newest["numbers"]


def test_a_page_that_does_not_read_slows_nothing_and_costs_one_frame(client):
    with client.websocket_connect(LIVE) as socket:
        socket.send_text('{"watch": "a"}')
        for number in range(50):
            assert client.post("/api/streams/a/slices?fields=", json=body(number)).status_code == 200
        assert "undertow_pages 1.0" in client.get("/metrics").text
    assert client.get("/api/streams/a").json()["next"] == 50


class Slow(StubTracker):
    gate = threading.Event()

    def update(self, x):
        self.gate.wait(20)
        return super().update(x)


def test_too_much_that_waits_is_refused_with_a_time_to_come_back(tmp_path):
    Slow.gate.clear()
    with service(tmp_path, Models(Slow, Slow.load), waiting=4) as client:
        client.put("/api/streams/a", json={"shape": [3, 4]})
        statuses = [client.post("/api/streams/a/slices?async=1", json=body(n)) for n in range(8)]
        assert [one.status_code for one in statuses] == [202] * 4 + [429] * 4
        assert int(statuses[-1].headers["retry-after"]) >= 1
        Slow.gate.set()
        for _ in range(200):
            answer = client.post("/api/streams/a/slices", json=body(4, sequence=4))
            if answer.status_code == 200:
                break
            time.sleep(0.02)
        assert answer.json()["results"][0]["sequence"] == 4


def test_slices_of_many_clients_come_in_the_order_of_their_numbers(tmp_path):
    with service(tmp_path, STUBS) as client:
        client.put("/api/streams/a", json={"shape": [3, 4]})
        answers = []

        def push():
            for _ in range(10):
                answers.append(
                    client.post("/api/streams/a/slices?fields=", json=body(0)).json()["results"][0]["sequence"]
                )

        threads = [threading.Thread(target=push) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == list(range(40))
        assert client.get("/api/streams/a").json()["next"] == 40


def test_health_and_metrics(client):
    client.post("/api/streams/a/slices", json=body(0))
    assert client.get("/healthz").json()["status"] == "ok"
    text = client.get("/metrics").text
    for name in ("slices_total", "step_seconds_bucket", "rank", "outlier_rate", "queue_slices", "calibration"):
        assert f"undertow_{name}" in text
    assert "undertow_push_seconds_count 1.0" in text
    client.delete("/api/streams/a")
    assert 'stream="a"' not in client.get("/metrics").text
