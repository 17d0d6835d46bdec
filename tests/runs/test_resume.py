"""Nothing lost: whatever ends a run, the same run again gives the bytes of a run that was never stopped."""

import errno
import os
import re
import signal
import threading
import time

import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, StubStream, everything_in, load_stub

from undertow.export import export
from undertow.report import write_report
from undertow.runs import RunError, RunInterrupted, run
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import open_store

OPTIONS = {"checkpoint_every": 4, "keep": "low_rank,data", "alerts": "parquet", "load": load_stub}


def follow(folder, stream=None, model=None, **options):
    stream = stream or StubStream(30, times=minute)
    return run(stream, model or StubModel(), store=folder, **{**OPTIONS, **options})


def minute(index):
    return np.datetime64("2024-05-01T00:00") + index


@pytest.fixture
def whole(tmp_path):
    follow(tmp_path / "whole")
    return everything_in(tmp_path / "whole")


def files_that_differ(folder, whole):
    found = everything_in(folder)
    return {name for name in {*found, *whole} if found.get(name) != whole.get(name)}


@pytest.mark.parametrize("alerts", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("stops", [(4, 8, 30), (1, 3, 5, 17)])
def test_stopped_and_gone_on_with_is_the_same(tmp_path, alerts, stops):
    follow(tmp_path / "whole", alerts=alerts)
    for stop in stops:
        follow(tmp_path / "pieces", limit=stop, resume=True, alerts=alerts)
    summary = follow(tmp_path / "pieces", resume=True, alerts=alerts)
    assert (summary.slices, summary.new_slices, summary.complete) == (30, 30 - stops[-1], True)
    assert not files_that_differ(tmp_path / "pieces", everything_in(tmp_path / "whole"))


def test_a_stream_that_has_grown_since_is_gone_on_with(tmp_path, whole):
    follow(tmp_path / "s", StubStream(18, times=minute))
    follow(tmp_path / "s", resume=True)
    assert not files_that_differ(tmp_path / "s", whole)


def test_moments_of_checkpoints_leave_no_trace(tmp_path, whole):
    follow(tmp_path / "s", StubStream(30, times=minute, pause=0.002), checkpoint_seconds=0.005)
    assert not files_that_differ(tmp_path / "s", whole)


def broken_run(folder, error=None, at=15):
    """A run whose source fails: it leaves two checkpoints, the newest after 15 slices and one after 12."""
    stream = StubStream(
        30, times=minute, fail_at=at, error=error or OSError(errno.EIO, "Input/output error", "disk.npy")
    )
    with pytest.raises(RunError) as caught:
        follow(folder, stream)
    return str(caught.value)


def test_a_vanished_input_is_one_sentence_and_everything_before_it_is_there(tmp_path, whole):
    sentence = broken_run(tmp_path / "s", FileNotFoundError(errno.ENOENT, "No such file or directory", "gone.npy"))
    assert sentence == (
        f"reading stub failed (No such file or directory: gone.npy); the 15 slices before it are in {tmp_path}/s, "
        "continue with --resume"
    )
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 15
    follow(tmp_path / "s", resume=True)
    assert not files_that_differ(tmp_path / "s", whole)


def damage_end(content):
    return content[:-9]


def damage_middle(content):
    return content[: len(content) // 2] + b"\x00\xff" + content[len(content) // 2 + 2 :]


@pytest.mark.parametrize("damage", [damage_end, damage_middle, lambda content: b""], ids=["torn", "changed", "empty"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(tmp_path, whole, damage):
    broken_run(tmp_path / "s")
    newest, before = tmp_path / "s/.undertow/checkpoint-000000000015", tmp_path / "s/.undertow/checkpoint-000000000012"
    assert before.exists()
    newest.write_bytes(damage(newest.read_bytes()))
    said = []
    summary = follow(tmp_path / "s", resume=True, notify=said.append)
    assert said == [f"{newest} cannot be read, resuming from the checkpoint before it, 12 slices in"]
    assert summary.notices == tuple(said)
    assert summary.new_slices == 18
    assert not files_that_differ(tmp_path / "s", whole)


def test_without_any_readable_checkpoint_nothing_is_thrown_away(tmp_path):
    broken_run(tmp_path / "s")
    for path in (tmp_path / "s/.undertow").glob("checkpoint-*"):
        path.write_bytes(b"UNDERTOW")
    with pytest.raises(RunError, match=r"no checkpoint in .* can be read .* --overwrite"):
        follow(tmp_path / "s", resume=True)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 15


def test_resume_of_nothing_begins(tmp_path, whole):
    follow(tmp_path / "s", resume=True)
    assert not files_that_differ(tmp_path / "s", whole)


def complaint_of(folder):
    """What a run complains about, or None if it gets through."""
    try:
        follow(folder)
    except RunError as error:
        return str(error)
    return None


def test_a_full_disk_at_any_write_is_one_sentence_and_can_be_gone_on_with(tmp_path, whole, monkeypatch):
    """Every write is made safe by fsync: let the n-th fail, for one n after the other, until a run gets through."""
    really, failed = os.fsync, 0
    for n in range(0, 100_000, 23):
        calls = iter(range(n))

        def fsync(descriptor, calls=calls):
            if next(calls, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")
            really(descriptor)

        folder = tmp_path / f"s{n}"
        monkeypatch.setattr(os, "fsync", fsync)
        complaint = complaint_of(folder)
        monkeypatch.setattr(os, "fsync", really)
        if complaint is None:
            break
        failed += 1
        said = re.search(r" (\d+) slices are safe in it, continue with --resume", complaint)
        safe = int(said[1]) if said else 0
        assert complaint.startswith(f"no space is left for {folder}: ")
        assert safe == 0 or xr.open_zarr(folder).sizes["time"] >= safe
        assert follow(folder, resume=True).new_slices <= 30 - safe
        assert not files_that_differ(folder, whole)
    assert failed > 5


def test_a_slice_that_the_model_refuses_is_named(tmp_path):
    class Picky(StubModel):
        def update(self, x):
            if self.steps == 9:
                raise ValueError("x must be finite where observed, got 1 infinite entry.")
            return super().update(x)

    with pytest.raises(RunError) as caught:
        run(StubStream(30), Picky(), store=tmp_path / "s", **OPTIONS)
    assert str(caught.value) == (
        "slice 9 of stub was refused (x must be finite where observed, got 1 infinite entry); "
        f"the 9 slices before it are in {tmp_path}/s, continue with --resume"
    )
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_after_the_slice_under_way(tmp_path, whole, number):
    before = signal.getsignal(number)

    class Interrupted(StubModel):
        def update(self, x):
            if self.steps == 6:
                signal.raise_signal(number)
            return super().update(x)

    with pytest.raises(RunInterrupted, match=rf"stopped after 7 slices, all of them in {tmp_path}/s: continue with"):
        follow(tmp_path / "s", model=Interrupted())
    assert signal.getsignal(number) is before
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 7
    follow(tmp_path / "s", resume=True)
    assert not files_that_differ(tmp_path / "s", whole)


def test_a_source_that_waits_does_not_keep_its_slices_at_risk(tmp_path):
    class Waiting(StubStream):
        def slices(self, position=None):
            yield from super().slices(position)
            while not (tmp_path / "s/.undertow/checkpoint-000000000005").exists():
                time.sleep(0.01)

    summary = follow(tmp_path / "s", Waiting(5), checkpoint_every=None, checkpoint_seconds=0.05)
    assert summary.slices == 5


def test_other_sources_and_settings_are_refused(tmp_path):
    follow(tmp_path / "s", limit=10)
    with pytest.raises(RunError, match="holds results of stub, and this is another source"):
        follow(tmp_path / "s", StubStream(30, shape=(2, 2)), resume=True)
    with pytest.raises(RunError, match="other values of threshold"):
        follow(tmp_path / "s", resume=True, threshold=0.7)
    with pytest.raises(RunError, match=r"other values of layout \(chunk, keep\)"):
        follow(tmp_path / "s", resume=True, keep="std", checkpoint_every=5)
    follow(tmp_path / "s", resume=True)


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 0.0}, {"threshold": 2}, {"alerts": "xml"}, {"precision": "half"}, {"checkpoint_every": 0},
     {"checkpoint_seconds": 0}, {"limit": 0}],
    ids=str,
)  # fmt: skip
def test_impossible_wishes_are_refused_before_anything_is_written(tmp_path, wrong):
    with pytest.raises(RunError, match=f"^{next(iter(wrong))} must"):
        follow(tmp_path / "s", **wrong)
    assert not (tmp_path / "s").exists()


def test_an_empty_stream_is_one_sentence(tmp_path):
    with pytest.raises(RunError, match="stub holds no slices"):
        follow(tmp_path / "s", StubStream(0))


def test_two_runs_never_write_one_store(tmp_path):
    begun, may_end = threading.Event(), threading.Event()

    def hold(now):
        begun.set()
        may_end.wait(10)

    other = threading.Thread(target=follow, args=(tmp_path / "s",), kwargs={"progress": hold})
    other.start()
    begun.wait(10)
    with pytest.raises(RunError, match="is being written by another run"):
        follow(tmp_path / "s", resume=True)
    may_end.set()
    other.join()


def test_progress_tells_what_is_going_on(tmp_path):
    seen = []
    follow(tmp_path / "s", progress=seen.append)
    assert [now.slices for now in seen] == list(range(1, 31))
    assert {now.length for now in seen} == {30}
    assert seen[4].rank == 1 + 5 % 3
    assert seen[4].noise_std == 1 / 5
    assert all(0 <= now.safe <= now.slices for now in seen)
    assert any(now.outlier_rate > 0 for now in seen)


def test_results_are_fetched_in_the_writing_thread_alone(tmp_path):
    """Whoever asks a result for its arrays waits for the device: progress must not do so between two updates."""
    threads = set()

    class Recorded:
        def __init__(self, result):
            self._result = result

        def __getattr__(self, name):
            threads.add(threading.current_thread().name)
            return getattr(self._result, name)

    class Model(StubModel):
        def update(self, x):
            return Recorded(super().update(x))

    seen = []
    follow(tmp_path / "s", model=Model(), progress=lambda now: seen.append(threading.current_thread().name))
    assert threads == {"undertow writer"}
    assert seen == [threading.current_thread().name] * 30


def test_what_the_source_notices_is_passed_on_once(tmp_path):
    stream = StubStream(10)
    stream.notices = []
    said = []

    def notice(now):
        if now.slices == 3:
            stream.notices.append("slice 2 came late")

    summary = follow(tmp_path / "s", stream, notify=said.append, progress=notice)
    assert said == ["slice 2 came late"] == list(summary.notices)


class Killed(StubModel):
    """Ends the run in its second slice, without a word to anybody."""

    def update(self, x):
        if self.steps == 1:
            raise KeyboardInterrupt
        return super().update(x)


def without_checkpoints(folder):
    for path in (folder / ".undertow").glob("checkpoint-*"):
        path.unlink()


def test_killed_before_the_first_checkpoint_it_begins_again(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path / "s", keep="std", model=Killed())
    without_checkpoints(tmp_path / "s")
    follow(tmp_path / "s", resume=True)
    assert not files_that_differ(tmp_path / "s", whole)


def test_results_without_a_checkpoint_are_not_thrown_away(tmp_path):
    follow(tmp_path / "s")
    without_checkpoints(tmp_path / "s")
    with pytest.raises(RunError, match="holds results but no checkpoint to resume from: start again with --overwrite"):
        follow(tmp_path / "s", resume=True)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 30


def test_the_first_checkpoint_falls_back_to_the_beginning(tmp_path, whole):
    broken_run(tmp_path / "s", at=3)
    (tmp_path / "s/.undertow/checkpoint-000000000003").write_bytes(b"torn")
    said = []
    assert follow(tmp_path / "s", resume=True, notify=said.append).new_slices == 30
    assert "0 slices in" in said[0]
    assert not files_that_differ(tmp_path / "s", whole)


def test_a_source_that_times_out_is_not_waited_for(tmp_path):
    assert "reading stub failed (no answer)" in broken_run(tmp_path / "s", TimeoutError("no answer"))


def test_a_chunk_that_is_gone_is_noticed(tmp_path):
    broken_run(tmp_path / "s")
    (tmp_path / "s/low_rank/c.1.0.0").unlink()
    with pytest.raises(
        RunError, match=r"low_rank in .* is missing or damaged \(chunk 1 is not there\): .* --overwrite"
    ):
        follow(tmp_path / "s", resume=True)


@pytest.mark.parametrize("name", ["low_rank/c.3.0.0", "alerts/part-000003.parquet"])
def test_an_unfinished_chunk_that_is_damaged_is_noticed(tmp_path, name):
    broken_run(tmp_path / "s")
    (tmp_path / "s" / name).write_bytes(b"nonsense, and not even long")
    with pytest.raises(RunError, match=r"is missing or damaged \(.*\): .* --overwrite"):
        follow(tmp_path / "s", resume=True)


def test_what_a_watcher_raises_comes_through(tmp_path):
    def watch(now):
        if now.slices == 10:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        follow(tmp_path / "s", progress=watch)
    assert follow(tmp_path / "s", resume=True).new_slices in (
        22,
        18,
        14,
    )  # from a checkpoint after the tenth slice or before


def test_settings_that_the_model_chose_are_in_the_store(tmp_path):
    class Choosing(StubModel):
        def update(self, x):
            result = super().update(x)
            result.settings = {"window": np.int64(self.steps), "forgetting": np.float32(0.5), "shape": (3, 4)}
            return result

    run(StubStream(5), Choosing(), store=tmp_path / "s", **OPTIONS)
    assert open_store(tmp_path / "s").settings == {"window": 5, "forgetting": 0.5, "shape": [3, 4]}


@pytest.mark.parametrize("name", ["zarr", "numcodecs", "pyarrow"])
def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.setattr("undertow.runs.entry.find_spec", lambda wanted: None if wanted == name else wanted)
    with pytest.raises(RunError, match=rf" needs? {name}: pip install 'undertow\["):
        follow(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_store_before_its_first_checkpoint_can_be_looked_at(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path / "s", checkpoint_every=None, model=Killed())
    assert open_store(tmp_path / "s").length == 0
    for look in (lambda: write_report(tmp_path / "s"), lambda: export(tmp_path / "s", tmp_path / "x.csv")):
        with pytest.raises(StoreError, match="holds no slices yet"):
            look()
    assert not (tmp_path / "x.csv").exists()
