"""``open_stream``: a file, folder, pipe or array, recognised by its name and content, becomes a stream."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from undertow.sources.base import StreamError
from undertow.sources.brokers.base import is_address, shown
from undertow.sources.brokers.source import open_broker
from undertow.sources.capacity import parse_capacity
from undertow.sources.errors import closed_on_error, one_sentence
from undertow.sources.following import Follow
from undertow.sources.formats.arrays import open_array
from undertow.sources.formats.base import Source
from undertow.sources.formats.frames import open_frame
from undertow.sources.formats.labelled import open_labelled_array
from undertow.sources.formats.registry import FORMATS, by_name, guess
from undertow.sources.options import (
    Preparation,
    SourceOptions,
    parse_frame_size,
    parse_labels,
    parse_names,
    parse_numbers,
    parse_parts,
)
from undertow.sources.preparation.masking import open_mask
from undertow.sources.preparation.prepared import PreparedStream
from undertow.sources.preparation.selecting import mode_number
from undertow.sources.times import parse_step


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
    capacity: Any = None,
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
    on_bad: str = "stop",
) -> PreparedStream:
    """Open a file, a folder, a pipe (``"-"``: standard input), a broker's messages or an array as a stream of slices.

    The command line takes the same options with dashes (``--time-axis``) and shows these texts as their help.

    Args:
        source: A path, ``"-"``, ``nats://host/subject``, ``kafka://host/topic``, an array (NumPy, dask, zarr, h5py,
            JAX, torch), ``xarray.DataArray`` or ``Dataset``, or a frame of pandas or polars: wide (rows are times,
            columns entries) or long (one row per entry).
        format: Format, if the name does not show it: npy, csv, video, …
        time_axis: Axis (number) or dimension (name) of time.
        select: Parts of modes and of time: row=10:20, src=A,B, time=2024-01..2024-03; in Python also a mapping.
        resize: A factor such as 0.5, rows x columns such as 72x88, or (Python) sizes by mode; averages over areas.
        missing_value: Number, or numbers with commas, that mean: nothing was observed.
        mask: File (in Python also an array) of the shape of a slice, or one per slice: 0 where nothing was observed.
        time: Column, dimension or array of the times.
        modes: Tables: columns of labels (src,dst). Otherwise: names of the modes.
        value: Tables: column of the values.
        labels: Labels of a mode: src=A,B,C or src=@file, in Python also a mapping. Tables: those that may occur.
        capacity: Tables: slots for labels not known beforehand, src=16; more when they are taken, src=16..64: to 64.
        duplicates: Tables: rows for the same entry and time: refuse (default), sum, mean or last of them.
        variable: Which of several arrays (or DICOM series) in the source.
        colour: In colours, or (--grey, colour=False) as grey values; by default videos as they are, images grey.
        size: Width x height of raw video, 176x144.
        pixels: Raw video: yuv420p (default), yuv422p, yuv444p or gray.
        late: Slices whose time is not after those before: keep, skip or refuse.
        gaps: Times without a slice: keep, fill (with empty slices) or refuse.
        step: Distance of successive times, 5min or 1; by default their median difference.
        follow: Wait for more at the end of a file or folder that grows.
        idle: With follow: end after n seconds without anything new; by default only Ctrl-C or close() ends it.
        poll: With follow: seconds between two checks for more.
        on_bad: Rows, values and slices that cannot be used: stop at them, or skip them with a notice.

    Returns:
        A stream: ``shape``, ``dims``, ``labels``, ``length``, and the slices from ``slices()``.

    Raises:
        StreamError: One sentence that says what is wrong and what to do.

    Example:
        >>> import numpy as np
        >>> stream = open_stream(np.arange(24.0).reshape(4, 3, 2), modes="src,dst", select={"time": "1:"})
        >>> stream.shape, stream.dims, stream.length
        ((3, 2), ('src', 'dst'), 3)
        >>> next(stream.slices()).values[0]
        array([6., 7.])
    """
    options = SourceOptions(
        format=format,
        time_axis=time_axis,
        time=time,
        modes=parse_names("modes", modes),
        value=value,
        labels=parse_labels(labels),
        capacity=parse_capacity(capacity),
        duplicates=duplicates,
        variable=variable,
        colour=colour,
        size=parse_frame_size(size),
        pixels=pixels,
        follow=Follow(idle, poll) if follow else None,
        on_bad=on_bad,
    )
    preparation = Preparation(
        select=parse_parts("select", select),
        resize=resize,
        missing_value=parse_numbers("missing_value", missing_value),
        mask=mask,
        late=late,
        gaps=gaps,
        step=parse_step(step),
    )
    return _prepare(_open_source(source, options), options, preparation)


def _prepare(source: Source, options: SourceOptions, preparation: Preparation) -> PreparedStream:
    with closed_on_error(source):
        _name_modes(source, options)
        mask = None if preparation.mask is None else open_mask(preparation.mask, source, _open_path)
        with one_sentence(f"{source.name} could not be opened", "check it and the options"):
            return PreparedStream(source, preparation, mask, options)


def _open_source(source: Any, options: SourceOptions) -> Source:
    if isinstance(source, (str, os.PathLike)):
        if is_address(os.fspath(source)):
            address = os.fspath(source)
            with one_sentence(f"{shown(address)} could not be opened", "check the address and that the broker runs"):
                return open_broker(address, options)
        if os.fspath(source) != "-":
            return _open_path(Path(source), options)
        if not hasattr(sys.stdin, "buffer") or sys.stdin.isatty():
            raise StreamError("standard input is empty: pipe something into it, for example: program | undertow run -")
        return _open_pipe(sys.stdin.buffer, "standard input", options)
    with one_sentence("the array could not be opened", "check it and the options"):
        if hasattr(source, "dims") and hasattr(source, "coords"):
            options.check_known("a labelled array", frozenset({"time_axis", "time", "variable"}))
            return open_labelled_array(source, options)
        if type(source).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(source, "columns"):
            options.check_known("a frame", frozenset({"time", "value", "duplicates"}))
            return open_frame(source, options)
        if hasattr(source, "__dlpack__") and not isinstance(getattr(source, "dtype", None), np.dtype):
            source = np.from_dlpack(source.detach().cpu() if hasattr(source, "detach") else source)
        if isinstance(source, np.ndarray) or (hasattr(source, "shape") and hasattr(source, "dtype")):
            options.check_known("an array", frozenset({"time_axis"}))
            return open_array(source, options)
    raise StreamError(
        f"source must be a path, '-', an array or a frame, got {type(source).__name__}: name a file or folder, or "
        "convert it with numpy.asarray"
    )


def _open_path(path: Path, options: SourceOptions) -> Source:
    with one_sentence(f"{path.name or path} could not be opened", "check that it is complete and not damaged"):
        if path.is_fifo():
            kind = options.format or by_name(path)
            if kind in FORMATS and FORMATS[kind].open_pipe is None:  # before it is opened: that waits for a sender
                raise _no_pipe(path.name, kind)
            return _open_pipe(path.open("rb"), path.name, replace(options, format=kind))
        if not path.exists():
            raise StreamError(f"{path} does not exist: check the path")
        if not path.is_file() and not path.is_dir():
            raise StreamError(f"{path} is neither a file nor a folder: check the path")
        name = options.format or guess(path)
        if name not in FORMATS:
            raise StreamError(f"format must be one of {', '.join(FORMATS)}, got {name!r}")
        options.check_known(f"{path.name} (format {name})", FORMATS[name].options)
        if path.is_dir() != (name in ("zarr", "images") or (name == "dicom" and path.is_dir())):
            kind, other = ("folder", "file") if path.is_dir() else ("file", "folder")
            raise StreamError(f"{path.name} is a {kind}, but format {name} needs a {other}: give another format")
        if path.is_file() and path.stat().st_size == 0 and options.follow is None:
            raise StreamError(f"{path.name} is empty: check what wrote it")
        return FORMATS[name].open(path, options)


def _open_pipe(file: Any, name: str, options: SourceOptions) -> Source:
    with one_sentence(f"{name} could not be read", "send JSON lines or Arrow IPC"):
        if options.follow is not None:
            raise StreamError(f"{name} needs no follow: it lasts until its sender ends")
        kind = options.format or ("arrow" if file.peek(4)[:4] in (b"\xff\xff\xff\xff", b"ARRO") else "jsonl")
        opener = FORMATS[kind].open_pipe if kind in FORMATS else None
        if opener is None:
            raise _no_pipe(name, kind)
        options.check_known(name, FORMATS[kind].options)
        return opener(file, name, options)


def _no_pipe(name: str, kind: str) -> StreamError:
    return StreamError(f"{name} is a pipe and must be of format jsonl, arrow or csv, got {kind!r}: save it to a file")


def _name_modes(source: Source, options: SourceOptions) -> None:
    """Give the modes of an array the names and labels that the user has for them."""
    if source.format == "table":
        return
    if options.modes is not None:
        if len(options.modes) != len(source.shape) or len(set(options.modes)) != len(options.modes):
            raise StreamError(f"modes must give {len(source.shape)} different names, one per mode, got {options.modes}")
        source.dims = options.modes
    for key, given in (options.labels or {}).items():
        mode = mode_number(key, source.dims)
        if len(given) != source.shape[mode]:
            raise StreamError(f"labels must give {source.shape[mode]} labels for {key}, got {len(given)}")
        source.labels = (*source.labels[:mode], given, *source.labels[mode + 1 :])
