"""NIfTI, read back by nibabel."""

import hashlib

import nibabel
import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, load_stub

from undertow.export import export
from undertow.runs import run
from undertow.sources import open_stream


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_nifti_holds_volumes_over_time(store, tmp_path, name):
    path = export(store, tmp_path / name)
    values = np.asarray(nibabel.load(path).dataobj)
    assert values.shape == (3, 4, 1, 12)
    np.testing.assert_array_equal(np.moveaxis(values[:, :, 0], -1, 0), xr.open_zarr(store)["mean"])
    first = hashlib.sha256(path.read_bytes()).digest()
    assert hashlib.sha256(export(store, tmp_path / name).read_bytes()).digest() == first


def test_affine_size_of_voxels_and_units_are_kept(tmp_path):
    affine = np.array([[-2.0, 0, 0, 90], [0, 2, 0, -126], [0, 0, 3, -72], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(np.random.default_rng(0).normal(size=(3, 4, 2, 12)).astype("f4"), affine)
    image.header.set_xyzt_units("mm", "msec")
    image.header.set_zooms((2, 2, 3, 1500))
    nibabel.save(image, tmp_path / "scan.nii.gz")
    run(tmp_path / "scan.nii.gz", StubModel(), store=tmp_path / "scan.zarr", load=load_stub)
    found = nibabel.load(export(tmp_path / "scan.zarr", tmp_path / "mean.nii.gz"))
    np.testing.assert_array_equal(found.affine, affine)
    assert found.header.get_zooms() == (2, 2, 3, 1500)
    assert found.header.get_xyzt_units() == ("mm", "msec")
    assert found.header["sform_code"] == image.header["sform_code"]
    cut = open_stream(tmp_path / "scan.nii.gz", select={"x": "0:2"})
    assert cut.notices == ["slices of scan.nii.gz are cut or resized: where its volumes lie (the affine) is not kept"]
    assert not open_stream(tmp_path / "scan.nii.gz").notices
