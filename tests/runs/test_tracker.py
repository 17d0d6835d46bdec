"""Runs of a tracker: weights and events are kept, and resuming is exact."""

import json

import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, StubStream, StubTracker, differing_files, everything_in, run_stub

import undertow as ut
from undertow.export import export
from undertow.runs import RunError, run
from undertow.runs.identity import require_same
from undertow.runs.store.layout import DEFAULT_KEEP


def tracked(folder, **options):
    return run(StubStream(20), StubTracker(), store=folder, load=StubTracker.load, checkpoint_every=4, **options)


def test_weights_and_events_are_in_the_store(tmp_path):
    seen = []
    summary = tracked(tmp_path / "s", progress=seen.append)
    found = xr.open_zarr(tmp_path / "s", chunks=None)
    assert found["weights"].dims == ("time", "predictor")
    assert list(found["predictor"].values) == ["level", "covariance", "cp"]
    np.testing.assert_allclose(found["weights"][:2], [[0.5, 0.25, 0.25], [0.5, 0.5, 0]])
    assert found["events"].values[[0, 2, 4]].tolist() == ["", "slice off", "row off: site b"]
    assert seen[5].events == "row off: site b"
    assert summary.events == ("slice 2: slice off", "slice 4–7: row off: site b", "slice 12–19: dead: c 3")


def test_stopped_and_resumed_is_the_same(tmp_path):
    tracked(tmp_path / "whole")
    for stop in (3, 9, None):
        tracked(tmp_path / "pieces", limit=stop, resume=True)
    assert not differing_files(tmp_path / "pieces", everything_in(tmp_path / "whole"))


def test_weights_and_events_are_exported(tmp_path):
    tracked(tmp_path / "s")
    with xr.open_dataset(export(tmp_path / "s", tmp_path / "x.nc"), engine="h5netcdf") as file:
        np.testing.assert_allclose(file["weights"].sum("predictor"), 1)
        assert str(file["events"].values[2]) == "slice off"


@pytest.mark.parametrize("first", ["mean", "low_rank"])
def test_an_earlier_default_of_what_is_kept_is_gone_on_with(tmp_path, first):
    former = {"keep": f"{first},std,outliers,outlier_probability", "checkpoint_every": None, "alerts": "csv"}
    now = {**former, "keep": DEFAULT_KEEP}
    run_stub(tmp_path / "s", limit=9, **former)
    assert run_stub(tmp_path / "s", resume=True, **now).new_slices == 21
    found = xr.open_zarr(tmp_path / "s", chunks=None)
    assert first in found
    assert "data" not in found


def test_another_model_is_refused_in_one_sentence(tmp_path):
    class Tracker(StubModel):
        pass

    class RobustCP(StubModel):
        pass

    run_stub(tmp_path / "s", limit=5, model=RobustCP())
    with pytest.raises(RunError, match=r"was started with RobustCP, and this is Tracker: use .* \(--model cp\), or "):
        run_stub(tmp_path / "s", resume=True, model=Tracker())
    assert run_stub(tmp_path / "s", resume=True, model=RobustCP()).new_slices == 25


def test_a_checkpoint_of_an_earlier_version_is_one_of_robust_cp(tmp_path):
    same = {"source": "x", "name": "x", "layout": {"dims": [], "labels": ""}}
    stored = {**same, "model": {"preset": "default"}}
    with pytest.raises(RunError, match="was started with RobustCP, and this is Tracker"):
        require_same(stored, {**same, "kind": "Tracker", "model": {}}, tmp_path)
    require_same(stored, {**stored, "kind": "RobustCP"}, tmp_path)


@pytest.mark.slow
def test_a_tracker_resumes_exactly(tmp_path):
    draw = np.random.default_rng(5)
    x = 20 + np.outer(np.arange(1.0, 7), np.arange(1.0, 6)) + draw.normal(size=(14, 6, 5))
    x[draw.random(x.shape) < 0.2] = np.nan
    np.save(tmp_path / "x.npy", x)
    options = {"checkpoint_every": 3}
    ut.run(tmp_path / "x.npy", store=tmp_path / "whole", **options)
    for stop in (5, None):
        ut.run(tmp_path / "x.npy", store=tmp_path / "pieces", limit=stop, resume=True, **options)
    assert not differing_files(tmp_path / "pieces", everything_in(tmp_path / "whole"))
    found = xr.open_zarr(tmp_path / "whole", chunks=None)
    assert found.attrs["kind"] == "Tracker"
    assert "scale" in json.loads(found.attrs["settings_in_force"])
    np.testing.assert_allclose(found["weights"].sum("predictor"), 1, rtol=1e-5)
    assert float(abs(found["mean"][8:] - x[8:]).median()) < 2
