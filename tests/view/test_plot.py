"""`ut.plot.entry`: from a Dataset and from a store."""

import numpy as np
import pytest
from stubs import StubModel, StubStream

import undertow as ut
from undertow.runs import run

xarray = pytest.importorskip("xarray")
pytest.importorskip("matplotlib")


def dataset():
    mean = xarray.DataArray(np.arange(24.0).reshape(4, 3, 2), dims=("hour", "src", "dst"))
    whole = xarray.Dataset({"mean": mean, "std": mean * 0 + 2, "outlier_probability": (mean == 13) * 0.9})
    return whole.assign(data=mean + 10 * (mean == 13)).assign_coords(src=["A", "B", "C"], hour=[10, 11, 12, 13])


def test_an_entry_of_a_dataset_is_drawn_with_band_and_flags():
    axes = ut.plot.entry(dataset(), src="A", dst=1)
    mean, clean, flagged = axes.get_lines()
    assert mean.get_ydata().tolist() == [1, 7, 13, 19]
    assert clean.get_xdata().tolist() == [10, 11, 13]
    assert flagged.get_ydata().tolist() == [23]
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(19 + 1.96 * 2)
    assert axes.get_title(loc="left") == "src A, dst 1"
    assert axes.get_xlabel() == "hour"


def test_a_mode_may_be_called_as_the_argument_is():
    axes = ut.plot.entry(dataset().rename(src="source"), source="B", dst=0)
    assert axes.get_title(loc="left") == "source B, dst 0"


def test_axes_of_ones_own_are_used():
    first = ut.plot.entry(dataset(), src="A", dst=1)
    assert ut.plot.entry(dataset(), ax=first, src="B", dst=0) is first


def test_an_entry_of_a_store_is_drawn(tmp_path):
    run(StubStream(), StubModel(), store=tmp_path / "s.zarr", keep="mean,std,data,outlier_probability")
    axes = ut.plot.entry(tmp_path / "s.zarr", site="b", column=2)
    assert axes.get_title(loc="left") == "site b, column 2"
    assert len(axes.get_lines()[0].get_xdata()) == 20


@pytest.mark.parametrize(
    ("labels", "named"),
    [({"src": "D", "dst": 0}, "src must be one of A, B, C, got 'D'"), ({"src": "A"}, "a label for each of src, dst")],
)
def test_other_entries_are_refused(labels, named):
    with pytest.raises(ValueError, match=named):
        ut.plot.entry(dataset(), **labels)


def test_a_dataset_without_results_is_refused():
    with pytest.raises(ValueError, match="source must hold mean and std"):
        ut.plot.entry(xarray.Dataset({"x": ("time", [1.0])}))
