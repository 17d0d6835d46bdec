"""A crash before every single operation on files that a run makes, one after the other, then the run again."""

import pytest
from stubs import run_python

# A hook of Python's audit sees every file that is opened, renamed, cut or removed; the process ends before the n-th.
_CRASHES = """
import os, shutil, sys
from pathlib import Path
import zarr, zarr.codecs, zarr.storage, numcodecs, pyarrow.parquet
from stubs import StubModel, StubStream, differing_files, everything_in, load_stub, minute
from undertow.runs import run

folder, alerts, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.fsync = lambda descriptor: None
seen, last = 0, None

def crash(event, arguments):
    global seen
    watched = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate") or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if watched and str(folder) in os.fsdecode(str(arguments[0])):
        seen += 1
        if seen == last:
            os._exit(77)

def child(store, at=None, slices=14):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    global last
    last = at
    sys.addaudithook(crash)
    try:
        run(StubStream(slices, times=minute), StubModel(), store=store, alerts=alerts, checkpoint_every=4,
            keep="mean,data", resume=True, load=load_stub)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

assert child(folder / "whole") == 0
whole, crashes, point = everything_in(folder / "whole"), 0, 1
while True:
    store = folder / "crashed"
    code = child(store, point)
    if code == 0:
        break
    assert code == 77, (point, code)
    code = child(store, 1 + point % 5)  # a second crash, soon after resuming
    assert code in (0, 77), (point, code)
    crashes += 1 + (code == 77)
    assert child(store) == 0, point
    assert not differing_files(store, whole), point
    shutil.rmtree(store)
    point += step
print(crashes, "crashes")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alerts", "step"),
    [
        ("csv", 53),
        *(pytest.param(alerts, 1, marks=pytest.mark.full) for alerts in ("csv", "jsonl", "parquet")),
    ],
)
def test_a_crash_before_any_operation_on_files_loses_nothing(tmp_path, alerts, step, tried):
    done = run_python(_CRASHES, tmp_path, alerts, step)
    assert done.returncode == 0, done.stdout + done.stderr
    crashes = int(done.stdout.split()[0])
    assert crashes > 3
    tried("crash before an operation on files, resumed, byte for byte", crashes)
