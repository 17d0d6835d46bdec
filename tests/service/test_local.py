import httpx
import pytest
from stubs import StubStream, StubTracker, load_stub, minute, reported_store

from undertow.runs import run
from undertow.runs.store.reader import open_store
from undertow.service.local import local_page, plain_name, show_store, watched


def asked(page, path):
    return httpx.get(page.address + path).json()


def settled(page, name, count):
    for _ in range(400):
        found = asked(page, f"/api/streams/{name}/series")
        if len(found["sequence"]) == count:
            return found
    raise AssertionError("not all slices are shown")


def test_a_run_is_shown_while_it_goes_on(tmp_path):
    stream, model = StubStream(12, times=minute), StubTracker()
    with local_page() as page:
        watched(page, "some/flows.csv", stream, model)
        run(stream, model, store=tmp_path / "s.zarr", load=load_stub)
        found = settled(page, "flows.csv", 12)
        assert found["time"][1] == "2024-05-01T00:01:00.000Z"
        assert httpx.delete(f"{page.address}/api/streams/flows.csv").status_code == 403
        assert asked(page, "/api/streams/flows.csv")["labels"][0] == ["a", "b", "c"]


def test_a_finished_run_is_shown(tmp_path):
    store = reported_store(tmp_path / "s.zarr")
    with local_page() as page:
        show_store(page, open_store(store))
        found = settled(page, "stub", 40)
        expected = open_store(store)
        assert found["numbers"]["rank"] == expected.per_slice("rank").tolist()
        cell = asked(page, "/api/streams/stub/cell?position=0,1")
        assert cell["mean"][7] == pytest.approx(float(expected.slice("mean", 7)[0, 1]))


def test_names_of_streams_come_from_paths():
    assert plain_name("/data/täglich flows.csv") == "t-glich-flows.csv"
    assert plain_name("-") == "stream"
