"""CSV."""

import csv

import numpy as np
import xarray as xr
from stubs import StubStream, store_stub

from undertow.export import export


def test_csv_has_a_row_for_every_entry(store, tmp_path):
    done = []
    path = export(store, tmp_path / "x.csv", progress=done.append)
    assert done[-1] == 12
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    found = xr.open_zarr(store)
    assert list(rows[0]) == ["time", "site", "column", "mean", "outliers", "data"]
    assert len(rows) == 12 * 3 * 4
    mean = np.array([row["mean"] for row in rows], np.float32).reshape(12, 3, 4)
    np.testing.assert_array_equal(mean, found["mean"])
    data = np.array([row["data"] or "nan" for row in rows], np.float32).reshape(12, 3, 4)
    np.testing.assert_array_equal(data, found["data"])
    assert (rows[13]["time"][:19], rows[13]["site"], rows[13]["column"]) == ("2024-05-01T00:01:00", "a", "1")
    few = export(store, tmp_path / "y.csv", variables=["data"])
    assert few.read_text().startswith("time,site,column,data\n")


def test_formulas_are_text_on_request(tmp_path):
    stream = StubStream(2, times=lambda index: f"-{index}")
    stream.labels = (("=1+1", "north", "+4"), None)
    store_stub(tmp_path / "s", stream)
    plain = export(tmp_path / "s", tmp_path / "x.csv").read_text()
    safe = export(tmp_path / "s", tmp_path / "y.csv", spreadsheet_safe=True).read_text()
    assert "\n-0,=1+1,0," in plain
    assert "\n'-0,'=1+1,0," in safe
    assert safe.replace("'", "") == plain
