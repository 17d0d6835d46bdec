"""Long streams in little memory, and a disk that is really full."""

import os
import subprocess
import sys
from pathlib import Path

import xarray as xr
from stubs import everything_in

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

run(Long(9000, shape=(64, 64)), StubModel(), store=Path(sys.argv[1]), progress=look, keep="low_rank", alerts="parquet")
print(seen[1] - seen[0])
"""

_FULL = """
import resource, sys
from pathlib import Path
from stubs import StubModel, StubStream, load_stub
from undertow.runs import RunError, run

if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
try:
    run(StubStream(400), StubModel(), store=Path(sys.argv[1]), checkpoint_every=20, resume=True, load=load_stub)
except RunError as error:
    print(error)
"""


def call(program, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_memory_does_not_grow_with_the_stream(tmp_path):
    growth = int(call(_LONG, tmp_path / "s"))
    assert growth < 40 * 2**20, "8000 slices of 32 KiB, 250 MiB in all, went by"


def test_a_file_that_may_not_grow_ends_the_run_in_one_sentence(tmp_path):
    said = call(_FULL, tmp_path / "s", "full")
    safe = xr.open_zarr(tmp_path / "s").sizes["time"]
    assert said == (
        f"there is no room left for {tmp_path}/s: {safe} slices are safe in it, "
        "go on with --resume once there is room\n"
    )
    assert 0 < safe < 400
    assert call(_FULL, tmp_path / "s", "roomy") == ""
    assert call(_FULL, tmp_path / "whole", "roomy") == ""
    assert everything_in(tmp_path / "s") == everything_in(tmp_path / "whole")
