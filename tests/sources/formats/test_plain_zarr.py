"""A Zarr folder that is one array, without names."""

import numpy as np
import pytest
import zarr

from undertow.sources.base import StreamError
from undertow.sources.opening import open_stream

X = np.arange(24.0).reshape(4, 3, 2)


@pytest.mark.parametrize("version", [2, 3])
def test_a_plain_array_is_a_stream_along_its_first_axis(tmp_path, version):
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(3, 3, 2), zarr_format=version)
    stream = open_stream(tmp_path / "x.zarr")
    np.testing.assert_array_equal([item.values for item in stream.slices()], X)
    assert open_stream(tmp_path / "x.zarr", time_axis=2).shape == (4, 3)
    with pytest.raises(StreamError, match="time_axis must be from 0 to 2"):
        open_stream(tmp_path / "x.zarr", time_axis=5)
