"""A store is resumed by the same run only."""

import pytest
from stubs import StubStream, run_stub

from undertow.runs import RunError
from undertow.runs.identity import require_same


def test_other_sources_and_settings_are_refused(tmp_path):
    run_stub(tmp_path / "s", limit=10)
    with pytest.raises(RunError, match="holds results of stub, and this is another source"):
        run_stub(tmp_path / "s", StubStream(30, shape=(2, 2)), resume=True)
    with pytest.raises(RunError, match="other values of threshold"):
        run_stub(tmp_path / "s", resume=True, threshold=0.7)
    with pytest.raises(RunError, match=r"other values of layout \(chunk, keep\)"):
        run_stub(tmp_path / "s", resume=True, keep="std", checkpoint_every=5)
    run_stub(tmp_path / "s", resume=True)


def test_a_store_begun_before_a_setting_existed_is_resumed():
    begun = {"source": "a", "name": "a", "kind": "Tracker", "layout": {"dims": ["x"], "labels": []}}
    before, now = ({**begun, "model": model} for model in ({"period": None}, {"period": None, "grow": False}))
    require_same(before, now, "s.zarr")
    now["model"]["grow"] = True
    with pytest.raises(RunError, match=r"other values of model settings \(grow\)"):
        require_same(before, now, "s.zarr")
