"""DICOM: order, rescaling, volumes."""

import numpy as np
import pytest
from stream_files import SHAPE, dicom_dataset, numbers

from undertow.sources import open_stream


def test_dicom_values_are_rescaled_and_files_ordered_by_instance(made):
    items = list(made("dicom").open().slices())
    np.testing.assert_array_equal([item.values for item in items], 2 * numbers())


def test_dicom_volumes_over_time(tmp_path):
    for t in range(3):
        for location in range(2):
            header = dicom_dataset(2 * numbers()[2 * t + location], 2 * t + location, float(location), 50.0 * t)
            header.save_as(tmp_path / f"{location}_{t}.dcm", enforce_file_format=True)
    stream = open_stream(tmp_path)
    assert stream.shape == (*SHAPE, 2)
    assert stream.dims == ("row", "column", "slice")
    for t, item in enumerate(stream.slices()):
        np.testing.assert_array_equal(item.values[..., 1], 2 * numbers()[2 * t + 1])
        assert item.time == pytest.approx(0.05 * t)
