"""What a source holds, and what opening one needs."""

import builtins
import subprocess
import sys

import numpy as np
import pytest
from stream_files import LENGTH, MAKERS, SHAPE, SOURCES, TARGETS, labelled, moments, numbers

from undertow.sources import StreamError, open_stream
from undertow.sources.describe import describe


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_format_can_be_described(name, made):
    found = describe(made(name).path, **made(name).options)
    assert found["slices_read"] >= LENGTH
    assert found["missing"] == 0
    assert found["smallest"] < found["largest"]


def test_a_description_holds_what_is_there():
    data = labelled().where(labelled() < 100)
    found = describe(data, slices=2)
    assert (found["shape"], found["modes"], found["times"], found["slices"]) == (SHAPE, ("src", "dst"), "time", LENGTH)
    assert found["labels"] == {"src": tuple(SOURCES), "dst": tuple(TARGETS)}
    assert (found["first_time"], found["last_time"]) == (moments()[0], moments()[-1])
    assert found["step"] == np.timedelta64(5, "m")
    assert found["slices_read"] == 2
    assert found["missing"] == pytest.approx((numbers()[:2] >= 100).mean())
    assert found["largest"] == numbers()[:2][numbers()[:2] < 100].max()


def test_an_open_stream_can_be_described_and_read_afterwards():
    stream = open_stream(numbers())
    assert describe(stream)["slices"] == LENGTH
    assert len(list(stream.slices())) == LENGTH


def test_importing_loads_neither_jax_nor_any_optional_package():
    heavy = ["jax", "xarray", "zarr", "h5py", "pyarrow", "av", "PIL", "nibabel", "pydicom", "scipy", "pandas"]
    program = f"import sys, undertow.sources.describe; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("csv", "pyarrow", "table"),
        ("parquet", "pyarrow", "table"),
        ("zarr", "xarray", "store"),
        ("netcdf", "xarray", "store"),
        ("hdf5", "h5py", "store"),
        ("mat5", "scipy", "matlab"),
        ("mat73", "h5py", "matlab"),
        ("video", "av", "video"),
        ("images", "PIL", "images"),
        ("nifti", "nibabel", "mri"),
        ("dicom", "pydicom", "mri"),
    ],
)
def test_a_missing_package_is_one_sentence_with_the_command(name, package, extra, made, monkeypatch):
    file, real = made(name), builtins.__import__

    def without(module, *arguments, **named):
        if module.split(".")[0] == package:
            raise ImportError(module)
        return real(module, *arguments, **named)

    for loaded in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StreamError, match=rf"pip install 'undertow\[{extra}\]'") as caught:
        open_stream(file.path, **file.options)
    assert "\n" not in str(caught.value)


def test_several_variables_are_listed(tmp_path, made):
    import h5py
    from scipy.io import savemat

    two = labelled().to_dataset().assign(other=labelled() * 2)
    two.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    two.to_zarr(tmp_path / "a.zarr")
    np.savez(tmp_path / "a.npz", flow=numbers(), other=2 * numbers())
    savemat(tmp_path / "a.mat", {"flow": np.moveaxis(numbers(), 0, -1), "other": np.moveaxis(2 * numbers(), 0, -1)})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/flow"], file["g/other"] = numbers(), 2 * numbers()
    for name in ("a.nc", "a.zarr", "a.npz", "a.mat", "a.h5"):
        with pytest.raises(StreamError, match=r"several arrays, (g/)?flow .*other .*: name one of them with variable"):
            open_stream(tmp_path / name)
        chosen = "g/other" if name == "a.h5" else "other"
        items = list(open_stream(tmp_path / name, variable=chosen).slices())
        np.testing.assert_array_equal([item.values for item in items], 2 * numbers())
        with pytest.raises(StreamError):
            open_stream(tmp_path / name, variable="third")


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
