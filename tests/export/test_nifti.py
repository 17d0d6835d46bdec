"""NIfTI, read back by nibabel."""

import hashlib

import nibabel
import numpy as np
import pytest
import xarray as xr

from undertow.export import export


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_nifti_holds_volumes_over_time(store, tmp_path, name):
    path = export(store, tmp_path / name)
    values = np.asarray(nibabel.load(path).dataobj)
    assert values.shape == (3, 4, 1, 12)
    np.testing.assert_array_equal(np.moveaxis(values[:, :, 0], -1, 0), xr.open_zarr(store)["mean"])
    first = hashlib.sha256(path.read_bytes()).digest()
    assert hashlib.sha256(export(store, tmp_path / name).read_bytes()).digest() == first
