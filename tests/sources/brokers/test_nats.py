"""A subject of a real NATS server as a source and as a sink: killed on either side, and every message counted."""

import ast
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pages
import pytest
from nats_server import Server
from stubs import StubModel, load_stub

from undertow.runs import RunError, run
from undertow.sources import StreamError, open_stream

pytest.importorskip("nats")
FOLDER = Path(__file__).parents[2]


def body(number):
    return json.dumps({"values": [[number, 1.0], [2.0, None]], "time": number, "sequence": number}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("nats"))
    yield one
    one.kill()


def learned(address, **options):
    """A run, and the source closed after it, as the command does."""
    stream = open_stream(address)
    try:
        return run(stream, StubModel(), false_alarms=None, load=load_stub, **options)
    finally:
        stream.close()


def numbers_in(store):
    import zarr

    return zarr.open_group(str(store), mode="r")["data"][:, 0, 0].astype(int).tolist()


@pytest.mark.slow
def test_slices_come_in_order_with_positions_to_go_on_from(server):
    server.make("one", ["one"])
    server.publish("one", map(body, range(5)))
    with pytest.raises(StreamError, match=r"no stream of JetStream keeps .*/two"):
        open_stream(f"{server.address}/two")
    stream = open_stream(f"{server.address}/one?durable=first")
    items = list(stream.slices())
    assert stream.shape == (2, 2)
    assert [item.time for item in items] == list(range(5))
    assert np.isnan(items[0].values[1, 1])
    again = list(stream.slices(items[2].position))
    assert [item.time for item in again] == [3, 4]
    assert json.loads(json.dumps(again[-1].position)) == again[-1].position
    # Nothing was acknowledged, since nothing was safe; then everything up to a position.
    assert server.consumer("one", "first").num_ack_pending == 5
    stream.done(items[2].position)
    assert server.consumer("one", "first").num_ack_pending == 2
    # A sender that was not sure sends a number once more: it is known.
    server.publish("one", [body(4), body(5)])
    assert [item.time for item in stream.slices(items[-1].position)] == [5]
    assert any("1 slices of" in notice and "sequence numbers" in notice for notice in stream.notices)
    stream.close()


@pytest.mark.slow
def test_an_answer_without_messages_is_not_the_end(tmp_path):
    """As a server gives it that was started again while nobody sent."""
    server = Server(tmp_path)
    try:
        server.make("quiet", ["quiet"])
        server.publish("quiet", map(body, range(3)))
        stream = open_stream(f"{server.address}/quiet", follow=True)
        items = stream.slices()
        assert [next(items).time for _ in range(3)] == [0, 1, 2]
        pull, asked = stream._source._log._pull, []
        fetch = pull.fetch

        async def nothing(*arguments, **options):
            asked.append(1)
            return [] if len(asked) == 1 else await fetch(*arguments, **options)

        pull.fetch = nothing
        server.publish("quiet", [body(3)])
        assert next(items).time == 3
        assert len(asked) > 1
        stream.close()
    finally:
        server.kill()


