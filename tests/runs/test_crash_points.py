"""A crash before every single operation on files that a run makes, one after the other, then the run again."""

import pytest
from stubs import run_python

# A hook of Python's audit sees every file that is opened, renamed, cut or removed; the process ends before the n-th.
_CRASHES = """
import json, os, shutil, sys
from pathlib import Path
import zarr, zarr.codecs, zarr.storage, numcodecs, pyarrow.parquet
from innovations import Drawn, load_drawn
from stubs import GrowingStream, StubModel, StubStream, differing_files, everything_in, load_stub, minute
from undertow.inputs.labels import growing
from undertow.runs import publishing, run

growing.SILENT = 2
folder, alerts, step, kind = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), "".join(sys.argv[4:])
sends = kind == "sends"
os.fsync = lambda descriptor: None
seen, last = 0, None

class Published:  # a broker that is a file: what is acknowledged is in it
    name, trouble = "file", ""
    def __init__(self, address):
        self.path, self.waiting = folder / (address.rpartition("/")[2] + "-published"), []
    def put(self, key, body):
        self.waiting.append([key, body.decode()])
    def flush(self, patient):
        with open(self.path, "a") as file:
            file.writelines(json.dumps(pair) + chr(10) for pair in self.waiting)
        self.waiting.clear()
        return 0
    def close(self):
        pass

publishing.publisher = Published

def sent(store):  # what a receiver that knows keys has got; a key never comes with other content
    found = {}
    for kind in ("-published", "-delivered.jsonl"):
        path = folder / (store.name + kind)
        for line in path.read_text().splitlines() if path.exists() else ():
            message = json.loads(line)
            key, content = message if kind == "-published" else (message.pop("key"), message)
            assert found.setdefault((kind, key), content) == content
        path.unlink(missing_ok=True)
    return list(found.items())

def crash(event, arguments):
    global seen
    watched = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate") or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if watched and str(folder) in os.fsdecode(str(arguments[0])):
        seen += 1
        if seen == last:
            os._exit(77)

def child(store, at=None):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    global last
    last = at
    sys.addaudithook(crash)
    try:
        if sends:
            where = {"deliver": [str(store) + "-delivered.jsonl"], "publish": "nats://host/" + store.name}
            run(StubStream(100, times=minute), Drawn(), store=store, alerts=alerts, checkpoint_every=40,
                keep="none", resume=True, load=load_drawn, **where)
        else:
            stream = GrowingStream(14, stays=3) if kind == "grows" else StubStream(14, times=minute)
            run(stream, StubModel(), store=store, alerts=alerts, checkpoint_every=4,
                keep="mean,data", resume=True, load=load_stub)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

assert child(folder / "whole") == 0
whole, messages, crashes, point = everything_in(folder / "whole"), sent(folder / "whole"), 0, 1
assert len(messages) == (105 if sends else 0), len(messages)
outbox = {".undertow/outbox.jsonl"}  # in it stands which channel has what, in the order of their threads
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
    assert not differing_files(store, whole) - outbox, point
    assert sent(store) == messages, point
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


@pytest.mark.slow
@pytest.mark.parametrize("step", [79, pytest.param(1, marks=pytest.mark.full)])
def test_a_crash_while_labels_come_and_go_loses_nothing(tmp_path, step, tried):
    done = run_python(_CRASHES, tmp_path, "parquet", step, "grows")
    assert done.returncode == 0, done.stdout + done.stderr
    crashes = int(done.stdout.split()[0])
    assert crashes > 3
    tried("crash while labels come and go, resumed, byte for byte", crashes)


@pytest.mark.slow
@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.full)])
def test_a_crash_loses_no_message_about_incidents_and_no_published_result(tmp_path, step, tried):
    done = run_python(_CRASHES, tmp_path, "jsonl", step, "sends")
    assert done.returncode == 0, done.stdout + done.stderr
    crashes = int(done.stdout.split()[0])
    assert crashes > 3
    tried("crash while incidents are delivered and results published, nothing lost", crashes)
