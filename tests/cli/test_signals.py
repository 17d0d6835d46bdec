"""Signals at any moment of a command: the same sentence, the right exit code, within two seconds, nothing lost."""

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from stubs import (
    HEAR_SIGNALS,
    StubStream,
    differing_files,
    everything_in,
    python_environment,
    reported_store,
    store_stub,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")

_COMMAND = "from undertow.cli import main; main()"
_SENTENCE = re.compile(
    r"undertow: stopped (before it was done|before the first slice was done"
    r"|after \d+ slices, all of them in \S+: continue with --resume)\n"
)
_PROGRESS = re.compile(r"\d+ of \d+ slices\b.*\n")  # said now and then where nobody watches a bar
_PROMISED, _ALLOWED = 2.0, 6.0  # seconds; other processes share the machine of a test


def start(*arguments, program=_COMMAND, stdin=subprocess.DEVNULL, **variables):
    """A process, once it watches for signals: Python itself, which comes before, never catches SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAR_SIGNALS + program, *map(str, arguments)],
        env={**python_environment(), **variables},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        if caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.002)
    return process


def stop(process, number=signal.SIGINT):
    """Send the signal; returns exit code, what was said, and the seconds that it took."""
    began = time.monotonic()
    process.send_signal(number)
    try:
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    return process.returncode, said, time.monotonic() - began


def interrupted(after, *arguments, number=signal.SIGINT, **variables):
    process = start(*arguments, **variables)
    time.sleep(after)
    assert process.poll() is None, process.communicate()[1]
    code, said, seconds = stop(process, number)
    assert code == 128 + number, f"exit code {code} after {after:.2f} s: {said}"
    *before, last = said.splitlines(keepends=True)
    assert _SENTENCE.fullmatch(last), f"after {after:.2f} s: {said}"
    assert all(map(_PROGRESS.fullmatch, before)), f"after {after:.2f} s: {said}"
    assert seconds < _ALLOWED
    return said, seconds


_NATIVE = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)\n"  # minutes without an instruction of Python
_WATCH = "import sys, time; from undertow.cli.signals import SIGNALS; SIGNALS.watch()\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_native_code_is_not_waited_for(number):
    code, said, seconds = stop(start(program=_WATCH + _NATIVE), number)
    assert (code, said) == (128 + number, "undertow: stopped before it was done\n")
    assert seconds < 1.0 + _ALLOWED - _PROMISED


@pytest.mark.slow
def test_native_code_in_orderly_work_gets_a_moment():
    orderly = "SIGNALS.sentence = lambda: 'stopped after 7 slices'\nwith SIGNALS.orderly():\n    print(flush=True); "
    program = _WATCH + orderly + _NATIVE
    process = start(program=program)
    process.stdout.readline()
    time.sleep(0.1)
    code, said, seconds = stop(process)
    assert (code, said) == (130, "undertow: stopped after 7 slices\n")
    assert 1.0 < seconds < _ALLOWED


def test_a_second_signal_ends_the_patience():
    program = _WATCH + f"with SIGNALS.orderly():\n    print(flush=True); {_NATIVE}"
    process = start(program=program)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    code, _, seconds = stop(process)
    assert code == 143
    assert seconds < 1.0


_CLEANS_UP = (
    _WATCH
    + """
from pathlib import Path
import undertow.cli.signals
undertow.cli.signals._GRACE = 30.0  # a busy machine may need longer than users are asked to wait
left = Path(sys.argv[1])
try:
    with SIGNALS.orderly():
        try:
            left.touch()
            time.sleep(60)
        finally:
            left.unlink()
except SystemExit as done:
    SIGNALS.finish(done.code)
"""
)


def test_orderly_work_cleans_up(tmp_path):
    process = start(tmp_path / "unfinished", program=_CLEANS_UP)
    while not (tmp_path / "unfinished").exists():
        time.sleep(0.01)
    code, said, _ = stop(process, signal.SIGTERM)
    assert (code, said) == (143, "undertow: stopped before it was done\n")
    assert not (tmp_path / "unfinished").exists()


@pytest.mark.slow
def test_an_exception_that_is_swallowed_does_not_keep_the_process():
    program = _WATCH + (
        "class Stubborn:\n    def __del__(self):\n        print(flush=True); time.sleep(30)\n"
        "with SIGNALS.orderly():\n    Stubborn(); time.sleep(60)\n"
    )
    process = start(program=program)
    process.stdout.readline()
    code, said, seconds = stop(process)
    assert (code, said) == (130, "undertow: stopped before it was done\n")
    assert seconds < _ALLOWED


def test_what_nohup_ignores_stays_ignored():
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + _WATCH + "time.sleep(60)"
    process = start(program=program)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    assert stop(process, signal.SIGTERM)[0] == 143


def test_output_that_nobody_reads_is_no_traceback():
    process = start(program=_WATCH + "print(0); time.sleep(0.3); SIGNALS.finish(0)", PYTHONUNBUFFERED="")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1


SMALL = ("--model", "cp", "--window", "4", "--max-rank", "3", "--checkpoint-every", "5", "--alerts", "jsonl")


@pytest.fixture
def source(tmp_path):
    """A stream that does not end within a test."""
    draw = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", draw.normal(size=(60_000, 6, 3)) @ draw.normal(size=(3, 5)))
    return tmp_path / "a.npy"


@pytest.mark.slow
@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([(0.02, "SIGINT"), (0.8, "SIGTERM"), (3.0, "SIGHUP")], id="a few"),
        pytest.param(
            [(3 * random.Random(n).random(), "SIGINT") for n in range(60)],
            marks=pytest.mark.full,
            id="60 in the first three seconds",
        ),
        pytest.param(
            [(12 * random.Random(n).random(), ("SIGTERM", "SIGHUP")[n % 2]) for n in range(20)],
            marks=pytest.mark.full,
            id="SIGTERM and SIGHUP",
        ),
    ],
)
def test_a_run_stopped_again_and_again_is_whole_in_the_end(source, tmp_path, moments, tried):
    run = ("run", source, *SMALL, "--resume", "--store")
    outcomes = [interrupted(after, *run, tmp_path / "stopped", number=getattr(signal, name)) for after, name in moments]
    kept = [int(count) for said, _ in outcomes for count in re.findall(r"after (\d+) slices", said)]
    assert kept == sorted(kept)
    slowest = max(seconds for _, seconds in outcomes)
    for name in ("stopped", "whole"):
        process = start(*run, tmp_path / name, "--limit", max([20, *kept]) + 7)
        assert process.wait() == 0, process.stderr.read()
        process.communicate()
    assert not differing_files(tmp_path / "stopped", everything_in(tmp_path / "whole"))
    for name in {name for _, name in moments}:
        count = sum(name == other for _, other in moments)
        tried(f"{name} at a random moment of undertow run, the sentence within {slowest:.2f} s", count)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_compilation_is_not_waited_for(source, tmp_path, number):
    compiles = f"def endless(*_):\n    print('compiles', flush=True); {_NATIVE}"
    program = f"from undertow.programs import runtime\n{compiles}runtime.compiled = endless\n{_COMMAND}"
    process = start("run", source, *SMALL, "--store", tmp_path / "s", program=program)
    assert process.stdout.readline() == "compiles\n"
    code, said, seconds = stop(process, number)
    assert (code, said) == (128 + number, "undertow: stopped before the first slice was done\n")
    assert seconds < _ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "{store}"),
        pytest.param(("report", "{store}"), marks=pytest.mark.full),
        pytest.param(("export", "{store}", "{folder}/a.nc"), marks=pytest.mark.full),
        pytest.param(("export", "{store}", "{folder}/a.csv"), marks=pytest.mark.full),
        pytest.param(("demo", "--out", "{folder}/demo"), marks=pytest.mark.full),
        pytest.param(("bench", "fleet"), marks=pytest.mark.full),
        pytest.param(("scoreboard", "--quick", "--out", "{folder}/board"), marks=pytest.mark.full),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("after", [0.05, pytest.param(0.8, marks=pytest.mark.full)])
def test_other_commands_say_and_do_the_same(tmp_path, arguments, after):
    store = reported_store(tmp_path / "s")
    before = everything_in(tmp_path)
    process = start(*(argument.format(store=store, folder=tmp_path) for argument in arguments))
    time.sleep(after)
    if process.poll() is None:
        code, said, _ = stop(process, signal.SIGTERM)
        assert code == 143
        assert _SENTENCE.fullmatch(said)
    else:
        process.communicate()
    assert not [name for name in everything_in(tmp_path) if "unfinished" in name or name.endswith(".tmp")]
    assert {name: content for name, content in everything_in(tmp_path).items() if name in before} == before


@pytest.mark.slow
def test_an_export_that_is_stopped_leaves_nothing_behind(tmp_path):
    store_stub(tmp_path / "s", StubStream(200, shape=(40, 40)), keep="mean,std,data", alerts=None)
    process = start("export", tmp_path / "s", tmp_path / "a.csv")
    while not (tmp_path / ".unfinished-a.csv").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    code, said, _ = stop(process)
    assert (code, said) == (130, "undertow: stopped before it was done\n")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
