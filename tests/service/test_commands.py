"""The commands that show a page: started as a user starts them, the page fetched, ended in order by a signal."""

import signal
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from processes import command
from stubs import reported_store
from websockets.sync.client import connect

pytestmark = pytest.mark.slow
PATIENCE = 15
"""Seconds until a process must have ended; requests that are under way would be waited for longer than that."""
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture
def started(tmp_path):
    """Starts a command in the test's folder; it is gone after the test, whatever happens."""
    processes = []

    def start(*arguments):
        process, address = command(*arguments, folder=tmp_path)
        processes.append(process)
        return process, address

    yield start
    for process in processes:
        process.kill()
        process.wait()


def got(address):
    """An answer; while programs are compiled it takes a moment."""
    return httpx.get(address, timeout=120)


@contextmanager
def fetched(address):
    """The page, what it asks for first, and its connection, which is open as long as the block."""
    assert "<title>Undertow</title>" in got(address).text
    assert got(address + "/page/main.js").status_code == 200
    listed = got(address + "/api/streams").json()["streams"]
    url = address.replace("http://", "ws://") + "/api/live"
    with connect(url, subprotocols=["undertow"], open_timeout=120) as live:
        assert "Sec-WebSocket-Extensions" not in live.response.headers  # noise takes longer to compress than to send
        if listed:
            live.send('{"watch": "' + listed[0]["name"] + '"}')
        yield listed, live


def ended(process, number, patience=PATIENCE):
    process.send_signal(number)
    return process.wait(patience)


def reached(process, address, slices):
    """Until the first stream of a page has as many slices."""
    while not (shown := got(address + "/api/streams").json()["streams"]) or shown[0]["next"] < slices:
        assert process.poll() is None
        time.sleep(0.1)


@pytest.mark.parametrize("number", SIGNALS)
def test_serve_ends_in_order_with_pages_open(tmp_path, started, number):
    process, address = started("serve", "--port", 0, "--store", tmp_path / "s.db")
    with fetched(address):
        assert ended(process, number) == 0
    assert not (tmp_path / "s.db-wal").exists()  # the store was closed


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
def test_the_demo_of_the_service_fills_its_page(tmp_path, started, number):
    process, address = started("serve", "--demo", "--port", 0, "--store", tmp_path / "s.db")
    reached(process, address, 1)
    with fetched(address) as (listed, live):
        assert listed[0]["name"] == "network-east"
        assert isinstance(live.recv(300), (str, bytes))
        assert ended(process, number, patience=300) == 0  # slices that it has accepted are learned first


@pytest.mark.parametrize("number", SIGNALS)
def test_a_finished_run_is_shown_until_a_signal(tmp_path, started, number):
    process, address = started("view", reported_store(tmp_path / "s.zarr"))
    reached(process, address, 40)
    with fetched(address):
        assert ended(process, number) == 128 + number


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", ["run", "demo"])
def test_a_run_is_shown_and_its_page_stays_until_a_signal(tmp_path, started, kind, number):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 6, 5)))
    arguments = {
        "run": ("run", "x.npy", "--live", "--store", "x.zarr", "--alerts", "none"),
        "demo": ("demo", "--live", "--slices", 20, "--out", "out"),
    }[kind]
    process, address = started(*arguments)
    reached(process, address, 20)
    store = tmp_path / ("x.zarr" if kind == "run" else "out/traffic.zarr")
    while not (store / "zarr.json").exists():
        assert process.poll() is None
        time.sleep(0.1)
    with fetched(address) as (listed, _):
        assert len(listed) == 1
        assert ended(process, number) == 128 + number
