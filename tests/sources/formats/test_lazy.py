"""Streams larger than memory: only what is asked for is read. Memory is measured in a process of its own."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy_format
from stream_files import TABLE

pytestmark = pytest.mark.slow

GIGABYTE = 2**30
ROWS, COLUMNS = 1000, 625  # 5 MB a slice in double precision
LENGTH = 4000  # 20 GB

PROGRAM = """
import itertools, json, sys
import psutil
import undertow as ut
path, options = sys.argv[1], json.loads(sys.argv[2])
stream = ut.open_stream(path, **options)
sums = [float(item.values.sum()) for item in itertools.islice(stream.slices(), 200)]  # 1 GB
found = sums[:5]
end = stream.length - 3
for item in stream.slices({"index": end, "source": {"index": end}, "last": None}):
    found.append(float(item.values.sum()))
peak = psutil.Process().memory_info().rss
try:  # not ru_maxrss: that of a new process begins with the memory of the one that started it
    lines = open("/proc/self/status").read().splitlines()
    peak = max(peak, *(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
except OSError:
    pass
print(json.dumps({"found": found, "peak": peak, "length": stream.length, "jax": "jax" in sys.modules}))
"""


def measured(path, **options):
    command = [sys.executable, "-c", PROGRAM, str(path), json.dumps(options)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def sparse_npy(path, shape, marks):
    """An array of zeros that takes no space on the disk, with a number here and there."""
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        start = file.tell()
        for flat, value in marks.items():
            file.seek(start + 8 * flat)
            file.write(np.float64(value).tobytes())
        file.truncate(start + 8 * int(np.prod(shape, dtype=np.int64)))


def marks():
    entries = ROWS * COLUMNS
    return {0: 1.0, entries + 7: 2.0, (LENGTH - 1) * entries: 3.0}


def check(report, gigabytes=0.25):
    assert report["length"] == LENGTH
    assert report["found"] == [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0]
    assert not report["jax"]
    assert report["peak"] < gigabytes * GIGABYTE


def test_twenty_gigabytes_in_a_quarter_of_one(tmp_path):
    sparse_npy(tmp_path / "large.npy", (LENGTH, ROWS, COLUMNS), marks())
    assert (tmp_path / "large.npy").stat().st_size > 18 * GIGABYTE
    check(measured(tmp_path / "large.npy"))


def test_a_stored_npz_is_mapped_as_well(tmp_path):
    """The zip directory is written by hand around a sparse member, as zipfile would read all of it for its checksum."""
    path = tmp_path / "large.npz"
    sparse_npy(tmp_path / "x.npy", (LENGTH, ROWS, COLUMNS), marks())
    size = (tmp_path / "x.npy").stat().st_size
    with zipfile.ZipFile(path, "w") as archive, (tmp_path / "x.npy").open("rb") as member:
        entry = zipfile.ZipInfo("x.npy")
        entry.file_size, entry.compress_size, entry.CRC, entry.header_offset = size, size, 0, 0
        archive.fp.write(entry.FileHeader(zip64=True))
        start = archive.fp.tell()
        archive.fp.write(member.read(1000))
        for flat, value in marks().items():
            archive.fp.seek(start + 128 + 8 * flat)
            archive.fp.write(np.float64(value).tobytes())
        archive.fp.truncate(start + size)
        archive.fp.seek(start + size)
        archive.start_dir = archive.fp.tell()
        archive.filelist.append(entry)
        archive.NameToInfo["x.npy"] = entry
        archive._didModify = True
    check(measured(path))


def test_hdf5_and_matlab_of_twenty_gigabytes(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "large.mat", "w") as file:
        data = file.create_dataset("x", (LENGTH, COLUMNS, ROWS), "f8", chunks=(2, COLUMNS, ROWS))
        data[0, 0, 0], data[1, 3, 3], data[-1, 0, 0] = 1.0, 2.0, 3.0
    check(measured(tmp_path / "large.mat"))
    (tmp_path / "large.mat").rename(tmp_path / "large.h5")
    check(measured(tmp_path / "large.h5"), 0.4)  # xarray and pandas themselves take a good part of it


def test_zarr_of_twenty_gigabytes(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "large.zarr", mode="w")
    names = ("time", "a", "b")
    data = group.create_array(
        "x", shape=(LENGTH, ROWS, COLUMNS), dtype="f8", chunks=(2, ROWS, COLUMNS), dimension_names=names
    )
    data[0, 0, 0], data[1, 3, 3], data[-1, 0, 0] = 1.0, 2.0, 3.0
    check(measured(tmp_path / "large.zarr"), 0.4)


def test_a_long_table_is_read_in_batches(tmp_path):
    """A million rows, some 40 MB of text, in little more memory than a table of ten rows takes."""
    program = PROGRAM.replace("end = stream.length - 3", "end = 0").replace(
        'for item in stream.slices({"index": end, "source": {"index": end}, "last": None}):\n'
        "    found.append(float(item.values.sum()))",
        "found.append(sum(1 for item in stream.slices()))",
    )
    peaks = []
    for times in (1, 1000):
        path = tmp_path / f"{times}.csv"
        with path.open("w") as file:
            file.write("t,src,dst,bytes\n")
            for t in range(times):
                file.write("".join(f"{t},source{i},target{j},{t}.5\n" for i in range(40) for j in range(25)))
        command = [sys.executable, "-c", program, str(path), json.dumps(TABLE)]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert report["found"][-1] == times
        peaks.append(report["peak"])
    assert peaks[1] - peaks[0] < 0.15 * GIGABYTE
