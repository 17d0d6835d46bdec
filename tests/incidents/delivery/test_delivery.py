"""Messages reach every channel once, whatever happens in between; all servers are on loopback."""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from nats_server import Server

from undertow.incidents import Change, Incident
from undertow.incidents.delivery import Courier, FileOutbox, Refused, channel, message
from undertow.incidents.delivery import outbox as outboxes
from undertow.incidents.delivery.mail import Mail
from undertow.incidents.delivery.webhook import Webhook, signature

ONE = Incident(1, "entry", since=7, last=7, where="site a", entries=((0, 1),), count=1, std=9.0, amount=4.0)
OPENED, CLOSED = Change("opened", ONE), Change("closed", replace(ONE, until=7))


class Stub:
    """A channel that fails some times before it takes a message."""

    name = "stub"

    def __init__(self, failures=0, error=None):
        self.failures, self.error, self.taken = failures, error or OSError("the line is down"), []

    def send(self, key, content):
        if self.failures:
            self.failures -= 1
            raise self.error
        self.taken.append((key, content["what"]))


def courier(folder, *channels):
    return Courier(FileOutbox(folder, [one.name for one in channels]), channels, "stream", "print", first_wait=0.01)


def test_each_message_is_sent_once_across_restarts(tmp_path):
    first, second = Stub(), Stub(failures=2)
    second.name = "second"
    for changes in ([OPENED], [OPENED, CLOSED], [OPENED, CLOSED]):  # a run that is killed finds the same again
        sender = courier(tmp_path, first, second)
        for change in changes:
            sender.put(change)
        assert sender.close() == []
    keys = [message(change, "stream", "print")[0] for change in (OPENED, CLOSED)]
    assert first.taken == second.taken == list(zip(keys, ("opened", "closed"), strict=True))
    assert keys[0] != keys[1]
    assert message(OPENED, "other", "print")[0] != keys[0]


def test_what_cannot_be_sent_now_is_sent_with_the_next_run(tmp_path):
    down = Stub(failures=10**6)
    sender = courier(tmp_path, down)
    sender.put(OPENED)
    (sentence,) = sender.close(patience=0.1)
    assert "1 messages could not be delivered to stub (the line is down)" in sentence
    up = Stub()
    assert courier(tmp_path, up).close() == []
    assert [what for _, what in up.taken] == ["opened"]


def test_what_is_refused_for_good_is_said_and_not_tried_again(tmp_path):
    stub = Stub(failures=1, error=Refused("HTTP 404"))
    sender = courier(tmp_path, stub)
    sender.put(OPENED)
    (sentence,) = sender.close()
    assert "HTTP 404" in sentence
    sender = courier(tmp_path, stub)
    sender.put(CLOSED)
    sender.close()
    assert [what for _, what in stub.taken] == ["closed"]


def test_a_line_that_a_kill_left_half_written_is_cut_off(tmp_path):
    box = FileOutbox(tmp_path, ["x"])
    box.add("a", {"what": "opened"})
    box.close()
    path = tmp_path / outboxes.FILE
    path.write_bytes(path.read_bytes() + b'{"done": "a", "chan')
    box = FileOutbox(tmp_path, ["x"])
    assert box.pending("x") == [("a", {"what": "opened"})]
    box.done("a", "x")
    box.close()
    assert FileOutbox(tmp_path, ["x"]).pending("x") == []


def test_delivered_messages_leave_file_and_memory_and_their_keys_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(outboxes, "_SLACK", 2000)
    box = FileOutbox(tmp_path, ["x", "y"])
    box.add("waits", {"text": "w" * 100})
    for number in range(200):
        box.add(str(number), {"text": "t" * 100 + "\u2028"})
        box.done(str(number), "x")
        box.done(str(number), "y")
    size = (tmp_path / outboxes.FILE).stat().st_size
    assert size < 200 * 60
    box.done("waits", "x")
    box.close()
    box = FileOutbox(tmp_path, ["x", "y"])
    assert not any(box.add(str(number), {}) for number in range(200))
    assert box.pending("x") == []
    assert box.pending("y") == [("waits", {"text": "w" * 100})]
    box.close()
    box = FileOutbox(tmp_path, ["z"])  # a channel of later hears what comes from now on
    assert box.pending("z") == []


def test_keys_are_forgotten_after_very_many(tmp_path, monkeypatch):
    monkeypatch.setattr(outboxes, "_SLACK", 0)
    monkeypatch.setattr(outboxes, "KEYS", 10)
    box = FileOutbox(tmp_path, ["x"])
    box.add("waits", {"text": "for long"})
    for number in range(200):
        box.add(str(number), {})
        box.done(str(number), "x")
    assert not box.add("waits", {})
    assert not box.add("199", {})
    assert box.add("0", {})


def test_a_line_that_was_written_before_a_kill_is_not_written_again(tmp_path):
    path = tmp_path / "told.jsonl"
    lines = channel(str(path))
    lines.send("one", {"what": "opened"})
    lines.send("two", {"what": "closed"})
    whole = path.read_bytes()
    lines.send("one", {"what": "opened"})
    lines.send("two", {"what": "closed"})
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-7])
    lines.send("two", {"what": "closed"})
    assert path.read_bytes() == whole
    path.write_bytes(b"half a line of another program")
    lines.send("one", {"what": "opened"})
    assert path.read_bytes().startswith(b'half a line of another program\n{"key": "one"')


