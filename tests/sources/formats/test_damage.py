"""Damaged and hostile files of every format: one sentence, never another exception, a hang or code that is run."""

import faulthandler
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
from stream_files import MAKERS, Trap, dicom_dataset, numbers

from undertow.sources import StreamError, open_stream

SEEDS = [range(15), pytest.param(range(15, 60), marks=pytest.mark.full)]


def damaged(content, rng):
    """Cut short, bits flipped, bytes overwritten, a piece lost, or the header hit."""
    data, where = bytearray(content), int(rng.integers(len(content)))
    kind = rng.integers(6)
    if kind == 0:
        return bytes(data[:where])
    if kind == 1:
        data[where] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        for each in rng.integers(len(data), size=int(rng.integers(1, 9))):
            data[each] = rng.integers(256)
    elif kind == 3:
        data[where : where + 8] = b"\xff" * 8
    elif kind == 4:
        del data[where : where + int(rng.integers(1, 33))]
    else:
        data[int(rng.integers(min(len(data), 600)))] = rng.integers(256)
    return bytes(data)


def error_of(path, options):
    """The sentence that a file leads to, None if it can be read to the end."""
    try:
        stream = open_stream(path, **options)
        assert len(stream.fingerprint) == 64
        for item in itertools.islice(stream.slices(), 50):
            if "capacity" not in options:
                assert item.values.shape == stream.shape
            assert all(now >= first for now, first in zip(item.values.shape, stream.shape, strict=True))
        stream.close()
    except StreamError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS, ids=["few", "many"])
@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_one_sentence_or_slices(name, seeds, made, tmp_path, tried):
    original = made(name)
    refused = 0
    for seed in seeds:
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
        sentence = error_of(copy, original.options)
        faulthandler.cancel_dump_traceback_later()
        if sentence is not None:
            refused += 1
            assert "\n" not in sentence
            assert 20 < len(sentence) < 500
        shutil.rmtree(tmp_path / str(seed))
    assert refused > len(seeds) // 10  # most damage must be noticed
    tried("damaged file, refused in one sentence or read to its end", len(seeds))


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
