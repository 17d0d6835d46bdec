"""Damaged and missing checkpoints."""

import pytest
import xarray as xr
from stubs import broken_run, differing_files, run_stub

from undertow.runs import RunError


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
    notices = []
    summary = run_stub(tmp_path / "s", resume=True, notify=notices.append)
    assert notices == [f"{newest} cannot be read, resuming from the checkpoint before it, 12 slices in"]
    assert summary.notices == tuple(notices)
    assert summary.new_slices == 18
    assert not differing_files(tmp_path / "s", whole)


def test_without_any_readable_checkpoint_nothing_is_thrown_away(tmp_path):
    broken_run(tmp_path / "s")
    for path in (tmp_path / "s/.undertow").glob("checkpoint-*"):
        path.write_bytes(b"UNDERTOW")
    with pytest.raises(RunError, match=r"no checkpoint in .* can be read .* --overwrite"):
        run_stub(tmp_path / "s", resume=True)
    assert xr.open_zarr(tmp_path / "s").sizes["time"] == 15


def test_the_first_checkpoint_falls_back_to_the_beginning(tmp_path, whole):
    broken_run(tmp_path / "s", at=3)
    (tmp_path / "s/.undertow/checkpoint-000000000003").write_bytes(b"torn")
    notices = []
    assert run_stub(tmp_path / "s", resume=True, notify=notices.append).new_slices == 30
    assert "0 slices in" in notices[0]
    assert not differing_files(tmp_path / "s", whole)
