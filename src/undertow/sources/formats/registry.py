"""The formats by name: how each is opened, how its files are recognised, which options it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.formats.arrow import open_arrow, open_arrow_pipe
from undertow.sources.formats.base import Source
from undertow.sources.formats.csv import open_csv, open_csv_pipe
from undertow.sources.formats.dicom import dicom_files, open_dicom
from undertow.sources.formats.images import SUFFIXES as IMAGES
from undertow.sources.formats.images import Folder
from undertow.sources.formats.json_lines import open_json_lines, open_json_pipe
from undertow.sources.formats.labelled import open_labelled_file, open_zarr
from undertow.sources.formats.matlab import open_mat
from undertow.sources.formats.nifti import NiftiFile
from undertow.sources.formats.npy import NpyFile
from undertow.sources.formats.npz import open_npz
from undertow.sources.formats.parquet import open_parquet
from undertow.sources.formats.video import VideoFile
from undertow.sources.formats.yuv import RawVideo
from undertow.sources.options import SourceOptions


@dataclass(frozen=True)
class Format:
    """One format of files or folders.

    Attributes:
        open: opens a path.
        suffixes: how its files are named.
        options: the options of reading that it knows, besides ``modes`` and ``labels``.
        magic: how its files begin, for files whose name shows no format.
        open_pipe: opens standard input, for formats that can be read from it.
    """

    open: Callable[[Path, SourceOptions], Source]
    suffixes: tuple[str, ...]
    options: frozenset[str]
    magic: bytes | None = None
    open_pipe: Callable[[Any, str, SourceOptions], Source] | None = None


def guess(path: Path) -> str:
    """The format of a file or folder by its name, or else by how it begins."""
    if (named := by_name(path)) is not None:
        return named
    if path.is_dir():
        return _guess_folder(path)
    with path.open("rb") as file:
        beginning = file.read(16)
    for name, known in FORMATS.items():
        if known.magic is not None and beginning.startswith(known.magic):
            return name
    raise StreamError(f"{path.name} has a name that shows no format: give format, one of {', '.join(FORMATS)}")


def by_name(path: Path) -> str | None:
    """The format that the name of a file, a pipe or a folder shows."""
    lower = path.name.lower()
    for name, known in FORMATS.items():
        if lower.endswith(known.suffixes) and path.is_dir() == (name == "zarr"):
            return name
    return None


def _guess_folder(path: Path) -> str:
    inside = [entry.name.lower() for entry in path.iterdir()]
    if any(name in ("zarr.json", ".zgroup", ".zarray", ".zmetadata") for name in inside):
        return "zarr"
    if any(name.endswith(IMAGES) for name in inside):
        return "images"
    if dicom_files(path):
        return "dicom"
    raise StreamError(
        f"{path.name} is a folder without images, DICOM files or a Zarr store in it: name another one, or give format"
    )


_TABLE = frozenset({"time", "value", "duplicates", "capacity"})
_VARIABLE = frozenset({"time_axis", "time", "variable"})
_VIDEO = (".mp4", ".avi", ".mkv", ".mov", ".webm", ".mpg", ".mpeg", ".m4v", ".y4m", ".ogv", ".wmv", ".flv", ".ts")
_JSON = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")

FORMATS: dict[str, Format] = {
    "npy": Format(NpyFile, (".npy",), frozenset({"time_axis", "follow"}), b"\x93NUMPY"),
    "npz": Format(open_npz, (".npz",), _VARIABLE, b"PK\x03\x04"),
    "mat": Format(open_mat, (".mat",), _VARIABLE, b"MATLAB"),
    "netcdf": Format(open_labelled_file, (".nc", ".nc4", ".cdf"), _VARIABLE, b"CDF"),
    "hdf5": Format(open_labelled_file, (".h5", ".hdf5", ".he5"), _VARIABLE, b"\x89HDF"),
    "zarr": Format(open_zarr, (".zarr",), _VARIABLE | {"follow"}),
    "csv": Format(open_csv, (".csv", ".tsv", ".csv.gz", ".tsv.gz"), _TABLE | {"follow"}, open_pipe=open_csv_pipe),
    "parquet": Format(open_parquet, (".parquet", ".pq"), _TABLE, b"PAR1"),
    "arrow": Format(open_arrow, (".arrow", ".arrows", ".feather", ".ipc"), _TABLE, b"ARROW1", open_arrow_pipe),
    "jsonl": Format(open_json_lines, _JSON, _TABLE | {"follow"}, open_pipe=open_json_pipe),
    "nifti": Format(NiftiFile, (".nii", ".nii.gz"), frozenset({"time_axis"})),
    "dicom": Format(open_dicom, (".dcm", ".ima", ".dicom"), frozenset({"variable"})),
    "yuv": Format(RawVideo, (".yuv", ".raw", ".gray"), frozenset({"size", "pixels", "colour", "follow"})),
    "images": Format(Folder, ("/",), frozenset({"colour", "follow"})),
    "video": Format(VideoFile, _VIDEO, frozenset({"colour"})),
}
"""Every format of files and folders by its name."""
