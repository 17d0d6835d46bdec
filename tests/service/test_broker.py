"""A stream of the service fed from a subject, its results published on another; everybody is killed."""

import json
import random
import threading
import time

import numpy as np
import pytest
from level_service import Level
from nats_server import Server
from processes import start

from undertow import Client
from undertow.client import ClientError
from undertow.service.broker import named
from undertow.service.errors import ServiceError

pytest.importorskip("nats")


def values(number):
    return np.random.default_rng(number).normal(size=(3, 2))


def body(number):
    return json.dumps({"values": values(number).tolist(), "sequence": number}).encode()


def test_subscriptions_are_names_and_addresses_of_brokers():
    assert named(("a=nats://h/s", "b=kafka://h/t?group=g")) == [("a", "nats://h/s"), ("b", "kafka://h/t?group=g")]
    for wrong in ("nats://h/s", "a=https://h/s", "a/b=nats://h/s"):
        with pytest.raises(ServiceError):
            named((wrong,))


@pytest.mark.slow
def test_every_message_is_learned_once_and_every_result_told_whoever_dies(tmp_path, monkeypatch):
    server, total, draw = Server(tmp_path / "nats"), 60, random.Random(3)
    monkeypatch.setenv("UNDERTOW_TEST_SUBSCRIBE", f"flows={server.address}/flows?ack_wait=2")
    monkeypatch.setenv("UNDERTOW_TEST_PUBLISH", f"flows={server.address}/found")
    try:
        server.make("flows", ["flows"])
        server.make("found", ["found"])
        sender = threading.Thread(target=send, args=(server, total), daemon=True)
        sender.start()
        for kill in range(2):
            process, _ = start(tmp_path / "s.db")
            time.sleep(1 + draw.random())
            if kill == 1:
                server.kill()
                time.sleep(0.3)
                server.start()
                time.sleep(0.5)
            end(process)
        process, address = start(tmp_path / "s.db")
        sender.join(60)
        with Client(address) as client:
            until(lambda: client.stream("flows")["next"] == total)
            until(lambda: server.consumer("flows", "undertow-flows").num_ack_pending == 0)
            model = Level()
            expected = [float(model.update(values(number)).noise_std) for number in range(total)]
            until(lambda: client.series("flows", most=10_000)["numbers"]["noise_std"] == expected)
        until(lambda: told(server) == set(range(total)))
        assert len(server.messages("found")) == total
        end(process)
    finally:
        server.kill()


@pytest.mark.slow
def test_what_was_made_anew_on_either_side_is_read_and_told_from_its_beginning(tmp_path, monkeypatch):
    server = Server(tmp_path / "nats")
    monkeypatch.setenv("UNDERTOW_TEST_SUBSCRIBE", f"flows={server.address}/flows")
    monkeypatch.setenv("UNDERTOW_TEST_PUBLISH", f"flows={server.address}/found")
    try:
        server.make("flows", ["flows"])
        server.make("found", ["found"])
        server.publish("flows", map(body, range(5)))
        process, address = start(tmp_path / "s.db")
        with Client(address) as client:
            until(lambda: client.stream("flows")["next"] == 5)
            with pytest.raises(ClientError, match="flows is fed by a broker: send slices there"):
                client.push("flows", values(5))
            server.ask(lambda js: js.delete_stream("flows"))
            server.make("flows", ["flows"])
            server.publish("flows", map(body, range(3)))
            until(lambda: client.stream("flows")["next"] == 8)
            until(lambda: len(server.messages("found")) == 8)
            client.delete("flows")
            server.publish("flows", map(body, range(3, 5)))
            until(lambda: client.stream("flows")["next"] == 2)
            until(lambda: len(server.messages("found")) == 10)
        end(process)
    finally:
        server.kill()


def told(server):
    return {json.loads(data)["sequence"] for _, data in server.messages("found")}


def until(condition):
    limit = time.monotonic() + 60
    while True:
        try:
            if condition():
                return
        except Exception:
            pass
        assert time.monotonic() < limit
        time.sleep(0.1)


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def send(server, total):
    number = 0
    while number < total:
        try:
            server.publish("flows", [body(number)], {"Nats-Msg-Id": str(number)})
        except Exception:
            time.sleep(0.1)
            continue
        number += 1
        time.sleep(0.02)
