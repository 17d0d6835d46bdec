"""docs/how-to/read-files.md runs: every example opens a file of the name it has there."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from stream_files import LENGTH, labelled, numbers, video

import undertow as ut
from undertow.sources.formats.registry import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "read-files.md").read_text()
EXAMPLES = re.findall(r"`(ut\.open_stream\([^`]*\))` \|", PAGE)


@pytest.fixture
def folder_of_examples(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copies = {
        "npy": "cube.npy", "mat73": "cube.mat", "zarr": "air.zarr", "csv": "flows.csv", "parquet": "flows.parquet",
        "video": "lobby.mp4", "images": "frames", "nifti_compressed": "bold.nii.gz", "dicom": "series",
        "jsonl": "sensors.jsonl", "arrow": "sensors.arrow",
    }  # fmt: skip
    for name, copy in copies.items():
        source = made(name).path
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
    np.savez("cube.npz", x=numbers(), y=numbers(), when=np.arange(LENGTH))
    labelled().rename("temperature").to_netcdf("air.nc", engine="h5netcdf")
    Path("lobby.yuv").write_bytes(bytes(176 * 144 * 3 // 2 * 2))
    video(Path("lobby.mp4"), "mpeg4")


def test_every_format_has_an_example():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    assert named == set(FORMATS)
    assert len(EXAMPLES) == len(FORMATS)  # NetCDF and HDF5 share one, arrays have one more


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, folder_of_examples):
    stream = eval(example, {"ut": ut, "array": numbers()})
    items = list(stream.slices())
    assert len(items) >= 2
    json.dumps(items[-1].position)
    stream.close()


def test_the_block_of_code_runs(folder_of_examples, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "read-files.md", "exec"), {})
    assert "(6, 5) ('src', 'dst')" in capsys.readouterr().out
