"""What a run needs before it starts."""

import threading

import pytest
from stubs import run_stub

from undertow.runs import RunError


@pytest.mark.parametrize("name", ["zarr", "numcodecs", "pyarrow", "nats"])
def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.setattr("undertow.runs.entry.find_spec", lambda wanted: None if wanted == name else wanted)
    with pytest.raises(RunError, match=rf" needs? {name}: pip install 'undertow\["):
        run_stub(tmp_path / "s", publish="nats://me:secret@host/found")
    assert not (tmp_path / "s").exists()


def test_two_runs_never_write_one_store(tmp_path):
    begun, may_end = threading.Event(), threading.Event()

    def hold(now):
        begun.set()
        may_end.wait(10)

    other = threading.Thread(target=run_stub, args=(tmp_path / "s",), kwargs={"progress": hold})
    other.start()
    begun.wait(10)
    with pytest.raises(RunError, match="is being written by another run"):
        run_stub(tmp_path / "s", resume=True)
    may_end.set()
    other.join()
