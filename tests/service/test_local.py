import json
import subprocess
import sys

import httpx
import pytest
from innovations import Drawn
from stubs import GrowingStream, StubStream, StubTracker, load_stub, minute, python_environment, reported_store

from undertow.incidents import Incident
from undertow.runs import run
from undertow.runs.store.reader import open_store
from undertow.service import local
from undertow.service.local import local_page, plain_name, show_store, watched


def asked(page, path):
    return httpx.get(page.address + path).json()


def settled(page, name, count):
    for _ in range(400):
        found = asked(page, f"/api/streams/{name}/series")
        if len(found["sequence"]) == count:
            return found
    raise AssertionError("not all slices are shown")


@pytest.mark.slow
def test_a_run_is_shown_while_it_goes_on(tmp_path):
    stream, model = StubStream(12, times=minute), StubTracker()
    with local_page() as page:
        learned = watched(page, "some/flows.csv", stream)
        run(stream, model, store=tmp_path / "s.zarr", load=load_stub, learned=learned)
        found = settled(page, "flows.csv", 12)
        assert found["time"][1] == "2024-05-01T00:01:00.000Z"
        assert httpx.delete(f"{page.address}/api/streams/flows.csv").status_code == 403
        assert asked(page, "/api/streams/flows.csv")["labels"][0] == ["a", "b", "c"]


@pytest.mark.slow
def test_a_run_that_grows_is_shown_with_all_its_rows(tmp_path):
    stream, model = GrowingStream(12), StubTracker()
    with local_page() as page:
        learned = watched(page, "flows", stream, false_alarms="1/50")
        run(stream, model, store=tmp_path / "s.zarr", load=load_stub, keep="mean", learned=learned)
        settled(page, "flows", 12)
        found = asked(page, "/api/streams/flows")
        assert found["grown"] == [[0, [2, 4]], [3, [3, 4]], [6, [4, 4]], [9, [6, 4]]]
        assert found["labels"][0] == ["r0", "r1", "r2", "r3", "r4", "(free 5)"]
        assert len(asked(page, "/api/streams/flows/slices/11")["mean"]) == 6
        assert len(asked(page, "/api/streams/flows/cell?position=4,0")["sequence"]) == 3


def test_a_finished_run_is_shown(tmp_path):
    store = reported_store(tmp_path / "s.zarr")
    with local_page() as page:
        show_store(page, open_store(store))
        found = settled(page, "stub", 40)
        assert set(found["time"]) == {""}  # it has no dates: none are made up
        assert asked(page, "/api/grafana/series")[0]["time"] is None
        expected = open_store(store)
        assert found["numbers"]["rank"] == expected.per_slice("rank").tolist()
        cell = asked(page, "/api/streams/stub/cell?position=0,1")
        assert cell["mean"][7] == pytest.approx(float(expected.slice("mean", 7)[0, 1]))


def test_incidents_of_a_finished_run_are_shown(tmp_path):
    store = reported_store(tmp_path / "s.zarr")
    told = Incident(1, "row", since=20, last=25, until=25, where="site b", rows=((0, 1),), entries=((1, 0),), count=4)
    lines = [json.dumps({"what": what, **told.to_json()}) + "\n" for what in ("opened", "closed")]
    (store / "incidents.jsonl").write_text("".join(lines))
    with local_page() as page:
        show_store(page, open_store(store))
        settled(page, "stub", 40)
        (found,) = asked(page, "/api/streams/stub/incidents")["incidents"]
        assert (found["where"], found["since"], found["open"]) == ("site b", 20, False)
        assert asked(page, "/api/streams")["read_only"]  # so the page has no buttons that would be refused


@pytest.mark.slow
def test_a_long_run_keeps_the_numbers_of_its_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_HISTORY", 16 * 12 * 30)
    with local_page() as page:
        show_store(page, open_store(reported_store(tmp_path / "s.zarr")))
        assert settled(page, "stub", 30)["sequence"] == list(range(10, 40))


@pytest.mark.slow
def test_a_run_is_watched_at_the_rate_that_it_accepts(tmp_path):
    stream, model = StubStream(100, times=minute), Drawn()
    with local_page() as page:
        learned = watched(page, "flows", stream, false_alarms="1/50")
        run(stream, model, store=tmp_path / "s.zarr", load=load_stub, false_alarms="1/50", learned=learned)
        settled(page, "flows", 100)
        shown = {one["id"]: one["sentence"] for one in asked(page, "/api/streams/flows/incidents")["incidents"]}
    assert shown == {one["id"]: one["sentence"] for one in open_store(tmp_path / "s.zarr").incidents()}
    assert shown


def test_names_of_streams_come_from_paths():
    assert plain_name("/data/täglich flows.csv") == "t-glich-flows.csv"
    assert plain_name("-") == "stream"


@pytest.mark.slow
@pytest.mark.parametrize("absent", ["fastapi", "orjson"])
def test_what_is_missing_is_named_with_the_extra_that_has_it(absent, tmp_path):
    code = f"import sys; sys.modules[{absent!r}] = None; from undertow.cli import main; main()"
    for command in ("serve", "view"):
        arguments = [reported_store(tmp_path / "s.zarr")] if command == "view" else []
        done = subprocess.run(
            [sys.executable, "-c", code, command, *map(str, arguments)],
            env=python_environment(),
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 2
        assert f"needs {absent}: pip install 'undertow[service]'" in " ".join(done.stderr.split())
