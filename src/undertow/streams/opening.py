"""``open_stream``: whatever holds slices, told by its name and looks, becomes a stream."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from undertow.streams import selecting, times
from undertow.streams.arrays import open_array
from undertow.streams.arrow_ipc import ArrowFile, ArrowPipe, ArrowSlices
from undertow.streams.dicom import dicom_files, open_dicom
from undertow.streams.following import Follow
from undertow.streams.images import SUFFIXES as PICTURES
from undertow.streams.images import open_folder
from undertow.streams.json_lines import JSONSlices
from undertow.streams.labelled import open_labelled_array, open_labelled_file, open_zarr
from undertow.streams.lines import LineBlocks, LineFile, LinePipe
from undertow.streams.masking import mask_identity, open_mask
from undertow.streams.matlab import open_mat
from undertow.streams.nifti import open_nifti
from undertow.streams.npy import open_npy
from undertow.streams.npz import open_npz
from undertow.streams.options import Options
from undertow.streams.prepared import Preparation, PreparedStream
from undertow.streams.source import Source
from undertow.streams.stream import Label, StreamError
from undertow.streams.table import DUPLICATES, Survey, columns_of, open_table
from undertow.streams.table_formats import ArrowRows, CSVRows, JSONRows, ParquetRows
from undertow.streams.trouble import told_in_one_sentence
from undertow.streams.video import open_video
from undertow.streams.yuv import open_yuv


@dataclass(frozen=True)
class Format:
    """How a format is opened, how its files are told, and which options it knows beside those of all formats."""

    open: Callable[[Path, Options], Source]
    suffixes: tuple[str, ...]
    options: frozenset[str]
    magic: bytes = b"\0no magic number\0"


def open_stream(
    source: Any,
    *,
    format: str | None = None,
    time_axis: int | str | None = None,
    select: Any = None,
    resize: Any = None,
    missing_value: Any = None,
    mask: Any = None,
    time: str | None = None,
    modes: str | Sequence[str] | None = None,
    value: str | None = None,
    labels: Any = None,
    duplicates: str | None = None,
    variable: str | None = None,
    colour: bool | None = None,
    size: str | tuple[int, int] | None = None,
    pixels: str | None = None,
    late: str = "keep",
    gaps: str = "keep",
    step: Any = None,
    follow: bool = False,
    idle: float | None = None,
    poll: float = 0.5,
) -> PreparedStream:
    """Open a file, a folder, a pipe (``"-"``: standard input) or an array as a stream of slices.

    Args:
        source: a path, ``"-"``, a NumPy array or an ``xarray.DataArray``.
        format: one of the names in ``FORMATS`` if the source's name does not tell.
        time_axis: which axis is time: a number, or the name of a dimension where there are names.
        select: parts of modes and of time, for example ``{"time": "100:200", "src": ["A", "B"], "row": "10:20"}``.
        resize: a factor, ``"72x88"`` (rows x columns), or sizes by mode; averages over areas.
        missing_value: number or numbers that mean "nothing was observed".
        mask: array or file of the shape of a slice (or one per slice): 0 where nothing was observed.
        time: column, dimension or array of the times.
        modes: for tables the columns of labels; otherwise names for the modes.
        value: column of the values.
        labels: per mode its labels, for tables those that may occur.
        duplicates: ``"refuse"`` (default) or ``"sum"``: rows of a table for the same entry and time.
        variable: which of several arrays (or DICOM series) in the source.
        colour: pictures and video as colours instead of grey values.
        size: width and height of raw video, ``"176x144"``.
        pixels: of raw video: ``"yuv420p"`` (default), ``"yuv422p"``, ``"yuv444p"``, ``"gray"``.
        late: ``"keep"``, ``"skip"`` or ``"refuse"`` slices whose time is not after those before, see ``times.py``.
        gaps: ``"keep"``, ``"fill"`` or ``"refuse"`` times without a slice.
        step: distance of successive times, such as ``"5min"`` or ``1``; by default the usual one.
        follow: wait for more at the end of a file or folder that still grows.
        idle: end a followed stream once nothing came for so many seconds; None waits for ever (Ctrl-C ends it).
        poll: how often to look, in seconds.

    Raises:
        StreamError: one sentence that says what is wrong and what to do.
    """
    _check_choice("late", late, times.LATE)
    _check_choice("gaps", gaps, times.GAPS)
    _check_choice("duplicates", duplicates or "refuse", DUPLICATES)
    options = Options(
        time_axis=time_axis,
        time=time,
        modes=_names("modes", modes),
        value=value,
        labels=_labels(labels),
        duplicates=duplicates,
        variable=variable,
        colour=colour or None,
        size=_frame_size(size),
        pixels=pixels,
        follow=Follow(idle, poll) if follow else None,
    )
    preparation = Preparation(
        selecting.as_mapping(select), resize, _numbers(missing_value), mask, late, gaps, times.parse_step(step)
    )
    opened = _open_source(source, format, options)
    try:
        _check_mode_names(opened, options)
        observed = None if mask is None else open_mask(mask, opened, lambda path, inner: _open_path(path, None, inner))
        said = {field.name: getattr(options, field.name) for field in fields(options) if field.name != "follow"}
        said |= {"select": preparation.select, "missing": preparation.missing_values, "late": late, "gaps": gaps}
        said |= {"resize": resize}
        said |= {"mask": None if mask is None else mask_identity(mask)}
        with told_in_one_sentence(f"{opened.name} could not be opened", "check it and the options"):
            return PreparedStream(opened, preparation, observed, said)
    except BaseException:
        opened.close()
        raise


def _open_source(source: Any, format: str | None, options: Options) -> Source:
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            return _open_pipe(sys.stdin.buffer, "standard input", format, options)
        return _open_path(Path(source), format, options)
    with told_in_one_sentence("the array could not be opened", "check it and the options"):
        if isinstance(source, np.ndarray):
            _check_known("an array", options, {"time_axis"})
            return open_array(source, options)
        if hasattr(source, "dims") and hasattr(source, "coords"):
            _check_known("a labelled array", options, {"time_axis", "time"})
            return open_labelled_array(source, options)
    raise StreamError(f"source must be a path, '-' or an array, got {type(source).__name__}: name a file or folder")


def _open_path(path: Path, format: str | None, options: Options) -> Source:
    with told_in_one_sentence(f"{path.name or path} could not be opened", "check that it is complete and not damaged"):
        if path.is_fifo():
            return _open_pipe(path.open("rb"), path.name, format, options)
        if not path.exists():
            raise StreamError(f"{path} does not exist: check the path")
        if not path.is_file() and not path.is_dir():
            raise StreamError(f"{path} is neither a file nor a folder: check the path")
        name = format or _guess(path)
        if name not in FORMATS:
            raise StreamError(f"format must be one of {', '.join(FORMATS)}, got {name!r}")
        chosen = FORMATS[name]
        _check_known(f"{path.name} (format {name})", options, chosen.options)
        if path.is_dir() != (name in ("zarr", "images") or (name == "dicom" and path.is_dir())):
            raise StreamError(
                f"{path.name} is a {'folder' if path.is_dir() else 'file'}, not something of format {name}"
            )
        if path.is_file() and path.stat().st_size == 0 and options.follow is None:
            raise StreamError(f"{path.name} is empty: check what wrote it")
        return chosen.open(path, options)


def _guess(path: Path) -> str:
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


def _open_pipe(file: Any, name: str, format: str | None, options: Options) -> Source:
    with told_in_one_sentence(f"{name} could not be read", "send JSON lines or Arrow IPC"):
        if options.follow is not None:
            raise StreamError(f"{name} needs no follow: it lasts until its sender ends")
        kind = format or ("arrow" if file.peek(4)[:4] in (b"\xff\xff\xff\xff", b"ARRO") else "jsonl")
        if kind not in ("jsonl", "arrow", "csv"):
            raise StreamError(f"{name} must be of format jsonl, arrow or csv, got {kind!r}: save it to a file")
        _check_known(name, options, FORMATS[kind].options)
        if kind == "arrow":
            return _open_arrow(ArrowPipe(file, name), options)
        lines = LinePipe(file, name)
        if kind == "csv":
            return open_table(CSVRows(lines, columns_of(name, options)), options, None)
        return _open_lines(lines, options, None)


def _open_csv(path: Path, options: Options) -> Source:
    columns = columns_of(path.name, options)
    rows = CSVRows(LineFile(path, options.follow), columns)
    survey = Survey(CSVRows(LineFile(path, growing=options.follow is not None), columns))
    return open_table(rows, options, survey)


def _open_parquet(path: Path, options: Options) -> Source:
    rows = ParquetRows(path, columns_of(path.name, options))
    return open_table(rows, options, Survey(rows))


def _open_arrow_file(path: Path, options: Options) -> Source:
    return _open_arrow(ArrowFile(path), options)


def _open_arrow(opened: ArrowFile | ArrowPipe, options: Options) -> Source:
    if options.modes is None:
        return ArrowSlices(opened, options)
    rows = ArrowRows(opened, opened.name, columns_of(opened.name, options))
    return open_table(rows, options, Survey(rows) if isinstance(opened, ArrowFile) else None)


def _open_json_lines(path: Path, options: Options) -> Source:
    first_pass = LineFile(path, growing=options.follow is not None)
    return _open_lines(LineFile(path, options.follow), options, first_pass)


def _open_lines(lines: LineBlocks, options: Options, first_pass: LineBlocks | None) -> Source:
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
    "jsonl": Format(_open_json_lines, (".jsonl", ".ndjson"), _TABLE | {"follow"}),
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


def _check_known(what: str, options: Options, known: set[str] | frozenset[str]) -> None:
    """Refuse an option that would have no effect: whoever gave it expects one."""
    for field in fields(options):
        if getattr(options, field.name) is not None and field.name not in known | {"modes", "labels"}:
            raise StreamError(f"{field.name} means nothing for {what}: leave it out")


def _check_mode_names(source: Source, options: Options) -> None:
    """Give the modes of an array the names and labels that the user has for them."""
    if source.format == "table":
        return
    if options.modes is not None:
        if len(options.modes) != len(source.shape) or len(set(options.modes)) != len(options.modes):
            raise StreamError(f"modes must give {len(source.shape)} different names, one per mode, got {options.modes}")
        source.dims = options.modes
    for key, given in (options.labels or {}).items():
        mode = selecting.mode_number(key, source.dims)
        if len(given) != source.shape[mode]:
            raise StreamError(f"labels must give {source.shape[mode]} labels for {key}, got {len(given)}")
        source.labels = (*source.labels[:mode], given, *source.labels[mode + 1 :])


def _check_choice(name: str, chosen: str, choices: Sequence[str]) -> None:
    if chosen not in choices:
        raise StreamError(f"{name} must be one of {', '.join(choices)}, got {chosen!r}")


def _names(option: str, given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(str(name).strip() for name in (given.split(",") if isinstance(given, str) else given))
    if not names or not all(names):
        raise StreamError(f"{option} must be names separated by commas, got {given!r}")
    return names


def _labels(given: Any) -> dict[str, tuple[Label, ...]] | None:
    """Labels per mode; a text is a list with commas, or after an @ the name of a file with one label a line."""
    if given is None:
        return None
    made: dict[str, tuple[Label, ...]] = {}
    for mode, labels in selecting.as_mapping(given).items():
        if isinstance(labels, str) and labels.startswith("@"):
            with told_in_one_sentence(f"labels could not be read from {labels[1:]}", "name a text file"):
                made[str(mode)] = tuple(line for line in Path(labels[1:]).read_text("utf-8").splitlines() if line)
        elif isinstance(labels, str):
            made[str(mode)] = tuple(label.strip() for label in labels.split(","))
        else:
            made[str(mode)] = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        if len({str(label) for label in made[str(mode)]}) < len(made[str(mode)]) or not made[str(mode)]:
            raise StreamError(f"labels of {mode} must all be different, and at least one, got {labels!r}")
    return made


def _frame_size(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    pieces = re.split(r"[x×,]", size) if isinstance(size, str) else size
    try:
        width, height = (int(piece) for piece in pieces)
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1:
        raise StreamError(f"size must be width and height such as 176x144, got {size!r}")
    return width, height


def _numbers(given: Any) -> tuple[float, ...]:
    if given is None:
        return ()
    pieces = (
        given.split(",") if isinstance(given, str) else given if isinstance(given, (Sequence, Mapping)) else [given]
    )
    try:
        return tuple(float(piece) for piece in pieces)
    except (TypeError, ValueError):
        raise StreamError(f"missing_value must be a number or several, got {given!r}") from None
