"""Slices that cannot be used: a run stops at them with the remedy, and resuming with that remedy goes on."""

import io
import json
import sys
from contextlib import closing, suppress

import numpy as np
import pytest
import xarray
from stubs import StubModel, StubStream, everything_in, load_stub, store_stub

from undertow.runs import RunError, run
from undertow.sources import open_stream
from undertow.sources.base import StreamError

SHAPE = (2, 3)


def stored(folder):
    import zarr

    return zarr.open_group(folder, mode="r")["time"][:].tolist()


def json_slices(times, infinite_at=None):
    rows = []
    for index, time in enumerate(times):
        values = np.arange(6.0).reshape(SHAPE) + index
        values[0, 1] = np.inf if index == infinite_at else values[0, 1]
        rows.append(json.dumps({"time": time, "values": values.tolist()}))
    return "\n".join(rows) + "\n"


def run_file(path, store, stream_options=None, **options):
    with closing(open_stream(path, **(stream_options or {}))) as stream:
        return run(stream, StubModel(), store=store, load=load_stub, **options)


@pytest.mark.parametrize(
    ("times", "message", "kept"),
    [
        ([0, 1, "noon", 3], "of another kind", [0, 1, 3]),
        ([0, 1, None, 3], "of another kind", [0, 1, 3]),
        ([0, 1, 2**63, 3], "64 bits cannot hold", [0, 1, 3]),
        ([0.5, 1.5, 2**2000, 3.5], "64 bits cannot hold", [0.5, 1.5, 3.5]),
        (["a", "b", "\ud800", "d"], "lone surrogate", ["a", "b", "d"]),
        ([2**63, 1, 2, 3], "64 bits cannot hold", [1, 2, 3]),
    ],
)
def test_a_bad_time_stops_the_run_and_the_remedy_resumes_it(tmp_path, times, message, kept):
    (tmp_path / "a.jsonl").write_text(json_slices(times))
    with pytest.raises(RunError, match=rf"{message}.*--on-bad skip"):
        run_file(tmp_path / "a.jsonl", tmp_path / "store")
    told = []
    summary = run_file(tmp_path / "a.jsonl", tmp_path / "store", resume=True, on_bad="skip", notify=told.append)
    assert summary.slices == 3
    assert stored(tmp_path / "store") == kept
    assert any("1 slice of a.jsonl could not be used and was left out" in sentence for sentence in told)


@pytest.mark.parametrize("remedy", [{"on_bad": "skip"}, {"missing_value": "inf,-inf"}])
def test_one_infinite_value_stops_the_run_and_both_remedies_resume_it(tmp_path, remedy):
    (tmp_path / "a.jsonl").write_text(json_slices(range(4), infinite_at=2))
    with pytest.raises(RunError, match=r"slice 2 of a.jsonl holds an infinite value.*missing_value='inf,-inf'.*on_bad"):
        run_file(tmp_path / "a.jsonl", tmp_path / "store", keep="data")
    summary = run_file(tmp_path / "a.jsonl", tmp_path / "store", remedy, keep="data", resume=True)
    assert summary.slices == 4
    assert stored(tmp_path / "store") == [0, 1, 2, 3]
    assert any("another way from here on" in sentence for sentence in summary.notices)


def test_a_store_of_another_source_is_still_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(json_slices(range(4)))
    run_file(tmp_path / "a.jsonl", tmp_path / "store")
    with pytest.raises(RunError, match="another source"):
        run_file(tmp_path / "a.jsonl", tmp_path / "store", {"missing_value": "0", "on_bad": "skip"}, resume=True)


def test_a_slice_that_the_model_refuses_is_skipped_on_request(tmp_path):
    class Fussy(StubModel):
        def update(self, x):
            if self.steps == 3:
                self.steps += 1
                raise ValueError("x must be nice: make it so")
            return super().update(x)

    summary = run(StubStream(6), Fussy(), store=tmp_path / "store", load=load_stub, on_bad="skip")
    assert summary.slices == 5
    assert summary.notices == ("1 slice of stub could not be used and was left out, the first: x must be nice",)


def send(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content.encode()))))


def test_a_resumed_pipe_is_compared_and_new_data_is_taken_on_request(tmp_path, monkeypatch):
    store = tmp_path / "store"
    send(monkeypatch, json_slices(range(5)))
    run_file("-", store, limit=3)
    send(monkeypatch, json_slices(range(5, 9)))
    with pytest.raises(RunError, match=r"brings other data .* --new-data"):
        run_file("-", store, resume=True)
    assert stored(store) == [0, 1, 2]
    send(monkeypatch, json_slices(range(5)))
    assert run_file("-", store, resume=True).new_slices == 2
    send(monkeypatch, json_slices(range(5, 9)))
    assert run_file("-", store, resume=True, new_data=True).slices == 9
    assert stored(store) == list(range(9))


def test_new_data_goes_with_resume_and_with_pipes_only(tmp_path):
    with pytest.raises(RunError, match="--resume --new-data"):
        store_stub(tmp_path / "store", new_data=True)
    store_stub(tmp_path / "store")
    with pytest.raises(RunError, match="new_data is for pipes"):
        store_stub(tmp_path / "store", resume=True, new_data=True)


