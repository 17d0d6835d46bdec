"""Labels that come while a run goes on: slices grow, and the store with them."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import xarray
from stubs import GrowingStream, StubModel, StubTracker, differing_files, everything_in, load_stub

import undertow as ut
from undertow.incidents import Incidents
from undertow.inputs.labels import growing
from undertow.runs import RunError, run
from undertow.runs.places import Places
from undertow.runs.store.reader import open_store
from undertow.runs.verify import verify
from undertow.sources import open_stream
from undertow.sources.capacity import LabelSlots


def grown(store, length=20, resume=False, model=None, **options):
    options = {"checkpoint_every": 4, "keep": "mean,data", "alerts": "csv", "threshold": 0.9, **options}
    return run(GrowingStream(length), model or StubModel(), store=store, load=load_stub, resume=resume, **options)


def test_a_store_grows_and_says_since_when(tmp_path):
    summary = grown(tmp_path / "store")
    assert summary.notices[:3] == tuple(f"site has {n} slots from slice {t} on" for n, t in ((3, 3), (4, 6), (6, 9)))
    dataset = xarray.open_zarr(tmp_path / "store", consolidated=True)
    assert dataset["data"].shape == (20, 8, 4)
    assert dataset["site"].values.tolist() == [*(f"r{number}" for number in range(8))]
    for index, item in enumerate(GrowingStream(20).slices()):
        rows = len(item.values)
        np.testing.assert_array_equal(dataset["data"][index, :rows], item.values.astype(np.float32))
        assert np.isnan(dataset["data"][index, rows:]).all()
        assert not np.isnan(dataset["mean"][index, :rows]).any()
    alerts = (tmp_path / "store" / "alerts.csv").read_text()
    assert any(f",r{number}," in alerts for number in range(3, 8))
    assert "free" not in alerts
    assert not verify(tmp_path / "store").damage


def test_whatever_was_written_is_not_written_anew(tmp_path):
    grown(tmp_path / "store", 9)
    before = everything_in(tmp_path / "store")
    grown(tmp_path / "store", 20, resume=True)
    after = everything_in(tmp_path / "store")
    whole = [name for name in before if name.startswith(("mean/c.0", "mean/c.1", "data/c.0", "data/c.1"))]
    assert len(whole) == 8  # two chunks along time of two chunks of rows, twice
    assert all(before[name] == after[name] for name in whole)


@pytest.mark.slow
@pytest.mark.parametrize("alerts", ["parquet", pytest.param("jsonl", marks=pytest.mark.full)])
def test_stopped_after_any_slice_it_goes_on_as_if_it_had_not(tmp_path, alerts):
    grown(tmp_path / "whole", alerts=alerts)
    for length in range(1, 20, 3):
        grown(tmp_path / "store", length, resume=True, alerts=alerts)
        assert xarray.open_zarr(tmp_path / "store")["mean"].shape[:2] == (
            length,
            GrowingStream().labels[0].size(2 + (length - 1) // 3),
        )
    grown(tmp_path / "store", resume=True, alerts=alerts)
    found, wanted = (
        {name: content for name, content in everything_in(tmp_path / name).items() if "checkpoint" not in name}
        for name in ("store", "whole")
    )
    assert found == wanted


def test_a_chunk_that_is_missing_is_missed(tmp_path):
    grown(tmp_path / "store")
    (tmp_path / "store" / "mean" / "c.3.2.0").unlink()
    with pytest.raises(Exception, match=r"mean/c\.3\.2\.0 is missing"):
        open_store(tmp_path / "store")
    assert verify(tmp_path / "store").damage == ("mean/c.3.2.0 is missing",)
    with pytest.raises(RunError, match=r"mean in .* is missing or damaged"):
        grown(tmp_path / "store", 30, resume=True)


def coming_and_going(store, length=30, resume=False, **options):
    options = {"checkpoint_every": 4, "keep": "mean,data", "load": StubTracker.load, **options}
    return run(GrowingStream(length, stays=6), StubTracker(), store=store, resume=resume, **options)


def test_who_is_silent_for_long_leaves_the_model_and_keeps_its_slot(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 4)
    shapes, rows, let_go = [], [], []
    monkeypatch.setattr(Incidents, "forget", lambda self, mode, slots: let_go.extend((mode, slot) for slot in slots))

    class Watched(StubTracker):
        def update(self, x):
            shapes.append(x.shape)
            result = super().update(x)
            result.events = replace(result.events, rows=((0, 1),))
            return result

        def forget(self, some):
            rows.extend(some[0])
            super().forget(some)

    stream = GrowingStream(30, stays=6)
    summary = run(stream, Watched(), store=tmp_path / "store", keep="mean,std,outlier_probability,data", load=load_stub)
    (told,) = (one for one in summary.notices if "not observed" in one)
    assert told.startswith("site r0: not observed in 4 slices, so nothing is said of it from slice 11 on")
    assert max(shapes) == (6, 4)  # as many as are there together
    assert len(rows) == 7
    assert let_go == [(0, slot) for slot in range(7)]  # whose silence is no incident any more
    assert len(set(rows)) < len(rows)  # a place is lent again
    found = xarray.open_zarr(tmp_path / "store")
    assert found["site"].values.tolist()[:11] == [f"r{n}" for n in range(11)]
    for slot in range(11):
        seen = np.flatnonzero(found["data"][:, slot].notnull().any("column").values)
        told = np.flatnonzero(found["mean"][:, slot].notnull().any("column").values)
        last = min(seen[-1] + 5, 29)
        assert told[-1] == last
        assert not np.isnan(found["outlier_probability"][seen[0] : last + 1, slot]).any()
    # What is said of a place is said of who stands there: place 1 belonged to r1 until slice 14.
    events = found["events"].values.tolist()
    assert "row off: site r1" in events[13]
    assert "row off: site r1" not in events[20]
    assert "row off: site r" in events[20]


def test_who_comes_back_has_the_same_slot_and_is_learned_anew(monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 3)
    labels, model = (LabelSlots(2, (), 8), None), StubModel()
    places, again = Places((2, 3), labels), Places((2, 3), labels)
    here, nothing = np.ones(3), np.full(3, np.nan)

    def learn(index, *rows):
        gone = places.retire(model, index)
        return [slot for _, some in gone for slot in some], places.learn(model, np.stack(rows), None, index)

    for index in range(5):
        assert learn(index, here, 5 * here if index == 0 else nothing)[0] == []
    assert learn(5, here, nothing)[0] == [1]
    kept = places.to_bytes()
    again.restore(kept)
    assert again.to_bytes() == kept
    _, result = learn(6, here, nothing, here)
    assert np.isnan(result.mean).any(axis=1).tolist() == [False, True, False]
    assert (result.outlier_probability[1] == 0).all()
    assert model.mean.shape == (2, 3)
    assert learn(7, here, 7 * here, here)[1].mean.shape == (3, 3)
    assert model.mean.shape == (3, 3)
    assert [str(one) for one in places.labels([["a", "b", "c"], None])[0]] == ["a", "c", "b"]


def test_a_model_that_cannot_forget_keeps_all(monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 1)

    class Sparse(StubModel):
        def forget(self, rows):
            raise ValueError("observed entries only")

    model, places = Sparse(), Places((2, 3), (LabelSlots(2, (), 8), None))
    x = np.ones((2, 3))
    for index in range(6):
        assert places.retire(model, index) == []
        assert not np.isnan(places.learn(model, x, None, index).mean).any()
        x[1] = np.nan


def test_labels_that_go_leave_nothing_in_a_recording_either(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 2)
    lines = [f"{t},r{i},{i + t}" for t in range(12) for i in range(t, t + 3)]
    (tmp_path / "a.csv").write_text("\n".join(["t,src,bytes", *lines, ""]))
    model = StubTracker()
    found = ut.clean(tmp_path / "a.csv", model=model, time="t", modes="src", value="bytes", capacity="src=2")
    assert found["mean"].shape[1] == 16
    assert len(model.mean) == 6
    assert np.isnan(found["mean"].sel(src="r0")).values.tolist() == 4 * [False] + 8 * [True]


@pytest.mark.slow
def test_stopped_after_any_slice_who_comes_and_goes_does_as_if_it_had_not(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 4)
    coming_and_going(tmp_path / "whole")
    for length in range(1, 30, 3):
        coming_and_going(tmp_path / "store", length, resume=True)
    coming_and_going(tmp_path / "store", resume=True)
    assert not differing_files(tmp_path / "store", everything_in(tmp_path / "whole"))


def test_a_model_that_cannot_grow_says_what_to_do(tmp_path):
    class Fixed(StubModel):
        extend = property()

    with pytest.raises(RunError, match=r"Fixed has no method extend\(shape\).*larger --capacity"):
        grown(tmp_path / "store", model=Fixed())
    assert xarray.open_zarr(tmp_path / "store")["mean"].shape == (3, 2, 4)


def test_there_are_as_many_slots_as_were_asked_for_until_they_are_taken():
    slots = LabelSlots(5, (), 20)
    assert [slots.size(taken) for taken in (0, 1, 5, 6, 7, 13, 17, 20)] == [5, 5, 5, 6, 8, 16, 20, 20]


def test_a_million_labels_are_bounded_and_said(tmp_path):
    labels = 5000
    path = tmp_path / "a.csv"
    path.write_text("t,a,x\n0,p,1\n1,q,2\n" + "".join(f"2,{n},1\n" for n in range(labels)))
    with closing(open_stream(path, time="t", modes="a", value="x", capacity="a=2")) as stream:
        sizes = [item.values.size for item in stream.slices()]
        assert sizes == [2, 2, 4096]
        assert any(f"{labels + 2 - 4096} rows were left out of a.csv" in one for one in stream.notices)
    path.write_text("t,a,b,c,x\n0,p,p,p,1\n")
    with closing(open_stream(path, time="t", modes="a,b,c", value="x", capacity=["a=2", "b=2", "c=2..64"])) as stream:
        most = [labels.most for labels in stream.labels]
    assert np.prod(most) <= 2**28
    assert most == [2048, 2048, 64]


def moving(folder, last, slices=24, observed=True, leaves=-1):
    """Flows of a few routers; the last ones come when half of the slices are over, with values or without.

    One of them may leave after a quarter.
    """
    lines = ["t,src,dst,bytes"]
    for t in range(slices):
        here = range(5 if t < slices // 2 else 5 + last)
        for i in (one for one in here if one != leaves or t < slices // 4):
            for j in range(4):
                draw = np.random.default_rng((t, i, j))
                value = 10 * (1 + i) * (1 + j) * (1 + 0.2 * np.sin(t / 3)) + draw.normal()
                lines.append(f"{t},r{i},d{j}," + (f"{value:.4f}" if i < 5 or observed else ""))
    (folder / "a.csv").write_text("\n".join([*lines, ""]))
    return folder / "a.csv"


def flows(path, store, capacity, model=None, **options):
    labels = {"dst": [f"d{j}" for j in range(4)]}
    with closing(
        open_stream(path, time="t", modes="src,dst", value="bytes", capacity=capacity, labels=labels)
    ) as stream:
        return run(stream, model or ut.Tracker(), store=store, checkpoint_every=5, **options)


@pytest.mark.full
@pytest.mark.parametrize("new", [ut.Tracker, lambda: ut.RobustCP(max_rank=3, window=6)])
def test_a_slice_that_grows_changes_nothing_for_the_others(tmp_path, new):
    """As far as sweeps converge, some hundredths of a standard deviation; then whoever has come is learned."""
    flows(moving(tmp_path, 0), tmp_path / "still", "src=5", new())
    flows(moving(tmp_path, 2, observed=False), tmp_path / "grown", "src=5", new())
    flows(moving(tmp_path, 2), tmp_path / "learned", "src=5", new())
    found, wanted, learned = (xarray.open_zarr(tmp_path / one, chunks=None) for one in ("grown", "still", "learned"))
    assert found["mean"].shape == (24, 8, 4)
    assert wanted["mean"].shape == (24, 5, 4)
    away = np.abs(found["mean"][:, :5] - wanted["mean"]) / wanted["std"]
    assert float(away[:12].max()) == 0
    assert float(away.max()) < 5e-2
    error = np.abs(learned["mean"] - learned["data"])[-1, 5:7] / np.abs(learned["data"][-1, 5:7])
    assert float(error.median()) < 0.05


@pytest.mark.full
@pytest.mark.parametrize("new", [ut.Tracker, lambda: ut.RobustCP(max_rank=3, window=6)])
def test_a_model_whose_labels_come_and_go_resumes_bit_for_bit(tmp_path, monkeypatch, new):
    monkeypatch.setattr(growing, "SILENT", 5)
    path = moving(tmp_path, 2, leaves=1)
    flows(path, tmp_path / "whole", "src=5", new())
    for limit in (3, 12, 13, 19):
        flows(path, tmp_path / "store", "src=5", new(), resume=True, limit=limit)
    flows(path, tmp_path / "store", "src=5", new(), resume=True)
    found = xarray.open_zarr(tmp_path / "store", chunks=None)
    assert found["src"].values.tolist()[:7] == [f"r{i}" for i in range(7)]
    assert np.isnan(found["mean"][:, 1]).all("dst").values.tolist() == 12 * [False] + 12 * [True]
    error = np.abs(found["mean"] - found["data"])[-1, 5:7] / np.abs(found["data"][-1, 5:7])
    assert float(error.median()) < 0.05
    found, wanted = (
        {name: content for name, content in everything_in(tmp_path / name).items() if "checkpoint" not in name}
        for name in ("store", "whole")
    )
    assert found == wanted
