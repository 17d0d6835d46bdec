"""What a run wrote, read back by xarray as a user would."""

import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, StubStream, load_stub, slice_at, store_stub

from undertow.runs import run
from undertow.runs.store.reader import open_store


def expected(count=20, shape=(3, 4)):
    model = StubModel()
    return [model.update(slice_at(index, shape)) for index in range(count)]


def test_xarray_finds_dims_labels_and_values(tmp_path):
    store_stub(
        tmp_path / "s", keep="mean,low_rank,std,outliers,outlier_probability,low_rank_std,data", checkpoint_every=6
    )
    found = xr.open_zarr(tmp_path / "s")
    results = expected()
    assert found["mean"].dims == ("time", "site", "column")
    assert found.sizes == {"time": 20, "site": 3, "column": 4}
    assert list(found["site"].values) == ["a", "b", "c"]
    assert "column" not in found.coords
    for name in ("mean", "low_rank", "std", "outliers", "outlier_probability", "low_rank_std"):
        np.testing.assert_array_equal(found[name], np.stack([getattr(r, name) for r in results]).astype(np.float32))
    np.testing.assert_array_equal(found["data"], np.stack([slice_at(t) for t in range(20)]).astype(np.float32))
    np.testing.assert_array_equal(found["rank"], [r.rank for r in results])
    np.testing.assert_array_equal(found["noise_std"], [r.noise_std for r in results])
    np.testing.assert_array_equal(found["evidence"], [r.elbo for r in results])
    assert [str(text) for text in found["status"].values[5:8]] == ["ok", "RANK_FULL", "ok"]
    np.testing.assert_array_equal(found["time"], range(20))
    assert found.sel(site="b").isel(time=3)["mean"].shape == (4,)


def test_values_per_step_are_what_they_say(tmp_path):
    store_stub(tmp_path / "s", threshold=0.4)
    found = xr.open_zarr(tmp_path / "s")
    for index, result in enumerate(expected()):
        x = slice_at(index)
        seen, flagged = ~np.isnan(x), result.outlier_probability >= 0.4
        clean = seen & ~flagged
        assert found["observed"].values[index] == seen.mean()
        assert found["outlier_rate"].values[index] == (seen & flagged).sum() / seen.sum()
        size = np.linalg.norm(x[clean])
        error = np.linalg.norm((x - result.mean)[clean]) / size if size else np.nan
        assert found["fit_error"].values[index] == pytest.approx(error, nan_ok=True)


def test_keep_and_precision(tmp_path):
    store_stub(tmp_path / "s", keep=["outliers"], precision="double")
    found = xr.open_zarr(tmp_path / "s")
    assert {"outliers"} == set(found.data_vars) - {
        "rank", "noise_std", "evidence", "status", "observed", "outlier_rate", "fit_error",
    }  # fmt: skip
    assert found["outliers"].dtype == np.float64
    np.testing.assert_array_equal(found["outliers"], np.stack([r.outliers for r in expected()]))
    store_stub(tmp_path / "none", keep="none")
    assert open_store(tmp_path / "none").kept == ()


class Large(StubModel):
    """Its fifth slice is larger than single precision can hold."""

    def update(self, x):
        result = super().update(x)
        if self.steps == 5:
            result.outliers[0, 0], result.outliers[0, 1] = 1e300, -np.inf
        return result


def load_large(content):
    model = Large()
    vars(model).update(vars(load_stub(content)))
    return model


@pytest.mark.parametrize("precision", ["single", "double"])
def test_what_is_too_large_is_stored_as_the_largest_number_and_said_once(tmp_path, precision):
    summary = run(StubStream(8), Large(), store=tmp_path / "s", load=load_stub, precision=precision)
    found = xr.open_zarr(tmp_path / "s")["outliers"].values
    largest = np.finfo(found.dtype).max
    assert (found[4, 0, 0], found[4, 0, 1]) == (min(1e300, float(largest)), -largest)
    assert np.isfinite(found).all()
    (notice,) = summary.notices
    assert notice.startswith(
        f"outliers of slice 4 holds numbers too large for {precision} precision, stored as the largest, "
    )


def test_a_run_that_an_earlier_version_stopped_there_goes_on(tmp_path):
    run(StubStream(4), Large(), store=tmp_path / "s", load=load_large)
    summary = run(StubStream(8), Large(), store=tmp_path / "s", load=load_large, resume=True)
    assert (summary.slices, len(summary.notices)) == (8, 1)
