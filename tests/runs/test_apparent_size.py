"""A stream larger than memory: 21 GB by its size, next to nothing on the disk, through a run in under 2 GB."""

import pytest
from stubs import run_python

_PROGRAM = """
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
        return SimpleNamespace(low_rank=zeros, std=zeros, outliers=zeros, outlier_probability=zeros, rank=1,
                               noise_std=1.0, elbo=0.0, status=StubStatus(()))
    def save(self, path):
        Path(path).write_bytes(b"constant")

summary = ut.run(ut.open_stream(folder / "huge.npy"), Constant(), store=folder / "store", keep="outliers")
print(summary.slices, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.soak
def test_twenty_gigabytes_in_less_than_two(tmp_path):
    done = run_python(_PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr
    slices, megabytes = map(int, done.stdout.split())
    assert slices == 2560
    assert (tmp_path / "huge.npy").stat().st_size > 20e9
    assert megabytes < 2000
