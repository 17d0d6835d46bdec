"""Only what a run made is ever removed: other files in the folder of a store stay, or stand in the way."""

import json
import shutil

import pytest
import xarray as xr
import zarr
from stubs import StubStream, everything_in, store_stub

from undertow.runs import RunError
from undertow.runs.store.manifest import read_manifest

MINE = {
    "mine.zarr/zarr.json": "{}",
    "mine.zarr/c.0": "numbers",
    "alerts/siren.wav": "sound",
    "draft.tmp": "unsaved",
    "deep/er/draft.tmp": "unsaved",
    "mean_notes/zarr.json": "{}",
}


def put(folder, files=MINE):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def still_there(folder, files=MINE):
    return {name: (folder / name).read_text() for name in files if (folder / name).exists()}


@pytest.fixture
def store(tmp_path):
    store_stub(tmp_path / "s")
    return tmp_path / "s"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"overwrite": True}, {"resume": True}])
@pytest.mark.parametrize("manifest", [True, False])
def test_what_no_run_made_stays(store, options, manifest):
    put(store)
    if not manifest:  # as before there were any
        (store / ".undertow/manifest.json").unlink()
    store_stub(store, StubStream(25), **options)
    assert still_there(store) == MINE
    assert xr.open_zarr(store).sizes["time"] == 25


def test_everything_that_a_run_made_is_removed(store):
    before = set(everything_in(store))
    store_stub(store, StubStream(5), overwrite=True, keep="none", alerts=None)
    after = set(everything_in(store))
    assert not [name for name in after if name.startswith(("mean/", "alerts"))]
    assert after < before | {".undertow/checkpoint-000000000005"}


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_a_left_over_private_folder_makes_no_other_file_ours(tmp_path, options):
    files = {**MINE, "mean/zarr.json": "{}", "alerts.csv": "wind,ice\n"}
    (tmp_path / ".undertow").mkdir()
    put(tmp_path, files)
    with pytest.raises(RunError, match=r"not made by undertow run \(it holds alerts\): name another store"):
        store_stub(tmp_path, **options)
    assert still_there(tmp_path, files) == files


def test_checkpoints_without_their_store_are_not_begun_over_without_a_word(store):
    (store / "zarr.json").unlink()
    before = everything_in(store)
    with pytest.raises(RunError, match="holds results already: continue with --resume"):
        store_stub(store)
    assert everything_in(store) == before
    store_stub(store, StubStream(5), overwrite=True)
    assert xr.open_zarr(store).sizes["time"] == 5


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_group_of_someone_else_is_left_alone(tmp_path):
    zarr.create_group(tmp_path / "s").create_array("rank", shape=(3,), dtype="f8")[:] = 1.0
    zarr.consolidate_metadata(tmp_path / "s")
    (tmp_path / "s/.undertow").mkdir()
    before = everything_in(tmp_path / "s")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunError, match="was not made by undertow run"):
            store_stub(tmp_path / "s", **options)
    assert everything_in(tmp_path / "s") == before


@pytest.mark.parametrize("name", ["mean/notes.txt", "std/c.0.0.0.backup", "time/own/zarr.json", "alerts.jsonl"])
def test_what_stands_in_the_way_is_named_before_anything_is_removed(store, name):
    put(store, {name: "mine"})
    before = everything_in(store)
    first = name.removesuffix("/zarr.json")
    with pytest.raises(
        RunError, match=rf"{first} stands in the way and was not written by undertow run: move it away, or name"
    ):
        store_stub(store, overwrite=True, alerts="jsonl")
    assert everything_in(store) == before


def test_folders_that_are_links_are_not_emptied(store, tmp_path):
    shutil.move(store / "mean", tmp_path / "elsewhere")
    (store / "mean").symlink_to(tmp_path / "elsewhere")
    before = everything_in(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="mean stands in the way"):
        store_stub(store, overwrite=True)
    assert everything_in(tmp_path / "elsewhere") == before


def test_a_manifest_that_points_outside_is_not_followed(store, tmp_path):
    put(tmp_path / "other", {"zarr.json": "mine", "c.0": "mine"})
    path = store / ".undertow/manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "made": {**content["made"], "../other": "folder"}}))
    assert read_manifest(store) is None
    with pytest.raises(RunError, match="was not made by undertow run"):
        store_stub(store, overwrite=True)
    assert len(everything_in(tmp_path / "other")) == 2


def test_what_a_killed_writer_left_half_done_is_removed(store):
    half_done = {"zarr.json.tmp": "", "mean/c.0.0.0.tmp": "", ".undertow/.checkpoint-000000000020.0f.tmp": ""}
    put(store, {**half_done, "mean.tmp": "mine"})
    store_stub(store, resume=True)
    assert still_there(store, {**half_done, "mean.tmp": ""}) == {"mean.tmp": "mine"}
