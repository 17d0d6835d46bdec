"""Models keep the labels of their stream: results have them, files too."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import undertow as ut

pytestmark = pytest.mark.slow


def slices(count=3):
    rng = np.random.default_rng(0)
    base = np.outer(np.arange(1.0, 7), [1.0, 1, 2, 4, 3])
    values = base * (1 + 0.1 * rng.normal(size=(count, 1, 1))) + 0.01 * rng.normal(size=(count, 6, 5))
    return xr.DataArray(
        values,
        dims=("time", "src", "dst"),
        coords={"time": pd.date_range("2024-01-01", periods=count), "src": list("ABCDEF"), "dst": list("vwxyz")},
        attrs={"units": "Mb"},
    )


@pytest.fixture(scope="module", params=["tracker", "cp"])
def new(request):
    return ut.Tracker if request.param == "tracker" else lambda: ut.RobustCP(max_rank=3, window=4)


@pytest.fixture(scope="module")
def learned(new):
    model = new()
    for x in slices():
        model.update(x)
    return model


def test_labels_change_no_number(new, learned):
    plain, X = new().fit(slices().values), slices(4)
    expected = plain.update(X[3].values)
    model = copy.copy(learned)
    found = model.update(X[3].T.isel(src=[3, 1, 2, 0, 5, 4]))
    for name in ("mean", "std", "outliers", "outlier_probability", "low_rank", "low_rank_std"):
        array = getattr(found, name)
        assert array.dims == ("dst", "src")
        assert array.attrs == {"units": "Mb"}
        assert array.time == X[3].time
        np.testing.assert_array_equal(array.sel(src=list("ABCDEF")).values.T, getattr(expected, name))
        np.testing.assert_array_equal(found.plain(name), getattr(expected, name))
    assert pickle.loads(pickle.dumps(found)).mean.identical(found.mean)


def test_labels_are_saved_and_loaded(learned, tmp_path):
    learned.save(tmp_path / "model.ut")
    for again in (ut.load(tmp_path / "model.ut"), ut.from_bytes(learned.to_bytes()), copy.copy(learned)):
        assert again.labels == learned.labels
        assert again.labels.dims == ("src", "dst")
        assert again.to_bytes() == learned.to_bytes()


def test_a_refused_slice_leaves_labels_and_state_as_they_were(learned):
    before = learned.to_bytes()
    with pytest.raises(ValueError, match="labels of src that are not among"):
        learned.update(slices()[0].assign_coords(src=list("ABCDEX")))
    with pytest.raises(ValueError, match="labels of src that are not among"):
        learned.partial_fit(slices().assign_coords(src=list("ABCDEX")))
    assert learned.to_bytes() == before


def test_labels_can_be_given_first(new):
    model = new()
    model.labels = {"src": list("ABCDEF"), "dst": list("vwxyz")}
    with pytest.raises(ValueError, match=r"x must have one entry per label, src 6, dst 5, got shape \(4, 3\)"):
        model.update(np.ones((4, 3)))
    result = model.update(slices()[0].sel(src=["F", "B"]))
    assert result.mean.shape == (6, 5)
    with pytest.raises(ValueError, match="one entry per label"):
        model.labels = {"src": ["A"], "dst": ["v"]}


def test_frames_can_be_fitted(new):
    X = slices()
    wide = X.stack(entry=("src", "dst")).to_pandas()
    model = new().fit(wide.iloc[:2]).partial_fit(wide.iloc[2:, ::-1])
    assert model.labels.dims == ("src", "dst")
    transformed = model.transform(wide.iloc[:, ::-1])
    pd.testing.assert_index_equal(transformed.columns, wide.columns[::-1])
    plain = model.transform(X.values).reshape(3, 30)[:, ::-1]
    np.testing.assert_array_equal(transformed.to_numpy(), plain)
    xr.testing.assert_identical(model.transform(X).coords.to_dataset(), X.coords.to_dataset())
    means = new().fit_transform(wide)
    pd.testing.assert_index_equal(means.columns, wide.columns)
    np.testing.assert_array_equal(means.to_numpy().reshape(3, 6, 5), new().fit_transform(X.values))
    seen = []
    across = X.transpose("src", "time", "dst")
    assert new().fit_transform(across, progress=lambda *done: seen.append(done)).dims == across.dims
    assert seen == [(1, 3), (2, 3), (3, 3)]
    result = model.update(X[0].to_pandas())
    assert isinstance(result.mean, pd.DataFrame)
    assert result.mean.index.name == "src"


def test_an_array_of_jax_is_a_slice(learned):
    import jax.numpy as jnp

    result = copy.copy(learned).update(jnp.asarray(slices()[0].values))
    assert type(result.mean) is np.ndarray
