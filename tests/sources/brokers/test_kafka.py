"""A topic as a source and as a sink, by the mock broker inside librdkafka: it has Kafka's protocol and keeps nothing
when it ends, so that deaths of the broker are tested with NATS alone."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from stubs import StubModel, load_stub

from undertow.runs import run
from undertow.sources import StreamError, open_stream
from undertow.sources.brokers.publishing import publisher

kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2]


class Broker:
    def __init__(self):
        self.client = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
        (one,) = self.client.list_topics(timeout=20).brokers.values()
        self.address = f"kafka://{one.host}:{one.port}"

    def send(self, topic, bodies):
        for one in bodies:
            self.client.produce(topic, one, partition=0)
        assert self.client.flush(20) == 0

    def messages(self, topic):
        every, address = [], self.address.removeprefix("kafka://")
        reader = kafka.Consumer({"bootstrap.servers": address, "group.id": "t", "auto.offset.reset": "earliest"})
        for partition in reader.list_topics(topic, timeout=20).topics[topic].partitions:
            place, found = kafka.TopicPartition(topic, partition, 0), []
            end = reader.get_watermark_offsets(place, timeout=20)[1]
            reader.assign([place])
            while end and (not found or found[-1].offset() + 1 < end):
                found += [one for one in reader.consume(100, timeout=1) if one.error() is None]
            every += found
        reader.close()
        return [one.value() for one in every]


def body(number):
    return json.dumps({"values": [[number, 1.0], [2.0, None]], "time": number, "sequence": number}).encode()


@pytest.fixture(scope="module")
def broker():
    return Broker()


def test_slices_come_in_order_with_positions_to_go_on_from(broker):
    broker.send("one", map(body, range(5)))
    with pytest.raises(StreamError, match="partition must be below"):
        open_stream(f"{broker.address}/one?partition=99")
    stream = open_stream(f"{broker.address}/one?group=g")
    items = list(stream.slices())
    assert [item.time for item in items] == list(range(5))
    assert np.isnan(items[0].values[1, 1])
    broker.send("one", [body(4), body(5)])
    assert [item.time for item in stream.slices(items[2].position)] == [3, 4, 5]
    assert any("1 slices of" in notice and "sequence numbers" in notice for notice in stream.notices)
    stream.done(items[2].position)
    until(lambda: stream._source._log._client.committed([kafka.TopicPartition("one", 0)], timeout=5)[0].offset == 3)
    stream.close()


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_broker_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr("undertow.sources.brokers.kafka.PATIENCE", 0.5)
    with pytest.raises(StreamError, match="1:1/t cannot be reached"):
        open_stream("kafka://127.0.0.1:1/t")


class Transactional:
    """A client whose newest offset is the end of a transaction, which is no message."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def get_watermark_offsets(self, *arguments, **more):
        first, end = self._client.get_watermark_offsets(*arguments, **more)
        return first, end + 1

    def consume(self, *arguments, **more):
        found = self._client.consume(*arguments, **more)
        return [End(one.error(), one.offset() + 1) if one.error() is not None else one for one in found]


class End:
    def __init__(self, error, offset):
        self.error, self.offset = (lambda: error), (lambda: offset)


def test_a_run_ends_where_the_newest_offset_is_no_message(broker):
    broker.send("transactions", map(body, range(3)))
    stream = open_stream(f"{broker.address}/transactions")
    stream._source._log._client = Transactional(stream._source._log._client)
    assert [item.time for item in stream.slices()] == [0, 1, 2]
    stream.close()


def test_a_topic_with_fewer_messages_than_were_read_is_not_taken_for_the_old_one(broker):
    broker.send("longer", map(body, range(5)))
    broker.send("shorter", map(body, range(2)))
    position = list(open_stream(f"{broker.address}/longer").slices())[-1].position
    with pytest.raises(StreamError, match="shorter has 2 messages, and 5 of it were read: it was made anew"):
        next(open_stream(f"{broker.address}/shorter").slices(position))


def test_a_message_that_is_too_large_is_said(broker):
    broker.send("small", [b"1"])
    one = publisher(f"{broker.address}/small")
    with pytest.raises(StreamError, match=r"does not take a message of 3,000,000 bytes .*too large"):
        one.put("key-0", b"x" * 3_000_000)
    one.put("key-1", b"x")
    assert one.flush(lambda: True) == 0
    one.close()


RUN = """
import sys
from stubs import StubModel, load_stub
from undertow.runs import run
from undertow.sources import open_stream
address, publish, store = sys.argv[1:]
run(open_stream(address, follow=True, idle=2), StubModel(pause=0.01), store=store, keep="data", false_alarms=None,
    checkpoint_every=7, resume=True, publish=publish, load=load_stub)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.full)])
def test_a_run_is_killed_and_every_message_counts_once(broker, tmp_path, kills):
    import zarr

    total, draw = 60 * kills, random.Random(1)
    broker.send(f"long{kills}", map(body, range(total)))
    broker.send(f"found{kills}", [])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])}
    addresses = [f"{broker.address}/long{kills}", f"{broker.address}/found{kills}"]
    command = [sys.executable, "-c", RUN, *addresses, str(tmp_path / "s")]
    for _ in range(kills):
        one = subprocess.Popen(command, env=environment)
        time.sleep(1.5 + draw.random())
        one.send_signal(signal.SIGKILL)
        one.wait()
    assert subprocess.run(command, env=environment, timeout=100).returncode == 0
    kept = zarr.open_group(str(tmp_path / "s"), mode="r")["data"][:, 0, 0].astype(int).tolist()
    assert kept == list(range(total))
    # Kafka knows no keys: what was computed twice is told twice, with the same number.
    told = [json.loads(one)["slice"] for one in broker.messages(f"found{kills}")]
    assert sorted(set(told)) == list(range(total))
    assert told == sorted(told) or len(told) > total


def test_a_run_without_end_is_stopped_at_a_limit(broker, tmp_path):
    broker.send("limit", map(body, range(9)))
    options = {"store": tmp_path / "s", "false_alarms": None, "load": load_stub}
    summary = run(open_stream(f"{broker.address}/limit", follow=True), StubModel(), **options, limit=9)
    assert summary.slices == 9
