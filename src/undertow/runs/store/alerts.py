"""Alerts: one row for every entry whose outlier probability reaches the threshold, in the order of the stream."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.runs.errors import StoreError
from undertow.runs.store.folder import replace_file, sync_folders
from undertow.runs.store.layout import Layout, label_column

Format = Literal["csv", "jsonl", "parquet"]
Row = tuple[Any, ...]

NUMBERS = ("value", "expected", "std", "probability")


class AlertSink(Protocol):
    """Where alerts go. ``mark`` says how much there is; ``go_back`` returns to an earlier mark."""

    def add(self, index: int, rows: list[Row]) -> None:
        """The alerts of the slice with this index, none or more."""

    def flush(self) -> None:
        """Everything added so far is safe on the disk."""

    def mark(self) -> int:
        """What to pass to `go_back`; call it after `flush`."""

    def go_back(self, length: int, mark: int) -> None:
        """Forget what was added after this mark, which was set when the store had ``length`` slices."""

    def close(self) -> None:
        """Let go of the file."""


def path_of(format: Format, folder: Path) -> Path:
    """Where the alerts of a store lie: a file, or for Parquet a folder of part files."""
    return folder / ("alerts" if format == "parquet" else f"alerts.{format}")


def open_sink(format: Format, folder: Path, layout: Layout) -> AlertSink:
    """The sink of this format in the folder of a store."""
    path = path_of(format, folder)
    return ParquetParts(path, layout) if format == "parquet" else TextFile(path, layout, format)


def columns(layout: Layout) -> tuple[str, ...]:
    """Names of the columns."""
    return (layout.time_name, *layout.dims, *NUMBERS)


def rows_of(
    layout: Layout, index: int, time: Any, flagged: NDArray[np.bool_], numbers: Sequence[NDArray[Any]]
) -> list[Row]:
    """The alerts of one slice: its time, the labels, and value, expected, std and probability of each flagged entry."""
    places = np.nonzero(flagged)
    if not len(places[0]):
        return []
    stored = layout.times.stored(time, index)
    named = [
        where.tolist() if labels is None else label_column(labels)[where].tolist()
        for where, labels in zip(places, layout.labels, strict=True)
    ]
    values = [np.asarray(array, np.float64)[places].tolist() for array in numbers]
    return [(stored, *row) for row in zip(*named, *values, strict=True)]


class TextFile:
    """One CSV or JSON-lines file, appended to slice by slice, so that `tail -f` shows alerts as they happen."""

    def __init__(self, path: Path, layout: Layout, format: Format) -> None:
        self._path = path
        self._names = columns(layout)
        self._times = layout.times
        self._csv = format == "csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "ab")  # noqa: SIM115 (open for the whole run)

    def add(self, index: int, rows: list[Row]) -> None:
        """Append the rows at once."""
        if rows:
            self._file.write(self._lines([(self._times.shown(row[0]), *row[1:]) for row in rows]))
            self._file.flush()

    def flush(self) -> None:
        """Onto the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def mark(self) -> int:
        """Bytes in the file."""
        return self._file.seek(0, os.SEEK_END)

    def go_back(self, length: int, mark: int) -> None:
        """Cut the file there; an empty one begins with the names of the columns."""
        if self.mark() < mark:
            raise StoreError(
                f"{self._path} is shorter than it was when the run stopped: "
                "run again with --overwrite to start from the beginning"
            )
        self._file.truncate(mark)
        if mark == 0 and self._csv:
            self._file.write(self._lines([self._names]))
        self.flush()

    def close(self) -> None:
        """Let go of the file; what could not be written has been complained about by then."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _lines(self, rows: list[Row]) -> bytes:
        if not self._csv:
            named = (dict(zip(self._names, row, strict=True)) for row in rows)
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named).encode()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()


class ParquetParts:
    """A folder of Parquet files, one per chunk of the store; the part under way is rewritten as it grows."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self._folder = folder
        self._layout = layout
        self._rows: list[Row] = []
        self._part = 0
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, index: int, rows: list[Row]) -> None:
        """Collect rows; the part of a finished chunk is written for the last time."""
        part = index // self._layout.chunk
        if part != self._part:
            self.flush()
            self._part, self._rows = part, []
        self._rows.extend(rows)

    def flush(self) -> None:
        """Write the part under way as it is now."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(
            [pa.array(column, type=kind) for column, kind in zip(self._columns(), self._types(), strict=True)],
            names=list(columns(self._layout)),
        )
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        replace_file(self._path(self._part), memoryview(buffer.getvalue()))
        sync_folders([self._folder])

    def mark(self) -> int:
        """Rows in the part under way."""
        return len(self._rows)

    def go_back(self, length: int, mark: int) -> None:
        """Read the part under way back as far as the mark, and remove those after it."""
        import pyarrow.parquet as pq

        self._part = max(length - 1, 0) // self._layout.chunk
        self._rows = []
        if mark:
            try:
                table = pq.read_table(self._path(self._part), partitioning=None).slice(0, mark)
            except (OSError, ValueError) as error:
                raise StoreError(
                    f"{self._path(self._part)} is missing or damaged ({error}): "
                    "run again with --overwrite to start from the beginning"
                ) from error
            if self._layout.times.kind == "datetime":
                table = table.set_column(0, table.column_names[0], table.column(0).cast("int64"))
            self._rows = [tuple(row.values()) for row in table.to_pylist()]
        for path in self._folder.glob("part-*.parquet"):
            if path.stem[5:].isdigit() and int(path.stem[5:]) > self._part:
                path.unlink()

    def close(self) -> None:
        """Nothing is open between flushes."""
        self._rows = []

    def _columns(self) -> list[tuple[Any, ...]]:
        return list(zip(*self._rows, strict=True)) or [()] * len(columns(self._layout))

    def _types(self) -> list[Any]:
        import pyarrow as pa

        named = {"<i8": pa.int64(), "<f8": pa.float64()}
        dates = self._layout.times.kind == "datetime"
        time = pa.timestamp("ns") if dates else named.get(self._layout.times.dtype, pa.string())
        modes = [
            pa.int64() if labels is None else named.get(label_column(labels).dtype.str, pa.string())
            for labels in self._layout.labels
        ]
        return [time, *modes, *[pa.float64()] * len(NUMBERS)]

    def _path(self, part: int) -> Path:
        return self._folder / f"part-{part:06d}.parquet"
