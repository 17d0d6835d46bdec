"""NetCDF, HDF5 and Zarr: the time dimension."""

import numpy as np
import pytest
from stream_files import moments

from undertow.sources import StreamError, open_stream


@pytest.mark.slow
def test_the_time_dimension_is_named_or_guessed_or_asked_for(tmp_path):
    import xarray

    def saved(dims, **coords):
        path = tmp_path / f"{'_'.join(dims)}{len(coords)}.nc"
        xarray.DataArray(np.zeros((4, 5, 6)), coords, dims, name="x").to_netcdf(path, engine="h5netcdf")
        return path

    assert open_stream(saved(("a", "b", "Time"))).length == 6
    assert open_stream(saved(("a", "b", "c"), b=moments()[:5].astype("datetime64[ns]"))).time_name == "b"
    vague = saved(("a", "b", "c"))
    with pytest.raises(StreamError, match="dimensions a, b, c, none of them clearly time"):
        open_stream(vague)
    assert open_stream(vague, time_axis="c").length == 6
    assert open_stream(vague, time_axis=1).dims == ("a", "c")
    with pytest.raises(StreamError, match="no dimension 'd'"):
        open_stream(vague, time_axis="d")
