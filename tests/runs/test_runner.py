"""The way of the slices: threads, callbacks, interrupts, failures."""

import signal
import threading
import time

import pytest
import xarray as xr
from stubs import OPTIONS, StubModel, StubStream, broken_run, differing_files, load_stub, run_stub

from undertow.runs import RunError, RunInterrupted, run


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
    run_stub(tmp_path / "s", model=Model(), progress=lambda now: seen.append(threading.current_thread().name))
    assert threads == {"undertow writer"}
    assert seen == [threading.current_thread().name] * 30


def test_progress_reports_every_slice(tmp_path):
    seen = []
    run_stub(tmp_path / "s", progress=seen.append)
    assert [now.slices for now in seen] == list(range(1, 31))
    assert {now.length for now in seen} == {30}
    assert seen[4].rank == 1 + 5 % 3
    assert seen[4].noise_std == 1 / 5
    assert all(0 <= now.safe <= now.slices for now in seen)
    assert any(now.outlier_rate > 0 for now in seen)


def test_what_the_source_notices_is_passed_on_once(tmp_path):
    stream = StubStream(10)
    stream.notices = []
    heard = []

    def notice(now):
        if now.slices == 3:
            stream.notices.append("slice 2 came late")

    summary = run_stub(tmp_path / "s", stream, notify=heard.append, progress=notice)
    assert heard == ["slice 2 came late"] == list(summary.notices)


def test_a_result_that_cannot_be_computed_is_one_sentence(tmp_path):
    class Exhausted(StubModel):
        def update(self, x):
            result = super().update(x)
            if self.steps == 10:
                del result.outliers
            return result

    with pytest.raises(RunError, match=rf"a result for {tmp_path}/s could not be computed .*: 8 slices are safe in it"):
        run_stub(tmp_path / "s", model=Exhausted(), keep="outliers")


@pytest.mark.parametrize("error", [LookupError, BrokenPipeError])
def test_what_a_callback_raises_comes_through(tmp_path, error):
    def watch(now):
        if now.slices == 10:
            raise error("mine")

    with pytest.raises(error, match="mine"):
        run_stub(tmp_path / "s", progress=watch)
    # From the checkpoint after 8 slices, or a later one that the writer had reached by then.
    assert run_stub(tmp_path / "s", resume=True).new_slices in (22, 18, 14)


@pytest.fixture
def signals_are_heard():
    """Also where the tests were started with nohup, or in the background of a script."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_after_the_slice_under_way(tmp_path, whole, number, signals_are_heard):
    before = signal.getsignal(number)

    class Interrupted(StubModel):
        def update(self, x):
            if self.steps == 6:
                signal.raise_signal(number)
            return super().update(x)

    with pytest.raises(RunInterrupted, match=rf"stopped after 7 slices, all of them in {tmp_path}/s: continue with"):
        run_stub(tmp_path / "s", model=Interrupted())
    assert signal.getsignal(number) is before
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 7
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


class InterruptedAtTheEnd(StubModel):
    def update(self, x):
        if self.steps == 29:
            signal.raise_signal(signal.SIGINT)
        return super().update(x)


def test_ctrl_c_in_the_last_slice_is_not_swallowed(tmp_path, whole, signals_are_heard):
    """Whoever runs one file after another wants to stop, not to go on with the next."""
    with pytest.raises(RunInterrupted, match="stopped after 30 slices"):
        run_stub(tmp_path / "s", model=InterruptedAtTheEnd())
    run_stub(tmp_path / "s", resume=True)
    assert not differing_files(tmp_path / "s", whole)


def test_a_signal_that_was_ignored_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run_stub(tmp_path / "s", model=InterruptedAtTheEnd()).complete
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_slice_that_the_model_refuses_is_named(tmp_path):
    class Picky(StubModel):
        def update(self, x):
            if self.steps == 9:
                raise ValueError("x must be finite where observed, got 1 infinite entry.")
            return super().update(x)

    with pytest.raises(RunError) as caught:
        run(StubStream(30), Picky(), store=tmp_path / "s", load=load_stub, **OPTIONS)
    assert str(caught.value) == (
        "slice 9 of stub was refused (x must be finite where observed, got 1 infinite entry); "
        f"the 9 slices before it are in {tmp_path}/s, continue with --resume"
    )
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 9


def test_a_source_that_waits_does_not_keep_its_slices_at_risk(tmp_path):
    class Waiting(StubStream):
        def slices(self, position=None):
            yield from super().slices(position)
            while not (tmp_path / "s/.undertow/checkpoint-000000000005").exists():
                time.sleep(0.01)

    summary = run_stub(tmp_path / "s", Waiting(5), checkpoint_every=None, checkpoint_seconds=0.05)
    assert summary.slices == 5


def test_an_empty_stream_is_one_sentence(tmp_path):
    with pytest.raises(RunError, match="stub holds no slices"):
        run_stub(tmp_path / "s", StubStream(0))


def test_a_source_that_times_out_is_not_waited_for(tmp_path):
    assert "reading stub failed (no answer)" in broken_run(tmp_path / "s", TimeoutError("no answer"))
