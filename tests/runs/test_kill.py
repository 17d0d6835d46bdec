"""Resume is tested by killing: SIGKILL at random moments, then the same run again, until the stream has ended."""

import json

import pytest
from stream_files import MAKERS, SOURCES, TABLE, TARGETS, csv_text, json_lines
from stubs import differing_files, everything_in, run_python

# One process forks a run, kills it after a random time and forks it again: starting Python anew takes much longer.
_STUB_RUNS = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import zarr, zarr.codecs, zarr.storage, numcodecs, pyarrow.parquet
from stubs import StubModel, StubStream, load_stub
from undertow.runs import run

folder, alerts = Path(sys.argv[1]), sys.argv[2]
os.fsync = lambda descriptor: None  # a killed process leaves what it has written
every, seconds, kills = int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])

def follow(store, seconds):
    stream = StubStream(500, pause=0.001, times=lambda index: np.datetime64("2024-05-01T00:00") + index)
    run(stream, StubModel(), store=store, alerts=alerts, checkpoint_every=every or None, checkpoint_seconds=seconds,
        keep="mean,std,outliers,data", resume=True, load=load_stub)

def child(*arguments):
    pid = os.fork()
    if pid:
        return pid
    try:
        follow(*arguments)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

assert os.waitpid(child(folder / "whole", 1000), 0)[1] == 0
draw, killed = random.Random(alerts), 0
for attempt in range(kills):
    pid = child(folder / "killed", seconds)
    time.sleep(0.03 + 0.15 * draw.random())
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    killed += status == signal.SIGKILL
assert os.waitpid(child(folder / "killed", seconds), 0)[1] == 0
print(killed, "killed")
"""

# As above, with a real file as the source, opened by every process. A store that is whole is checked and begun anew.
_FILE_RUNS = """
import json, os, random, shutil, signal, subprocess, sys, time
from pathlib import Path
import av, h5netcdf, h5py, nibabel, numcodecs, PIL.Image, pyarrow.ipc, pyarrow.parquet, pydicom, scipy.io, xarray
import zarr, zarr.codecs, zarr.storage
from stubs import StubModel, differing_files, everything_in, load_stub
from undertow.inputs.labels import growing
from undertow.runs import run
from undertow.sources import open_stream

growing.SILENT = 2
folder, source, options, kills = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
os.fsync = lambda descriptor: None
draw, limit = random.Random(source.rpartition("/")[2]), time.monotonic() + 300

def child(store):
    pid = os.fork()
    if pid:
        return pid
    try:
        opened = source
        if options.pop("piped", False):
            feed = subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
            os.dup2(feed.stdout.fileno(), 0)
            opened = "-"
        run(open_stream(opened, **options), StubModel(pause=0.01), store=store, checkpoint_every=2,
            checkpoint_seconds=0.02, alerts="parquet", keep="mean,data", resume=True, load=load_stub)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

began = time.monotonic()
assert os.waitpid(child(folder / "whole"), 0)[1] == 0
usual, killed, compared, store = time.monotonic() - began, 0, 0, folder / "killed"
while killed < kills and time.monotonic() < limit:
    pid = child(store)
    time.sleep(draw.random() * usual)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    killed += status == signal.SIGKILL
    if killed == kills:
        assert os.waitpid(child(store), 0)[1] == 0
    if status == 0 or killed == kills:
        assert not differing_files(store, everything_in(folder / "whole"))
        compared += 1
        shutil.rmtree(store)
print(killed, "killed", compared, "compared")
"""

_REAL_RUN = """
import os, signal, sys
from pathlib import Path
import undertow as ut
from stubs import StubStream

kind, death, *stores = sys.argv[1:]

def maybe_die(now):
    if now.slices == int(death):
        os.kill(os.getpid(), signal.SIGKILL)

for store in stores:
    model = ut.Tracker() if kind == "tracker" else ut.RobustCP(kind, window=4, max_rank=3)
    ut.run(StubStream(16, shape=(6, 5), pause=0.005), model, store=Path(store), checkpoint_every=3,
           checkpoint_seconds=0.05, resume=True, progress=maybe_die)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alerts", "every", "seconds", "kills"),
    [
        ("parquet", 64, 0.07, 5),
        pytest.param("csv", 40, 1000, 12, marks=pytest.mark.full),
        pytest.param("parquet", 64, 0.07, 12, marks=pytest.mark.full),
        pytest.param("jsonl", 0, 0.05, 12, marks=pytest.mark.full),
    ],
    ids=["a few", "checkpoints by slices", "by both", "by seconds"],
)
def test_killed_at_random_moments_the_store_is_byte_for_byte_the_same(tmp_path, alerts, every, seconds, kills, tried):
    done = run_python(_STUB_RUNS, tmp_path, alerts, every, seconds, kills)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > kills // 3, "most runs ended before they were killed"
    assert not differing_files(tmp_path / "killed", everything_in(tmp_path / "whole"))
    tried("SIGKILL at a random moment, resumed, byte for byte", int(done.stdout.split()[0]))


def source_of(kind, folder):
    """The file of a kind, and how to open it; pipes are fed from one."""
    if kind == "jsonl pipe":
        (folder / "piped.jsonl").write_text(json_lines())
        return folder / "piped.jsonl", {"piped": True}
    if kind == "csv pipe":
        (folder / "piped.csv").write_text(csv_text())
        return folder / "piped.csv", {
            "piped": True,
            "format": "csv",
            **TABLE,
            "labels": {"src": SOURCES, "dst": TARGETS},
        }
    if kind == "labels that come and go":  # one more in every slice, each in three of them
        lines = [f"{t},r{i},{i + t}" for t in range(12) for i in range(t, t + 3)]
        (folder / "coming.csv").write_text("\n".join(["t,src,bytes", *lines, ""]))
        return folder / "coming.csv", {"time": "t", "modes": "src", "value": "bytes", "capacity": "src=2"}
    made = MAKERS[kind](folder)
    return made.path, made.options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("video", 2),
        ("jsonl pipe", 2),
        ("labels that come and go", 2),
        *(
            pytest.param(kind, 7, marks=pytest.mark.full)
            for kind in [*MAKERS, "jsonl pipe", "csv pipe", "labels that come and go"]
        ),
    ],
)
def test_runs_from_every_kind_of_source_survive_sigkill(tmp_path, kind, kills, tried):
    path, options = source_of(kind, tmp_path)
    done = run_python(_FILE_RUNS, tmp_path, path, json.dumps(options), kills)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[0] == str(kills), done.stdout
    tried("SIGKILL at a random moment, resumed, byte for byte", kills)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "deaths"),
    [
        ("default", (8,)),
        pytest.param("fast", (8,), marks=pytest.mark.full),
        pytest.param("tracker", (1, 7, 11, 15), marks=pytest.mark.full),  # what undertow.run makes of no model
    ],
)
def test_the_real_model_resumes_bit_for_bit(tmp_path, kind, deaths, tried):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for death in deaths:
        assert run_python(_REAL_RUN, kind, death, killed).returncode == -9
    done = run_python(_REAL_RUN, kind, 0, killed, whole)
    assert done.returncode == 0, done.stderr
    assert not differing_files(killed, everything_in(whole))
    tried(f"SIGKILL of a real model, {'RobustCP' if kind != 'tracker' else 'Tracker'}, byte for byte", len(deaths))