def test_json_lines(tmp_path):
    path = tmp_path / "told.jsonl"
    sender = courier(tmp_path, channel(str(path)))
    sender.put(OPENED)
    sender.put(CLOSED)
    assert sender.close() == []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["what"], one["incident"]["id"], one["stream"]) for one in lines] == [
        ("opened", 1, "stream"),
        ("closed", 1, "stream"),
    ]


@contextmanager
def web_server(answers):
    """Gives these answers in turn, the last one for ever; yields its address and the requests."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((dict(self.headers), body))
            code = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(code)
            self.send_header("Content-Length", "0")
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", requests
    finally:
        server.shutdown()
        server.server_close()


def test_a_webhook_is_signed_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTOW_WEBHOOK_SECRET", "hush")
    with web_server([503, 429, 200]) as (address, requests):
        sender = courier(tmp_path, channel(address + "?token=hidden"))
        sender.put(OPENED)
        assert sender.close() == []
    assert len(requests) == 3
    headers, body = requests[-1]
    content = json.loads(body)
    assert headers["Idempotency-Key"] == content["key"] == message(OPENED, "stream", "print")[0]
    assert headers["X-Undertow-Signature"] == signature(b"hush", headers["X-Undertow-Timestamp"], body)
    assert "hidden" not in (tmp_path / outboxes.FILE).read_text()


@pytest.mark.parametrize("code", [302, 404])
def test_answers_of_a_webhook_that_will_not_change(code):
    with web_server([code]) as (address, requests), pytest.raises(Refused, match=str(code)):
        Webhook(address).send("key", {"what": "opened"})
    assert len(requests) == 1


def test_mail_reaches_an_smtp_host(tmp_path):
    controllers = pytest.importorskip("aiosmtpd.controller")
    received = []

    class Handler:
        async def handle_DATA(self, server, session, envelope):
            received.append(envelope)
            return "250 OK" if len(received) > 1 else "451 try again"

    host = controllers.Controller(Handler(), hostname="127.0.0.1", port=free_port())
    host.start()
    try:
        mail = channel(f"smtp://127.0.0.1:{host.port}/?to=ops@example.org,night@example.org&from=u@example.org")
        sender = courier(tmp_path, mail)
        sender.put(OPENED)
        assert sender.close() == []
    finally:
        host.stop()
    assert len(received) == 2
    assert received[-1].rcpt_tos == ["ops@example.org", "night@example.org"]
    text = received[-1].content.decode()
    assert "Subject: [undertow] stream: incident 1 opened, site a" in text
    assert ONE.sentence in text.replace("\r\n", "\n")


def test_names_with_line_ends_cannot_add_headers():
    evil = replace(ONE, where="a\r\nBcc: x@y.org")
    _, content = message(Change("opened", evil), "s\nBcc: x@y.org", "p")
    made = Mail("h", 25, "u@h", ("a@b.org",)).made("key", content)
    assert made["Bcc"] is None
    assert "\n" not in made["Subject"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_nats_takes_a_message_with_its_key(tmp_path, kept):
    nats = pytest.importorskip("nats")
    server = Server(tmp_path / "nats")
    try:
        if kept:
            server.make("incidents", ["incidents.*"])
        asyncio.run(listened(nats, server.address, tmp_path))
        if kept:  # told again, the stream knows the key
            to = channel(f"{server.address}/incidents.web")
            to.send(message(OPENED, "stream", "print")[0], {"what": "opened"})
            assert len(server.messages("incidents")) == 1
    finally:
        server.kill()


async def listened(nats, address, folder):
    client = await nats.connect(address, allow_reconnect=False)
    subscription = await client.subscribe("incidents.web")
    await client.flush()
    sender = courier(folder, channel(f"{address}/incidents.web"))
    sender.put(OPENED)
    told = await subscription.next_msg(timeout=20)
    assert told.headers["Nats-Msg-Id"] == json.loads(told.data)["key"] == message(OPENED, "stream", "print")[0]
    assert await asyncio.to_thread(sender.close) == []
    await client.close()


@pytest.mark.slow
def test_a_stream_that_does_not_answer_has_not_taken_the_message(tmp_path):
    """Where the stream is full and refuses, the message waits."""
    pytest.importorskip("nats")
    server = Server(tmp_path / "nats")
    try:
        server.make("incidents", ["incidents.*"], max_msgs=1, discard="new")
        to = channel(f"{server.address}/incidents.web")
        to.send("one", {"what": "opened"})
        with pytest.raises(Exception, match="maximum messages"):
            to.send("two", {"what": "closed"})
    finally:
        server.kill()


def test_names_of_channels_hold_no_secrets():
    pytest.importorskip("nats")
    for address in ("nats://user:hush@host:4222/subject", "nats://hush@host/subject", "https://host/x?key=hush"):
        assert "hush" not in channel(address).name


@pytest.mark.parametrize(
    "address",
    ["", "told.csv", "ftp://host/x", "smtp://host/", "smtp://u:p@host/?to=a@b", "nats://host", "http://u:p@host/"],
)
def test_bad_addresses_are_one_sentence(address):
    with pytest.raises(ValueError, match="deliver"):
        channel(address)


def test_closing_does_not_wait_for_a_receiver_that_hangs(tmp_path):
    class Hanging(Stub):
        def send(self, key, content):
            time.sleep(30)

    sender = courier(tmp_path, Hanging())
    sender.put(OPENED)
    assert len(sender.close(patience=0.05)) == 1
