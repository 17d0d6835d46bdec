"""What is opened: recognised by name and content, or refused in one sentence; packages are loaded when needed."""

import builtins
import io
import subprocess
import sys

import numpy as np
import pytest
from stream_files import numbers

from undertow.sources import StreamError, open_stream


def test_names_that_show_no_format(tmp_path):
    (tmp_path / "a.xyz").write_bytes(b"what is this")
    (tmp_path / "empty").mkdir()
    for name in ("a.xyz", "empty"):
        with pytest.raises(StreamError, match="format"):
            open_stream(tmp_path / name)
    with pytest.raises(StreamError, match="format must be one of"):
        open_stream(tmp_path / "a.xyz", format="xyz")
    buffer = io.BytesIO()
    np.save(buffer, numbers())
    (tmp_path / "array.data").write_bytes(buffer.getvalue())
    assert open_stream(tmp_path / "array.data").format == "npy"


@pytest.mark.parametrize("source", [7, None, "no/such/file.npy", {"a": 1}, "/dev/null"])
def test_anything_else_is_refused_in_one_sentence(source):
    with pytest.raises(StreamError):
        open_stream(source)


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


def test_a_slice_of_too_many_modes_is_refused():
    assert open_stream(np.zeros((2,) + (1,) * 12)).shape == (1,) * 12
    with pytest.raises(StreamError, match="at most 12 modes, got 13"):
        open_stream(np.zeros((2,) + (1,) * 13))
