"""HDF5 files and Zarr folders that are refused before they are read."""

import json
import os
import pickle
import struct
import subprocess
import sys

import numcodecs
import numpy as np
import pytest
from stream_files import Trap, numbers

from undertow.sources import StreamError, open_stream
from undertow.sources.formats import validation


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


@pytest.mark.full
def test_what_the_process_that_opens_a_file_has_taken_itself_does_not_count(tmp_path):
    import h5py

    with h5py.File(tmp_path / "small.h5", "w") as file:
        file["x"] = np.arange(6.0)
    code = (
        "import numpy as np, sys; from pathlib import Path; "
        "from undertow.sources.formats.validation import hdf5_shapes; "
        "taken = np.ones(int(3.3 * 2**27)); print(hdf5_shapes(Path(sys.argv[1])), taken.size)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "small.h5")], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("{'x': (6,)}"), done.stderr


@pytest.mark.slow
def test_a_file_that_the_hdf5_library_never_finishes_is_one_sentence(tmp_path, monkeypatch):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.ones((3, 2))
    monkeypatch.setattr(validation, "_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(validation, "HDF5_SECONDS", 0.5)
    with pytest.raises(StreamError, match=r"could not be opened within 0.5 seconds"):
        open_stream(tmp_path / "a.h5")
    monkeypatch.setattr(validation, "_PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(validation, "HDF5_SECONDS", 60)
    with pytest.raises(StreamError, match="makes the HDF5 library crash"):
        open_stream(tmp_path / "a.h5")
    monkeypatch.setattr(validation, "_PROBE", f"raise SystemExit({validation._TOO_LARGE})")
    with pytest.raises(StreamError, match="takes more than 4 GB of memory to open"):
        open_stream(tmp_path / "a.h5")
    monkeypatch.undo()
    assert open_stream(tmp_path / "a.h5").shape == (2,)
    monkeypatch.setattr(validation, "_PROBE", "import time; time.sleep(60)")
    assert open_stream(tmp_path / "a.h5").shape == (2,)  # known to open


@pytest.mark.full
@pytest.mark.parametrize("damaged", ["a heap whose free list is a ring", "free space of no size among texts"])
def test_files_that_the_hdf5_library_never_finishes(tmp_path, monkeypatch, damaged):
    """Not stand-ins: the first takes memory without end, the second time."""
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.ones((3, 2))
        file["names"] = np.array(["a", "b"], h5py.string_dtype())
    content = bytearray((tmp_path / "a.h5").read_bytes())
    if "ring" in damaged:
        heap = content.index(b"HEAP")
        free, data = struct.unpack_from("<QQ", content, heap + 16)
        struct.pack_into("<Q", content, data + free, free)
        # Several gigabytes, or on a busy machine the time before it is as many.
        monkeypatch.setattr(validation, "HDF5_SECONDS", 120)
        said = "takes more than 4 GB of memory|could not be opened within"
    else:
        at = content.index(b"GCOL") + 16
        while number := struct.unpack_from("<H", content, at)[0]:  # texts have numbers, what is free has none
            assert number < 9
            at += 16 + -(-struct.unpack_from("<Q", content, at + 8)[0] // 8) * 8
        struct.pack_into("<Q", content, at + 8, 0)
        monkeypatch.setattr(validation, "HDF5_SECONDS", 10)
        said = "could not be opened within"
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(StreamError, match=said):
        open_stream(tmp_path / "a.h5")


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_a_blosc_chunk_that_is_cut_short_is_refused_and_can_be_skipped(tmp_path, version):
    import zarr

    values = np.random.default_rng(0).normal(size=(6, 40, 50))
    compressor = zarr.codecs.BloscCodec() if version == 3 else numcodecs.Blosc()
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    array = group.create_array(
        "x",
        shape=values.shape,
        dtype="f8",
        chunks=(2, 40, 50),
        compressors=compressor,
        **({"dimension_names": ("time", "row", "column")} if version == 3 else {}),
    )
    if version == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "row", "column"]
    array[:] = values
    chunk = tmp_path / "a.zarr" / "x" / ("c/1/0/0" if version == 3 else "1.0.0")
    np.testing.assert_array_equal([item.values for item in open_stream(tmp_path / "a.zarr").slices()], values)
    content = chunk.read_bytes()
    for cut in (len(content) - 1, len(content) // 2, 20, 3):
        chunk.write_bytes(content[:cut])
        with pytest.raises(StreamError, match=r"chunk x/.* has \d+ bytes.*on_bad='skip'"):
            list(open_stream(tmp_path / "a.zarr").slices())
    stream = open_stream(tmp_path / "a.zarr", on_bad="skip")
    assert len(list(stream.slices())) == 4
    assert any(notice.startswith("2 slices of a.zarr could not be used") for notice in stream.notices)


@pytest.mark.parametrize("place", ["end", "start"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole shards", "parts of shards"])
def test_a_blosc_chunk_within_a_shard_is_checked(tmp_path, place, whole):
    import zarr

    values = np.random.default_rng(0).normal(size=(8, 40, 50))
    array = zarr.create_array(
        tmp_path / "a.zarr",
        shape=values.shape,
        dtype="f8",
        chunks=(2 if whole else 1, 40, 50),
        shards={"shape": (2 if whole else 4, 40, 50), "index_location": place},
        compressors=zarr.codecs.BloscCodec(),
    )
    array[:4], array[4:] = values[:4], values[4:]
    np.testing.assert_array_equal([item.values for item in open_stream(tmp_path / "a.zarr").slices()], values)
    shard = tmp_path / "a.zarr" / "c/1/0/0"
    content = bytearray(shard.read_bytes())
    index = content[:-4] if place == "end" else content[: 16 * (1 if whole else 4)]
    header = int.from_bytes(index[-16 * (1 if whole else 4) :][:8], "little")  # where its first chunk begins
    content[header + 12 : header + 16] = (10**6).to_bytes(4, "little")  # it claims more than there is
    shard.write_bytes(content)
    with pytest.raises(StreamError, match=r"chunk .*c/1/0/0 .* has \d+ bytes, but should have 1000000"):
        list(open_stream(tmp_path / "a.zarr").slices())
    assert len(list(open_stream(tmp_path / "a.zarr", on_bad="skip").slices())) >= 4


@pytest.mark.slow
def test_opening_hdf5_runs_nothing_from_the_present_folder(tmp_path, monkeypatch):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.ones((3, 2))
    for name in ("h5py", "math", "numpy"):
        (tmp_path / f"{name}.py").write_text("open('trace', 'w')\n")
    monkeypatch.chdir(tmp_path)
    assert open_stream("a.h5").shape == (2,)
    assert not (tmp_path / "trace").exists()


def test_a_pipe_in_a_zarr_folder_is_refused(tmp_path):
    (tmp_path / "a.zarr" / "x").mkdir(parents=True)
    os.mkfifo(tmp_path / "a.zarr" / "x" / "0.0")
    with pytest.raises(StreamError, match=r"0\.0 in a.zarr is no file"):
        validation.check_zarr(tmp_path / "a.zarr")
