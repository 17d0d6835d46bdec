"""The formats by name: how each is opened, how its files are told, which options it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from undertow.sources.base import StreamError
from undertow.sources.formats.arrow_ipc import ArrowFile, ArrowPipe, ArrowSlices
from undertow.sources.formats.base import Source
from undertow.sources.formats.dicom import dicom_files, open_dicom
from undertow.sources.formats.images import SUFFIXES as PICTURES
from undertow.sources.formats.images import open_folder
from undertow.sources.formats.json_lines import JSONSlices
from undertow.sources.formats.labelled import open_labelled_file, open_zarr
from undertow.sources.formats.lines import LineBlocks, LineFile
from undertow.sources.formats.matlab import open_mat
from undertow.sources.formats.nifti import open_nifti
from undertow.sources.formats.npy import open_npy
from undertow.sources.formats.npz import open_npz
from undertow.sources.formats.table import Survey, columns_of, open_table
from undertow.sources.formats.table_formats import ArrowRows, CSVRows, JSONRows, ParquetRows
from undertow.sources.formats.video import open_video
from undertow.sources.formats.yuv import open_yuv
from undertow.sources.options import Options


@dataclass(frozen=True)
class Format:
    """How a format is opened, how its files are told, and which options it knows beside those of all formats."""

    open: Callable[[Path, Options], Source]
    suffixes: tuple[str, ...]
    options: frozenset[str]
    magic: bytes = b"\0no magic number\0"


def guess(path: Path) -> str:
    """The format of a file or folder by its name, or else by how it begins."""
    lower = path.name.lower()
    for name, known in FORMATS.items():
        if lower.endswith(known.suffixes) and path.is_dir() == (name == "zarr"):
            return name
    if path.is_dir():
        return _guess_folder(path)
    with path.open("rb") as file:
        beginning = file.read(16)
    for name, known in FORMATS.items():
        if beginning.startswith(known.magic):
            return name
    raise StreamError(f"{path.name} has a name that tells no format: give format, one of {', '.join(FORMATS)}")


def _guess_folder(path: Path) -> str:
    inside = [entry.name.lower() for entry in path.iterdir()]
    if any(name in ("zarr.json", ".zgroup", ".zarray", ".zmetadata") for name in inside):
        return "zarr"
    if any(name.endswith(PICTURES) for name in inside):
        return "images"
    if dicom_files(path):
        return "dicom"
    raise StreamError(
        f"{path.name} is a folder without pictures, DICOM files or a Zarr store in it: name another one, or give format"
    )


def _open_csv(path: Path, options: Options) -> Source:
    columns = columns_of(path.name, options)
    rows = CSVRows(LineFile(path, options.follow), columns)
    survey = Survey(CSVRows(LineFile(path, growing=options.follow is not None), columns))
    return open_table(rows, options, survey)


def _open_parquet(path: Path, options: Options) -> Source:
    rows = ParquetRows(path, columns_of(path.name, options))
    return open_table(rows, options, Survey(rows))


def _open_arrow_file(path: Path, options: Options) -> Source:
    return open_arrow(ArrowFile(path), options)


def open_arrow(opened: ArrowFile | ArrowPipe, options: Options) -> Source:
    """Slices as nested lists, or the rows of a long table if its columns are named."""
    if options.modes is None:
        return ArrowSlices(opened, options)
    rows = ArrowRows(opened, opened.name, columns_of(opened.name, options))
    return open_table(rows, options, Survey(rows) if isinstance(opened, ArrowFile) else None)


def _open_json_lines(path: Path, options: Options) -> Source:
    first_pass = LineFile(path, growing=options.follow is not None)
    return open_lines(LineFile(path, options.follow), options, first_pass)


def open_lines(lines: LineBlocks, options: Options, first_pass: LineBlocks | None) -> Source:
    """A slice a line, or a row of a long table a line if its columns are named."""
    if options.modes is None or options.value is None:
        return JSONSlices(lines, options)
    columns = columns_of(lines.name, options)
    survey = None if first_pass is None else Survey(JSONRows(first_pass, columns))
    return open_table(JSONRows(lines, columns), options, survey)


_TABLE = frozenset({"time", "modes", "value", "labels", "duplicates"})
_NAMES = frozenset({"modes", "labels"})

FORMATS: dict[str, Format] = {
    "npy": Format(open_npy, (".npy",), _NAMES | {"time_axis", "follow"}, b"\x93NUMPY"),
    "npz": Format(open_npz, (".npz",), _NAMES | {"time_axis", "time", "variable"}, b"PK\x03\x04"),
    "mat": Format(open_mat, (".mat",), _NAMES | {"time_axis", "time", "variable"}, b"MATLAB"),
    "netcdf": Format(open_labelled_file, (".nc", ".nc4", ".cdf"), _NAMES | {"time_axis", "time", "variable"}, b"CDF"),
    "hdf5": Format(
        open_labelled_file, (".h5", ".hdf5", ".he5"), _NAMES | {"time_axis", "time", "variable"}, b"\x89HDF"
    ),
    "zarr": Format(open_zarr, (".zarr",), _NAMES | {"time_axis", "time", "variable", "follow"}),
    "csv": Format(_open_csv, (".csv", ".tsv", ".csv.gz", ".tsv.gz"), _TABLE | {"follow"}),
    "parquet": Format(_open_parquet, (".parquet", ".pq"), _TABLE, b"PAR1"),
    "arrow": Format(_open_arrow_file, (".arrow", ".arrows", ".feather", ".ipc"), _TABLE, b"ARROW1"),
    "jsonl": Format(_open_json_lines, (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), _TABLE | {"follow"}),
    "nifti": Format(open_nifti, (".nii", ".nii.gz"), _NAMES | {"time_axis"}),
    "dicom": Format(open_dicom, (".dcm", ".ima", ".dicom"), _NAMES | {"variable"}),
    "yuv": Format(open_yuv, (".yuv", ".raw", ".gray"), _NAMES | {"size", "pixels", "colour", "follow"}),
    "images": Format(open_folder, ("/",), _NAMES | {"colour", "follow"}),
    "video": Format(
        open_video,
        (".mp4", ".avi", ".mkv", ".mov", ".webm", ".mpg", ".mpeg", ".m4v", ".y4m", ".ogv", ".wmv", ".flv", ".ts"),
        _NAMES | {"colour"},
    ),
}
"""Every format of files and folders by its name."""
