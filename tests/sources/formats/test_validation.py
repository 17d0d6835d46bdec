"""HDF5 files and Zarr folders that are refused before they are read."""

import json
import pickle

import pytest
from stream_files import Trap, numbers

from undertow.sources import StreamError, open_stream


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_codecs_that_unpickle_are_refused(version, tmp_path):
    import xarray

    trace, path = tmp_path / "trace", tmp_path / "a.zarr"
    array = xarray.DataArray(numbers(), {"a": [f"s{i}" for i in range(6)]}, ("time", "a", "b"), name="x")
    array.to_dataset().to_zarr(path, zarr_format=version, consolidated=False)
    labels = path / "a"
    if version == 2:
        about = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "|O", "compressor": None, "fill_value": 0}
        about |= {"filters": [{"id": "pickle", "protocol": 5}], "order": "C", "dimension_separator": "."}
        (labels / ".zarray").write_text(json.dumps(about))
        (labels / "0").write_bytes(pickle.dumps([Trap(trace)]))
    else:
        about = json.loads((labels / "zarr.json").read_text())
        about["codecs"] = [{"name": "numcodecs.pickle", "configuration": {"protocol": 5}}]
        (labels / "zarr.json").write_text(json.dumps(about))
        (labels / "c" / "0").write_bytes(pickle.dumps([Trap(trace)]))
    with pytest.raises(StreamError, match="not known to be safe"):
        open_stream(path)
    assert not trace.exists()


def test_hdf5_does_not_lead_into_other_files(tmp_path):
    import h5py

    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = numbers()
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["x"] = h5py.ExternalLink("secret.h5", "/x")
    numbers().tofile(tmp_path / "secret.bin")
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        file.create_dataset("x", (7, 6, 5), "f8", external=[(str(tmp_path / "secret.bin"), 0, 7 * 6 * 5 * 8)])
    for name in ("link.h5", "raw.h5"):
        with pytest.raises(StreamError, match=r"from (an)?other file"):
            list(open_stream(tmp_path / name).slices())


@pytest.mark.slow
def test_hdf5_groups_that_contain_themselves_are_read_once(tmp_path):
    import h5py

    with h5py.File(tmp_path / "round.h5", "w") as file:
        file["inner/x"] = numbers()
        for name in "abc":
            file[f"inner/{name}"] = file["inner"]
            file[name] = file["/"]
    with pytest.raises(StreamError):
        open_stream(tmp_path / "round.h5")
    (tmp_path / "round.h5").rename(tmp_path / "round.mat")
    assert open_stream(tmp_path / "round.mat").length == len(numbers())
