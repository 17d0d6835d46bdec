"""Long streams in little memory, and a disk that is really full."""

import pytest
import xarray as xr
from stubs import differing_files, everything_in, run_python

_LONG = """
import sys
from pathlib import Path
import numpy as np
import psutil
from stubs import StubModel, StubStream
from undertow.runs import run
from undertow.sources.base import Item

class Long(StubStream):
    def slices(self, position=None):
        x = np.random.default_rng(0).normal(size=self.shape)
        for index in range(self.length):
            yield Item(x + index % 7, index, {"next": index + 1})

seen = []
def look(now):
    if now.slices in (1000, 9000):
        seen.append(psutil.Process().memory_info().rss)

run(Long(9000, shape=(64, 64)), StubModel(), store=Path(sys.argv[1]), progress=look, keep="mean", alerts="parquet")
print(seen[1] - seen[0])
"""

_FULL = """
import resource, sys
from pathlib import Path
from stubs import StubModel, StubStream, load_stub
from undertow.runs import RunError, run

if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
try:
    run(StubStream(400), StubModel(), store=Path(sys.argv[1]), checkpoint_every=20, resume=True, load=load_stub)
except RunError as error:
    print(error)
"""


_HUGE = """
import resource, sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
import undertow as ut
from stubs import StubStatus

folder = Path(sys.argv[1])
with open(folder / "huge.npy", "wb") as file:
    header = {"descr": "<f8", "fortran_order": False, "shape": (2560, 1024, 1024)}
    np.lib.format.write_array_header_1_0(file, header)
    file.truncate(file.tell() + 8 * 2560 * 1024 * 1024)

class Constant:
    def update(self, x):
        zeros = np.broadcast_to(0.0, x.shape)
        return SimpleNamespace(mean=zeros, std=zeros, outliers=zeros, outlier_probability=zeros, rank=1,
                               noise_std=1.0, elbo=0.0, status=StubStatus(()))
    def to_bytes(self):
        return b"constant"

summary = ut.run(ut.open_stream(folder / "huge.npy"), Constant(), store=folder / "store", keep="outliers")
print(summary.slices, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def output_of(program, *arguments):
    done = run_python(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream(tmp_path):
    growth = int(output_of(_LONG, tmp_path / "s"))
    assert growth < 40 * 2**20, "8000 slices of 32 KiB, 250 MiB in all, went by"


@pytest.mark.slow
def test_a_file_that_may_not_grow_ends_the_run_in_one_sentence(tmp_path):
    message = output_of(_FULL, tmp_path / "s", "full")
    safe = xr.open_zarr(tmp_path / "s").sizes["time"]
    assert message == (
        f"no space is left for {tmp_path}/s: {safe} slices are safe in it, continue with --resume once there is space\n"
    )
    assert 0 < safe < 400
    assert output_of(_FULL, tmp_path / "s", "roomy") == ""
    assert output_of(_FULL, tmp_path / "whole", "roomy") == ""
    assert not differing_files(tmp_path / "s", everything_in(tmp_path / "whole"))


@pytest.mark.soak
def test_twenty_gigabytes_in_less_than_two(tmp_path):
    done = run_python(_HUGE, tmp_path)
    assert done.returncode == 0, done.stderr
    slices, megabytes = map(int, done.stdout.split())
    assert slices == 2560
    assert (tmp_path / "huge.npy").stat().st_size > 20e9
    assert megabytes < 2000
