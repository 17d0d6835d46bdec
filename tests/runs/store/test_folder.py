"""Whose folder it is, and what may be removed from it."""

import pytest
import xarray as xr
from stubs import StubStream, store_stub

from undertow.runs import RunError


def test_a_folder_of_someone_else_is_left_alone(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.txt").write_text("years of work")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match="not empty and was not made by undertow run"):
            store_stub(tmp_path / "s", **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="must be a folder"):
        store_stub(tmp_path / "file")
    assert (tmp_path / "s" / "thesis.txt").read_text() == "years of work"


def test_overwrite_removes_results_and_nothing_else(tmp_path):
    store_stub(tmp_path / "s", keep="low_rank_std", alerts="jsonl")
    (tmp_path / "s" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="holds results already: continue with --resume"):
        store_stub(tmp_path / "s")
    store_stub(tmp_path / "s", StubStream(5), overwrite=True)
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "s" / "low_rank_std").exists()
    assert not (tmp_path / "s" / "alerts.jsonl").exists()
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 5
