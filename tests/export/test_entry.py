"""Which format, and what cannot be written."""

import pytest
from stubs import StubStream, store_stub

from undertow.export import export
from undertow.runs.errors import StoreError


def test_impossible_exports_are_one_sentence_and_leave_nothing(store, tmp_path):
    for name, options, sentence in [
        ("x.txt", {}, "x.txt must end in .mp4"),
        ("x.csv", {"variables": ["std"]}, "does not hold std: choose among mean, outliers, data"),
        ("x.nii", {"variables": ["data", "mean"]}, "NIfTI holds one array"),
        ("x.mp4", {"frames_per_second": 0}, "frames per second must be"),
        ("x.mp4", {"variables": ["data"]}, "a video shows original, background and outliers, or with --variables mask"),
    ]:
        with pytest.raises(StoreError, match=sentence):
            export(store, tmp_path / name, **options)
    store_stub(tmp_path / "line", StubStream(3, shape=(5,)))
    with pytest.raises(StoreError, match="one mode, which make no picture"):
        export(tmp_path / "line", tmp_path / "x.mp4")
    store_stub(tmp_path / "bare", StubStream(3), keep="none")
    with pytest.raises(StoreError, match="values per slice only"):
        export(tmp_path / "bare", tmp_path / "x.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"line", "bare"}