def test_a_table_that_got_new_labels_is_resumed_with_those_of_the_store(tmp_path):
    path, store = tmp_path / "a.csv", tmp_path / "store"
    columns = {"time": "t", "modes": "a", "value": "x"}
    path.write_text("t,a,x\n0,p,1\n0,q,2\n1,p,3\n")
    run_file(path, store, columns)
    path.write_text("t,a,x\n0,p,1\n0,q,2\n1,p,3\n2,p,4\n2,r,5\n")
    with pytest.raises(RunError, match=r"has other labels than when .*--labels.*--on-bad skip"):
        run_file(path, store, columns, resume=True)
    remedy = {"labels": ["a=p,q"], "on_bad": "skip"}
    assert run_file(path, store, columns | remedy, resume=True).slices == 3


def test_labels_appear_where_a_slot_is_free(tmp_path):
    """Through stops and --resume, too; a label has its slot for good, and one without a slot is said."""
    path, rows = tmp_path / "a.csv", ["0,q,1", "0,p,2", "1,p,3", "2,p,4", "2,r,50", "3,r,60", "3,s,7", "4,p,1"]
    options = {"time": "t", "modes": "a", "value": "x", "capacity": ["a=2..3"], "follow": True, "idle": 0}
    for length in (4, 6, 8):
        path.write_text("\n".join(["t,a,x", *rows[:length], ""]))
        summary = run_file(path, tmp_path / "store", options, resume=True)
        dataset = xarray.open_zarr(tmp_path / "store", consolidated=True)
        named = dataset["a"].values.tolist()
        assert named == (["q", "p"] if length == 4 else ["q", "p", "r"])  # the mode has grown
    np.testing.assert_array_equal(dataset["data"].sel(a="r").values, [np.nan, np.nan, 50, 60])
    assert any(
        "1 row was left out of a.csv, since a had no slot free for their labels: give a larger --capacity than 3" in one
        for one in summary.notices
    )
    run_file(path, tmp_path / "whole", options)
    grown, whole = (
        {name: content for name, content in everything_in(tmp_path / store).items() if not name.startswith(".undertow")}
        for store in ("store", "whole")
    )
    assert grown == whole
    alerts = (tmp_path / "store" / "alerts.csv").read_text()
    assert ",r," in alerts
    assert "free" not in alerts


@pytest.mark.parametrize(("options", "message"), [
    ({"capacity": "a=0"}, "capacity must have the form src=16"),
    ({"capacity": "a=8..4"}, "capacity must have the form src=16, or src=16..64"),
    ({"capacity": "a=2..3..4"}, "capacity must have the form src=16"),
    ({"capacity": {"a": (2, 0)}}, "capacity must have the form src=16"),
    ({"capacity": "a=2", "resize": {"a": 1}}, "resize and mask need the size of a slice"),
    ({"capacity": "a=2", "mask": np.ones(2)}, "resize and mask need the size of a slice"),
    ({"capacity": {"b": 3}}, "capacity names b, but the modes are a"),
    ({"capacity": {"a": 3}, "select": "a=p"}, "cannot choose among labels of a that are still to come"),
    ({"capacity": {"a": 1}, "labels": {"a": ["p", "q"]}}, "capacity of a must hold its 2 labels, got 1"),
])  # fmt: skip
def test_a_capacity_is_refused_in_a_sentence(tmp_path, options, message):
    path = tmp_path / "a.csv"
    path.write_text("t,a,x\n0,p,1\n0,q,2\n1,p,3\n")
    with pytest.raises(StreamError, match=message):
        open_stream(path, time="t", modes="a", value="x", **options)


def test_capacity_is_for_rows_in_order(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,a,x\n1,p,1\n0,q,2\n")
    with pytest.raises(StreamError, match="not in the order of their times, and capacity is for labels that come"):
        open_stream(path, time="t", modes="a", value="x", capacity="a=3")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_grows_row_by_row_gives_the_same_store(tmp_path, seed):
    draw = np.random.default_rng(seed)
    rows = [f"{t},{a},{draw.normal():.3f}" for t in range(12) for a in "pqr" if draw.random() < 0.8]
    columns = {"time": "t", "modes": "a", "value": "x", "labels": {"a": list("pqr")}}
    path = tmp_path / "a.csv"
    for length in sorted(draw.choice(len(rows), size=8)):
        path.write_text("\n".join(["t,a,x", *rows[:length], rows[length][:3]]))  # the last line is not complete yet
        with suppress(RunError):  # before the second time begins, there is no slice yet
            run_file(path, tmp_path / "store", columns | {"follow": True, "idle": 0}, resume=True)
    path.write_text("\n".join(["t,a,x", *rows, ""]))
    run_file(path, tmp_path / "store", columns, resume=True)
    run_file(path, tmp_path / "whole", columns)
    grown, whole = (
        {name: content for name, content in everything_in(tmp_path / store).items() if not name.startswith(".undertow")}
        for store in ("store", "whole")
    )
    assert grown == whole
