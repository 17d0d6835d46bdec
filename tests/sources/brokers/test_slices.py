"""What a message may hold."""

import io
import sys

import numpy as np
import pytest

from undertow.sources import StreamError, open_stream
from undertow.sources.base import BadInputError
from undertow.sources.brokers.base import Address, Message
from undertow.sources.brokers.slices import parts


def npy(array):
    body = io.BytesIO()
    np.save(body, array)
    return body.getvalue()


def test_json_holds_a_slice_several_or_bare_lists():
    one = parts(Message(1, b'{"values": [[1, null]], "time": "2024-05-01", "sequence": 3}'), "x", 2)
    assert [(part.values.shape, part.time, part.sequence) for part in one] == [((1, 2), np.datetime64("2024-05-01"), 3)]
    assert np.isnan(one[0].values[0, 1])
    two = parts(Message(1, b'{"slices": [{"values": [1, 2]}, {"values": [3, 4], "time": 7}]}'), "x", 1)
    assert [(part.values.tolist(), part.time) for part in two] == [([1, 2], None), ([3, 4], 7)]
    assert parts(Message(1, b"[[1, 2]]"), "x", None)[0].values.shape == (1, 2)
    named = parts(Message(1, b'{"when": 4, "x": [1]}'), "x", 1, "when", "x")
    assert (named[0].time, named[0].values.tolist()) == (4, [1])


def test_a_numpy_file_is_a_slice_or_several_with_time_and_sequence_in_headers():
    body, headers = npy(np.ones((2, 3), np.float32)), {"time": "2024-05-01T12:00", "sequence": "7"}
    (alone,) = parts(Message(1, body, headers), "x", 2)
    assert (alone.values.dtype, alone.sequence) == (np.float32, 7)
    assert alone.time == np.datetime64("2024-05-01T12:00")
    assert [part.values.shape for part in parts(Message(1, body), "x", 1)] == [(3,), (3,)]
    assert [part.sequence for part in parts(Message(1, body, headers), "x", 1)] == [7, None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"7",
        b'{"value": 1}',
        b'{"slices": {}}',
        b'{"values": [[1], [2, 3]]}',
        b'{"values": ["a"]}',
        b'{"values": [1], "sequence": -1}',
        b'{"values": [1], "sequence": true}',
        b"\x93NUMPY broken",
        npy(np.array([None, {}], object)),
    ],
    ids=["empty", "half", "number", "no values", "no list", "ragged", "text", "minus", "true", "npy", "pickle"],
)
def test_anything_else_is_refused_in_one_sentence(body):
    with pytest.raises(BadInputError, match="message 5 of x"):
        parts(Message(5, body), "x", 1)


def test_addresses():
    one = Address.parse("nats://me:secret@host:1/a.b?durable=d", frozenset({"durable"}), "nats://h/s")
    assert (one.server, one.host, one.name, one.options) == (
        "nats://me:secret@host:1",
        "host:1",
        "a.b",
        {"durable": "d"},
    )
    with pytest.raises(StreamError, match="knows durable, got 'group'"):
        Address.parse("nats://host/a?group=1", frozenset({"durable"}), "nats://h/s")


def test_passwords_are_not_shown():
    with pytest.raises(StreamError) as refused:
        open_stream("nats://me:secret@host/s", colour=True)
    assert "nats://host/s" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["nats://host", "nats://host/", "kafka:///topic", "nats://host/a b"])
def test_an_address_without_host_or_name_is_refused(address):
    with pytest.raises(StreamError, match="must name a host and what is read there"):
        open_stream(address)


@pytest.mark.parametrize(
    ("address", "package", "extra"),
    [("nats://h/s", "nats", "nats"), ("kafka://h/t", "confluent_kafka", "kafka")],
    ids=["nats", "kafka"],
)
def test_an_absent_package_is_one_sentence_with_the_command(monkeypatch, address, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StreamError, match=rf"needs {package}, which is not .*: pip install 'undertow\[{extra}\]'"):
        open_stream(address)
