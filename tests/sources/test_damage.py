"""Damaged and hostile files of every format: one sentence, never another exception, a hang or code that is run."""

import faulthandler
import io
import itertools
import json
import os
import pickle
import shutil
import struct
import sys
import zipfile

import numpy as np
import pytest
from stream_files import MAKERS, dicom_dataset, numbers

from undertow.sources import StreamError, open_stream

ROUNDS = 40


def damaged(content, rng):
    """Cut short, bits flipped, bytes overwritten, a piece lost, or the header hit."""
    data, place = bytearray(content), int(rng.integers(len(content)))
    kind = rng.integers(6)
    if kind == 0:
        return bytes(data[:place])
    if kind == 1:
        data[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        for where in rng.integers(len(data), size=int(rng.integers(1, 9))):
            data[where] = rng.integers(256)
    elif kind == 3:
        data[place : place + 8] = b"\xff" * 8
    elif kind == 4:
        del data[place : place + int(rng.integers(1, 33))]
    else:
        data[int(rng.integers(min(len(data), 600)))] = rng.integers(256)
    return bytes(data)


def trouble_with(path, options):
    """The sentence that a file leads to, None if it can be read to the end."""
    try:
        stream = open_stream(path, **options)
        assert len(stream.fingerprint) == 64
        for item in itertools.islice(stream.slices(), 50):
            assert item.values.shape == stream.shape
        stream.close()
    except StreamError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_one_sentence_or_slices(name, made, tmp_path):
    original = made(name)
    refused = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        copy = tmp_path / str(seed) / original.path.name
        if original.path.is_dir():
            shutil.copytree(original.path, copy)
            files = sorted(file for file in copy.rglob("*") if file.is_file() and file.stat().st_size)
            victim = files[int(rng.integers(len(files)))]
        else:
            copy.parent.mkdir()
            shutil.copy(original.path, copy)
            victim = copy
        victim.write_bytes(damaged(victim.read_bytes(), rng))
        faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)  # a hang would show where
        sentence = trouble_with(copy, original.options)
        faulthandler.cancel_dump_traceback_later()
        if sentence is not None:
            refused += 1
            assert "\n" not in sentence
            assert 20 < len(sentence) < 500
        shutil.rmtree(tmp_path / str(seed))
    assert refused > ROUNDS // 10  # so much damage cannot all go unnoticed


def npy_header(shape, dtype="<f8"):
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    "shape",
    [
        "(10, 10**15)",
        "(10, 1000000000000000)",
        "(1000000000000000, 10)",
        "(3, -5)",
        "(10, 0)",
        "(5,)",
        "()",
        "(2.5, 3)",
    ],
)
def test_claims_of_numpy_headers_are_checked_before_anything_is_allocated(shape, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy_header(shape) + bytes(800))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_header(shape) + bytes(800))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(StreamError):
            open_stream(tmp_path / name)


def test_claims_of_other_headers_are_checked_too(tmp_path):
    import h5py
    import nibabel
    import xarray

    image = nibabel.Nifti1Image(np.zeros((2, 2, 2, 3), np.int16), np.eye(4))
    nibabel.save(image, tmp_path / "a.nii")
    content = bytearray((tmp_path / "a.nii").read_bytes())
    content[40:56] = struct.pack("<8h", 4, 32767, 32767, 32767, 32767, 1, 1, 1)
    (tmp_path / "a.nii").write_bytes(content)

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (10, 10**15), "f8", chunks=(1, 1000))
    with h5py.File(tmp_path / "chunks.h5", "w") as file:
        file.create_dataset("x", (10, 2**28), "f8", chunks=(10, 2**28 - 1), compression="gzip")

    xarray.DataArray(numbers(), dims=("time", "a", "b"), name="x").to_dataset().to_zarr(tmp_path / "a.zarr")
    about = json.loads((tmp_path / "a.zarr/x/zarr.json").read_text())
    about["chunk_grid"]["configuration"]["chunk_shape"] = [10**9, 10**9, 1]
    (tmp_path / "a.zarr/x/zarr.json").write_text(json.dumps(about))

    header = dicom_dataset(numbers()[0], 0)
    header.NumberOfFrames = 10**9
    header.save_as(tmp_path / "a.dcm", enforce_file_format=True)

    (tmp_path / "a.yuv").write_bytes(bytes(100))
    for name, options in {
        "a.nii": {},
        "a.h5": {},
        "chunks.h5": {},
        "a.zarr": {},
        "a.dcm": {},
        "a.yuv": {"size": "1000000x1000000"},
    }.items():
        with pytest.raises(StreamError):
            list(open_stream(tmp_path / name, **options).slices())


def test_a_picture_that_claims_to_be_huge_is_refused(tmp_path):
    from PIL import Image

    Image.fromarray(numbers()[0].astype(np.uint8)).save(tmp_path / "1.png")
    content = bytearray((tmp_path / "1.png").read_bytes())
    content[16:24] = struct.pack(">II", 2**30, 2**30)
    (tmp_path / "1.png").write_bytes(content)
    with pytest.raises(StreamError):
        open_stream(tmp_path)


class Trap:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_nothing_is_ever_unpickled(tmp_path):
    trace = tmp_path / "trace"
    content = np.array([[Trap(trace)] * 3] * 3, dtype=object)
    np.save(tmp_path / "a.npy", content, allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=content, time=content)
    np.savez(tmp_path / "time.npz", x=numbers(), time=content[:1])
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "1.npy", content, allow_pickle=True)
    for name in ("a.npy", "a.npz", "time.npz", "folder"):
        with pytest.raises(StreamError):
            list(open_stream(tmp_path / name).slices())
    (tmp_path / "a.jsonl").write_bytes(pickle.dumps(Trap(trace)))
    with pytest.raises(StreamError):
        open_stream(tmp_path / "a.jsonl")
    with pytest.raises(StreamError):
        open_stream(numbers(), mask=tmp_path / "a.npy")
    assert not trace.exists()


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


def test_hdf5_groups_that_hold_themselves_have_an_end(tmp_path):
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


def test_playlists_do_not_lead_into_other_files(made, tmp_path):
    shutil.copy(made("video").path, tmp_path / "secret.mp4")
    (tmp_path / "a.mp4").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n")
    (tmp_path / "b.mkv").write_text("ffconcat version 1.0\nfile secret.mp4\n")
    for name in ("a.mp4", "b.mkv"):
        with pytest.raises(StreamError):
            list(open_stream(tmp_path / name).slices())


def test_a_file_cut_short_while_it_is_read_is_one_sentence(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 1000)))
    slices = open_stream(tmp_path / "a.npy").slices()
    next(slices)
    os.truncate(tmp_path / "a.npy", 20_000)
    with pytest.raises(StreamError, match="became shorter"):
        list(slices)


def test_a_file_that_vanishes_while_it_is_read(made, tmp_path):
    for name in ("npy", "images", "yuv", "video", "csv", "parquet", "zarr", "dicom"):
        original = made(name)
        copy = tmp_path / original.path.name
        (shutil.copytree if original.path.is_dir() else shutil.copy)(original.path, copy)
        stream = open_stream(copy, **original.options)
        slices = stream.slices()
        first = next(slices)
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
        if name in ("images", "zarr", "dicom", "yuv"):  # opened anew for every slice
            with pytest.raises(StreamError):
                list(slices)
        else:  # what is held open can be read to the end
            rest = list(slices)
            assert len(rest) >= 6
        assert first.values.shape == stream.shape


def test_names_that_tell_no_format(tmp_path):
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
