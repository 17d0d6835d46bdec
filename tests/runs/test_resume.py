"""Nothing lost: whatever ends a run, the same run again gives the bytes of a run that was never stopped."""

import errno
import os
import re

import pytest
import xarray as xr
from stubs import (
    StubModel,
    StubStream,
    broken_run,
    differing_files,
    everything_in,
    minute,
    run_stub,
)

from undertow.export import export
from undertow.report import write_report
from undertow.runs import RunError
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import open_store


class Killed(StubModel):
    """Ends the run in its second slice, without a word to anybody."""

    def update(self, x):
        if self.steps == 1:
            raise KeyboardInterrupt
        return super().update(x)


@pytest.mark.parametrize("alerts", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("stops", [pytest.param((4, 8, 30), marks=pytest.mark.slow), (1, 3, 5, 17)])
def test_stopped_and_resumed_is_the_same(tmp_path, alerts, stops):
    run_stub(tmp_path / "whole", alerts=alerts)
    for stop in stops:
        run_stub(tmp_path / "pieces", limit=stop, resume=True, alerts=alerts)
    summary = run_stub(tmp_path / "pieces", resume=True, alerts=alerts)
    assert (summary.slices, summary.new_slices, summary.complete) == (30, 30 - stops[-1], True)
    assert not differing_files(tmp_path / "pieces", everything_in(tmp_path / "whole"))


def test_a_limit_below_what_is_there_does_nothing(tmp_path):
    run_stub(tmp_path / "s", limit=12)
    before = everything_in(tmp_path / "s")
    summary = run_stub(tmp_path / "s", limit=5, resume=True)
    assert (summary.slices, summary.new_slices, summary.rank) == (12, 0, None)
    assert everything_in(tmp_path / "s") == before


def test_a_stream_that_has_grown_since_is_resumed(tmp_path, whole):
    run_stub(tmp_path / "s", StubStream(18, times=minute))
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


def test_the_times_of_checkpoints_do_not_change_the_store(tmp_path, whole):
    run_stub(tmp_path / "s", StubStream(30, times=minute, pause=0.002), checkpoint_seconds=0.005)
    assert not differing_files(tmp_path / "s", whole)


def test_a_vanished_input_is_one_sentence_and_everything_before_it_is_there(tmp_path, whole):
    sentence = broken_run(tmp_path / "s", FileNotFoundError(errno.ENOENT, "No such file or directory", "gone.npy"))
    assert sentence == (
        f"reading stub failed (No such file or directory: gone.npy); the 15 slices before it are in {tmp_path}/s, "
        "continue with --resume"
    )
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 15
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


def test_resume_of_nothing_starts(tmp_path, whole):
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


def refusal_of(folder):
    """The error of a run, or None if it gets through."""
    try:
        run_stub(folder)
    except RunError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("step", [67, pytest.param(23, marks=pytest.mark.full)])
def test_a_full_disk_at_any_write_is_one_sentence_and_can_be_resumed(tmp_path, whole, monkeypatch, step):
    """Every write is made safe by fsync: let the n-th fail, for one n after the other, until a run gets through."""
    really, failed = os.fsync, 0
    for n in range(0, 100_000, step):
        calls = iter(range(n))

        def fsync(descriptor, calls=calls):
            if next(calls, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")
            really(descriptor)

        folder = tmp_path / f"s{n}"
        monkeypatch.setattr(os, "fsync", fsync)
        refusal = refusal_of(folder)
        monkeypatch.setattr(os, "fsync", really)
        if refusal is None:
            break
        failed += 1
        found = re.search(r" (\d+) slices are safe in it, continue with --resume", refusal)
        safe = int(found[1]) if found else 0
        assert refusal.startswith(f"no space is left for {folder}: ")
        assert safe == 0 or xr.open_zarr(folder).sizes["time"] >= safe
        assert run_stub(folder, resume=True).new_slices <= 30 - safe
        assert not differing_files(folder, whole)
    assert failed > 200 // step


def without_checkpoints(folder):
    for path in (folder / ".undertow").glob("checkpoint-*"):
        path.unlink()


def test_killed_before_the_first_checkpoint_it_starts_again(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        run_stub(tmp_path / "s", keep="std", model=Killed())
    without_checkpoints(tmp_path / "s")
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


def test_results_without_a_checkpoint_are_not_thrown_away(tmp_path):
    run_stub(tmp_path / "s")
    without_checkpoints(tmp_path / "s")
    with pytest.raises(RunError, match="holds results but no checkpoint to resume from: start again with --overwrite"):
        run_stub(tmp_path / "s", resume=True)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 30


def test_a_chunk_that_is_gone_is_noticed(tmp_path):
    broken_run(tmp_path / "s")
    (tmp_path / "s/mean/c.1.0.0").unlink()
    with pytest.raises(RunError, match=r"mean in .* is missing or damaged \(chunk 1 is not there\): .* --overwrite"):
        run_stub(tmp_path / "s", resume=True)


@pytest.mark.parametrize("name", ["mean/c.3.0.0", "alerts/part-000003.parquet"])
def test_an_unfinished_chunk_that_is_damaged_is_noticed(tmp_path, name):
    broken_run(tmp_path / "s")
    (tmp_path / "s" / name).write_bytes(b"nonsense, and not even long")
    with pytest.raises(RunError, match=r"is missing or damaged \(.*\): .* --overwrite"):
        run_stub(tmp_path / "s", resume=True)


def test_a_store_before_its_first_checkpoint_can_be_looked_at(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_stub(tmp_path / "s", checkpoint_every=None, model=Killed())
    assert open_store(tmp_path / "s").length == 0
    for look in (lambda: write_report(tmp_path / "s"), lambda: export(tmp_path / "s", tmp_path / "x.csv")):
        with pytest.raises(StoreError, match="holds no slices yet"):
            look()
    assert not (tmp_path / "x.csv").exists()
