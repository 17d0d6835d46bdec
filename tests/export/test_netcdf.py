"""NetCDF, read back by xarray."""

import numpy as np
import xarray as xr

from undertow.export import export


def test_netcdf_opens_as_the_same_dataset(store, tmp_path):
    path = export(store, tmp_path / "x.nc")
    with xr.open_dataset(path, engine="h5netcdf") as read:
        found = xr.open_zarr(store)
        assert read.sizes == found.sizes
        for name in ("data", "mean", "outliers", "rank", "noise_std", "time"):
            np.testing.assert_array_equal(read[name], found[name])
        assert [str(text) for text in read["site"].values] == ["a", "b", "c"]
        assert [str(text) for text in read["status"].values] == [str(text) for text in found["status"].values]
        assert read.attrs["source"] == "stub"
