"""``open_stream``: whatever holds slices, told by its name and looks, becomes a stream."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from undertow.sources.base import StreamError
from undertow.sources.errors import told_in_one_sentence
from undertow.sources.following import Follow
from undertow.sources.formats.arrays import open_array
from undertow.sources.formats.arrow_ipc import ArrowPipe
from undertow.sources.formats.base import Source
from undertow.sources.formats.labelled import open_labelled_array
from undertow.sources.formats.lines import LinePipe
from undertow.sources.formats.registry import FORMATS, guess, open_arrow, open_lines
from undertow.sources.formats.table import DUPLICATES, columns_of, open_table
from undertow.sources.formats.table_formats import CSVRows
from undertow.sources.options import Options, check_choice, parse_frame_size, parse_labels, parse_names, parse_numbers
from undertow.sources.preparation import selecting, times
from undertow.sources.preparation.masking import mask_identity, open_mask
from undertow.sources.preparation.prepared import Preparation, PreparedStream


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
    modes: Any = None,
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
    check_choice("late", late, times.LATE)
    check_choice("gaps", gaps, times.GAPS)
    check_choice("duplicates", duplicates or "refuse", DUPLICATES)
    options = Options(
        time_axis=time_axis,
        time=time,
        modes=parse_names("modes", modes),
        value=value,
        labels=parse_labels(labels),
        duplicates=duplicates,
        variable=variable,
        colour=colour or None,
        size=parse_frame_size(size),
        pixels=pixels,
        follow=Follow(idle, poll) if follow else None,
    )
    preparation = Preparation(
        selecting.as_mapping(select), resize, parse_numbers(missing_value), late, gaps, times.parse_step(step)
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
            if not hasattr(sys.stdin, "buffer") or sys.stdin.isatty():
                raise StreamError(
                    "standard input brings nothing: pipe something into it, for example: program | undertow run -"
                )
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
        name = format or guess(path)
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


def _open_pipe(file: Any, name: str, format: str | None, options: Options) -> Source:
    with told_in_one_sentence(f"{name} could not be read", "send JSON lines or Arrow IPC"):
        if options.follow is not None:
            raise StreamError(f"{name} needs no follow: it lasts until its sender ends")
        kind = format or ("arrow" if file.peek(4)[:4] in (b"\xff\xff\xff\xff", b"ARRO") else "jsonl")
        if kind not in ("jsonl", "arrow", "csv"):
            raise StreamError(f"{name} must be of format jsonl, arrow or csv, got {kind!r}: save it to a file")
        _check_known(name, options, FORMATS[kind].options)
        if kind == "arrow":
            return open_arrow(ArrowPipe(file, name), options)
        lines = LinePipe(file, name)
        if kind == "csv":
            return open_table(CSVRows(lines, columns_of(name, options)), options, None)
        return open_lines(lines, options, None)


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