@pytest.mark.slow
def test_the_sender_of_the_page_is_read(server):
    """With the address of this server, and as often as one likes: its key is always the same."""
    server.make("page", ["flows"])
    sender = pages.recipe(pages.ROOT / "docs/how-to/brokers.md", "a sender")
    sender = sender.replace("nats.connect()", f"nats.connect({server.address!r})")
    x = np.array([[1.0, np.nan], [3.0, 4.0]])
    for _ in range(2):
        code = compile(sender, "brokers.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        asyncio.run(eval(code, {"x": x}))
    stream = open_stream(f"{server.address}/flows")
    (found,) = stream.slices()
    stream.close()
    np.testing.assert_array_equal(found.values, x)


@pytest.mark.slow
def test_bad_messages_stop_or_are_left_out(server):
    server.make("bad", ["bad"])
    server.publish("bad", [body(0), b"what?", body(1)])
    with pytest.raises(StreamError, match=r"message 2 of .*neither JSON nor a NumPy file"):
        list(open_stream(f"{server.address}/bad").slices())
    stream = open_stream(f"{server.address}/bad", on_bad="skip")
    assert [item.time for item in stream.slices()] == [0, 1]
    assert any("1 message of" in notice or "message" in notice for notice in stream.notices)


@pytest.mark.slow
def test_results_are_published_once_each_with_their_alerts(server, tmp_path):
    server.make("in", ["in"])
    server.make("out", ["out"])
    server.publish("in", map(body, range(6)))
    address, publish = f"{server.address}/in", f"{server.address}/out?keep=mean"
    options = {"store": tmp_path / "s", "keep": "data", "publish": publish}
    learned(address, **options, limit=4)
    learned(address, **options, resume=True)
    told = [json.loads(data) for _, data in server.messages("out")]
    assert [one["slice"] for one in told] == list(range(6))
    assert np.shape(told[0]["mean"]) == (2, 2)
    assert {"time", "rank", "noise_std", "status", "alerts", "stream"} <= told[0].keys()
    assert numbers_in(tmp_path / "s") == list(range(6))
    assert server.consumer("in", "undertow-in").num_ack_pending == 0
    # The same again, as after a death between publishing and the checkpoint: the server knows the keys.
    learned(address, **{**options, "store": tmp_path / "t"})
    assert len(server.messages("out")) == 6


def test_publish_must_be_a_broker_and_keep_known_arrays(tmp_path):
    with pytest.raises(RunError, match="publish must be nats://"):
        run("x.npy", store=tmp_path / "s", publish="https://host/x")
    with pytest.raises(RunError, match="keep must be among"):
        run("x.npy", store=tmp_path / "s", publish="nats://host/x?keep=everything")


@pytest.mark.slow
def test_a_stream_that_was_made_anew_is_not_taken_for_the_old_one(server, tmp_path):
    server.make("again", ["again"])
    server.publish("again", map(body, range(3)))
    learned(f"{server.address}/again", store=tmp_path / "s")
    server.ask(lambda js: js.delete_stream("again"))
    server.make("again", ["again"])
    server.publish("again", map(body, range(4)))
    with pytest.raises(RunError, match="another source"):
        learned(f"{server.address}/again", store=tmp_path / "s", resume=True)


RETENTIONS = ("limits", "workqueue", "interest")
RUN = """
import sys
from stubs import StubModel, load_stub
from undertow.runs import run
from undertow.sources import open_stream
address, publish, store, idle = sys.argv[1:]
stream = open_stream(address, follow=True, idle=float(idle))
run(stream, StubModel(pause=0.004), store=store, keep="data", false_alarms=None, checkpoint_every=7, resume=True,
    publish=publish, load=load_stub)
"""


def started(server, store, idle, subject="long"):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])}
    arguments = [f"{server.address}/{subject}?ack_wait=2", f"{server.address}/{subject}.results", str(store), str(idle)]
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments], env=environment)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("retention", "kills"), [("workqueue", 2), *(pytest.param(one, 8, marks=pytest.mark.full) for one in RETENTIONS)]
)
def test_both_sides_are_killed_and_every_message_counts_once(retention, kills, tmp_path):
    from nats.js.api import RetentionPolicy

    server, draw, total = Server(tmp_path / "nats"), random.Random(retention), 60 * kills
    try:
        server.make("long", ["long"], retention=RetentionPolicy(retention))
        server.make("results", ["long.results"])
        with pytest.raises(StreamError, match="holds no messages now"):  # from now on there is interest
            open_stream(f"{server.address}/long?ack_wait=2")
        sender = threading.Thread(target=send, args=(server, range(total - 20)), daemon=True)
        sender.start()
        for kill in range(kills):
            one = started(server, tmp_path / "s", 60)
            time.sleep(1.2 + draw.random())
            if kill % 2:
                server.kill()
                time.sleep(0.3)
                server.start()
                time.sleep(draw.random())
            one.send_signal(signal.SIGKILL)
            one.wait()
        sender.join(60)
        assert not sender.is_alive()
        last = started(server, tmp_path / "s", 3)  # a queue may be empty by now: these are for it
        send(server, range(total - 20, total))
        assert last.wait(120) == 0
        assert numbers_in(tmp_path / "s") == list(range(total))
        told = [json.loads(data)["slice"] for _, data in server.messages("results")]
        assert sorted(told) == list(range(total))  # what was computed twice has the same key
        assert server.consumer("long", "undertow-long").num_ack_pending == 0
    finally:
        server.kill()


def send(server, numbers):
    """As a careful sender does: every message until the server has it, with a key so that it has it once."""
    for number in numbers:
        while True:
            try:
                server.publish("long", [body(number)], {"Nats-Msg-Id": str(number)})
                break
            except Exception:
                time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["stream", "consumer"])
def test_what_is_deleted_while_it_is_read_is_said_in_a_sentence(server, what):
    server.make(f"gone-{what}", [f"gone.{what}"])
    server.publish(f"gone.{what}", [body(0)])
    items = open_stream(f"{server.address}/gone.{what}?durable=d", follow=True).slices()
    assert next(items).time == 0
    delete = {
        "stream": lambda js: js.delete_stream("gone-stream"),
        "consumer": lambda js: js.delete_consumer("gone-consumer", "d"),
    }
    server.ask(delete[what])
    with pytest.raises(StreamError, match=r"stream gone-\w+ or its consumer d was deleted"):
        next(items)


@pytest.mark.slow
def test_results_that_are_too_large_or_are_kept_by_nobody_end_the_run_with_the_reason(server, tmp_path, monkeypatch):
    monkeypatch.setattr("undertow.runs.publishing.PATIENCE", 0.5)
    np.save(tmp_path / "l.npy", np.random.default_rng(0).normal(size=(2, 400, 400)))
    np.save(tmp_path / "s.npy", np.ones((2, 2)))
    server.make("heavy", ["heavy"])
    given = {"false_alarms": None, "load": load_stub}
    large = {"store": tmp_path / "l", "publish": f"{server.address}/heavy?keep=mean"}
    with pytest.raises(RunError, match=r"slice 0 .* does not take a message of .* leave out arrays"):
        run(str(tmp_path / "l.npy"), StubModel(), **large, **given)
    small = {"store": tmp_path / "s", "publish": f"{server.address}/nobody"}
    with pytest.raises(RunError, match=r"2 results could not be published to .*/nobody \(nats: no response"):
        run(str(tmp_path / "s.npy"), StubModel(), **small, **given)
