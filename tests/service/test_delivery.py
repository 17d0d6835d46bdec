"""Each incident is told once when it opens and once when it closes, by every channel, though the service is killed."""

import json
import random
import sqlite3
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from nats_server import Server
from ports import free_port
from processes import start

from undertow import Client
from undertow.client import ClientError


class Lines:
    """A file of JSON lines."""

    def __init__(self, folder):
        self.path = folder / "told.jsonl"
        self.address = str(self.path)

    def told(self):
        lines = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []
        return [(one["key"], one["what"], one["incident"]["id"]) for one in lines]

    def stop(self):
        pass


class Webhook:
    """A web server that answers 200."""

    def __init__(self, folder):
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def told(self):
        return [(one["key"], one["what"], one["incident"]["id"]) for one in list(self.received)]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Mail:
    """A mail host that takes everything."""

    def __init__(self, folder):
        controllers = pytest.importorskip("aiosmtpd.controller")
        received = self.received = []

        class Handler:
            async def handle_DATA(self, server, session, envelope):
                received.append(envelope.content.decode().replace("\r\n", "\n"))
                return "250 OK"

        self.host = controllers.Controller(Handler(), hostname="127.0.0.1", port=free_port())
        self.host.start()
        self.address = f"smtp://127.0.0.1:{self.host.port}/?to=ops@example.org"

    def told(self):
        found = []
        for text in list(self.received):
            subject, key = (next(x for x in text.split("\n") if x.startswith(y)) for y in ("Subject:", "Message-ID:"))
            number, what = subject.partition("incident ")[2].partition(",")[0].split()
            found.append((key, what, int(number)))
        return found

    def stop(self):
        self.host.stop()


class Nats:
    """A stream of JetStream."""

    def __init__(self, folder):
        pytest.importorskip("nats")
        self.server = Server(folder / "nats")
        self.server.make("incidents", ["incidents"])
        self.address = f"{self.server.address}/incidents"

    def told(self):
        bodies = [json.loads(body) for _, body in self.server.messages("incidents")]
        return [(one["key"], one["what"], one["incident"]["id"]) for one in bodies]

    def stop(self):
        self.server.kill()


@contextmanager
def receiver(kind, folder):
    made = kind(folder)
    try:
        yield made
    finally:
        made.stop()


def slice_of(number):
    x = 10 + np.random.default_rng(number).normal(size=(6, 5))
    if 60 <= number % 100 < 66:
        x[2] += 30
    return x


def fed(client, first, last):
    for number in range(first, last):
        client.push("a", slice_of(number), sequence=number, fields="")


def killed(process):
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def until(question):
    end = time.monotonic() + 120
    while not question():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def waiting(store):
    with sqlite3.connect(store) as found:
        return found.execute("SELECT COUNT(*) FROM outbox").fetchone()[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Lines, Webhook, pytest.param(Mail, marks=pytest.mark.full), Nats])
def test_killed_before_and_after_an_incident_is_told(tmp_path, monkeypatch, kind):
    with receiver(kind, tmp_path) as to:
        monkeypatch.setenv("UNDERTOW_TEST_DELIVER", to.address)
        store = tmp_path / "s.db"
        process, address = start(store)
        with Client(address) as client:
            client.create("a", (6, 5), false_alarms="1/10000", step=60)
            fed(client, 0, 64)
            until(lambda: to.told() and not waiting(store))
        killed(process)  # it has opened, and that was told
        process, address = start(store)
        with Client(address) as client:
            fed(client, 64, 90)
        killed(process)  # it has closed; nobody waited until that was told
        process, address = start(store)
        with Client(address) as client:
            fed(client, 89, 91)
            ids = [one["id"] for one in client.incidents("a")]
            until(lambda: len(to.told()) >= 2 * len(ids) and not waiting(store))
        killed(process)
        told = [(what, number) for _, what, number in to.told()]
        assert sorted(told) == sorted((what, number) for what in ("opened", "closed") for number in ids)
        assert len(ids) == 1


@pytest.mark.full
@pytest.mark.parametrize("kind", [Lines, Webhook, Mail, Nats])
def test_killed_at_any_moment(tmp_path, monkeypatch, kind, tried):
    """A file and JetStream show each message once; others may see one again, and know it by its key."""
    draw, store, number, kills = random.Random(kind.__name__), tmp_path / "s.db", 0, 5
    with receiver(kind, tmp_path) as to:
        monkeypatch.setenv("UNDERTOW_TEST_DELIVER", to.address)
        process, address = start(store)
        port = int(address.rpartition(":")[2])
        with Client(address) as client:
            client.create("a", (6, 5), false_alarms="1/10000", step=60)
            fed(client, 0, 58)
        number = 58
        for _ in range(kills):
            timer = threading.Timer(draw.uniform(0.01, 0.3), process.kill)
            timer.start()
            with Client(address) as client:
                try:
                    while number < 300:
                        client.push("a", slice_of(number), sequence=number, fields="")
                        number += 1
                except (OSError, ClientError):
                    pass
            timer.join()
            killed(process)
            process, address = start(store, port)
        with Client(address) as client:
            fed(client, number, 300)
            client.push("a", slice_of(300), sequence=300)
            ids = [one["id"] for one in client.incidents("a")]
            until(lambda: not waiting(store))
            told = to.told()
        killed(process)
        pairs = {(what, one) for _, what, one in told}
        assert pairs == {(what, one) for what in ("opened", "closed") for one in ids}
        assert len({key for key, _, _ in told}) == len(pairs)
        if kind in (Lines, Nats):
            assert max(Counter(told).values()) == 1
        tried(f"service killed while it told of incidents by {kind.__name__}", kills)
