"""The commands that show a page: started as a user starts them, the page fetched, ended in order by a signal."""

import signal

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


def fetched(address):
    """The page, what it asks for first, and its connection, which stays open."""
    assert "<title>Undertow</title>" in httpx.get(address).text
    assert httpx.get(address + "/page/main.js").status_code == 200
    listed = httpx.get(address + "/api/streams").json()["streams"]
    live = connect(address.replace("http://", "ws://") + "/api/live", subprotocols=["undertow"])
    if listed:
        live.send('{"watch": "' + listed[0]["name"] + '"}')
    return listed, live


def ended(process, number, patience=PATIENCE):
    process.send_signal(number)
    try:
        return process.wait(patience)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", SIGNALS)
def test_serve_ends_in_order_with_pages_open(tmp_path, number):
    process, address = command("serve", "--port", 0, "--store", tmp_path / "s.db", folder=tmp_path)
    _, live = fetched(address)
    assert ended(process, number) == 0
    live.close()
    assert not (tmp_path / "s.db-wal").exists()  # the store was closed


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
def test_the_demo_of_the_service_fills_its_page(tmp_path, number):
    process, address = command("serve", "--demo", "--port", 0, "--store", tmp_path / "s.db", folder=tmp_path)
    with httpx.Client(base_url=address, timeout=120) as client:
        while not all(client.get(f"/api/streams/{name}").json().get("next", 0) for name in ("network-east", "sensors")):
            assert process.poll() is None
    listed, live = fetched(address)
    assert [one["name"] for one in listed][:2] == ["network-east", "network-west"]
    assert isinstance(live.recv(60), (str, bytes))
    assert ended(process, number, patience=300) == 0  # slices that it has accepted are learned first
    live.close()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_finished_run_is_shown_until_a_signal(tmp_path, number):
    process, address = command("view", reported_store(tmp_path / "s.zarr"), folder=tmp_path)
    while not (shown := httpx.get(address + "/api/streams").json()["streams"]) or shown[0]["next"] < 40:
        assert process.poll() is None
    _, live = fetched(address)
    assert ended(process, number) == 128 + number
    live.close()


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", ["run", "demo"])
def test_a_run_is_shown_and_its_page_stays_until_a_signal(tmp_path, kind, number):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 6, 5)))
    arguments = {
        "run": ("run", "x.npy", "--live", "--store", "x.zarr", "--alerts", "none"),
        "demo": ("demo", "--live", "--slices", 20, "--out", "out"),
    }[kind]
    process, address = command(*arguments, folder=tmp_path)
    while not (shown := httpx.get(address + "/api/streams").json()["streams"]) or shown[0]["next"] < 20:
        assert process.poll() is None
    listed, live = fetched(address)
    assert len(listed) == 1
    store = tmp_path / ("x.zarr" if kind == "run" else "out/traffic.zarr")
    while not (store / "zarr.json").exists():
        assert process.poll() is None
    assert ended(process, number) == 128 + number
    live.close()
