"""Alerts: one row for every entry whose outlier probability reaches the threshold, in the order of the stream.

Of pictures, one row for every region of such entries: that of the entry farthest off, how many there are, and the box
around them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from undertow.runs.errors import StoreError
from undertow.runs.store.cells import spreadsheet_safe, without_apostrophe
from undertow.runs.store.folder import replace_file, sync_folders
from undertow.runs.store.growing import START_AGAIN, GrowingFile
from undertow.runs.store.layout import Layout, label_column
from undertow.runs.store.regions import regions

Format = Literal["csv", "jsonl", "parquet"]
Row = tuple[Any, ...]

NUMBERS = ("value", "expected", "std", "probability")
ENTRIES = "entries"
"""Column after these where rows are regions; then first and last index in every mode of the picture."""


def open_sink(format: Format, folder: Path, layout: Layout, *, safe: bool = False) -> AlertSink:
    """The table of alerts in the folder of a store: it grows by `add`, and `go_back` cuts it to earlier `marks`."""
    path = _path(format, folder)
    return ParquetParts(path, layout) if format == "parquet" else TextFile(path, layout, format, safe=safe)


def rows_of(
    layout: Layout, index: int, time: Any, flagged: NDArray[np.bool_], numbers: Sequence[NDArray[Any]]
) -> list[Row]:
    """The alerts of one slice.

    Args:
        layout: of the store.
        index: of the slice.
        time: of the slice.
        flagged: which entries are alerts.
        numbers: arrays of the slice, one for each of `NUMBERS`.

    Returns:
        One row per flagged entry, or per region: time as stored, labels, numbers, and what is said of regions.
    """
    positions = np.nonzero(flagged)
    if not len(positions[0]):
        return []
    stored = layout.times.stored(time, index)
    beside: list[tuple[int, ...]] = [()] * len(positions[0])
    if layout.region_modes:
        positions, beside = _worst_of_regions(flagged, layout.region_modes, numbers)
    named = [
        where.tolist() if labels is None else label_column(labels)[where].tolist()
        for where, labels in zip(positions, layout.labels, strict=True)
    ]
    values = [np.asarray(array, np.float64)[positions].tolist() for array in numbers]
    return [(stored, *row, *more) for *row, more in zip(*named, *values, beside, strict=True)]


def _worst_of_regions(
    flagged: NDArray[np.bool_], modes: int, numbers: Sequence[NDArray[Any]]
) -> tuple[tuple[NDArray[np.int64], ...], list[tuple[int, ...]]]:
    """Of every region the position of the entry farthest off; its number of entries, and the box around it."""
    value, expected, std, _ = (np.asarray(array, np.float64) for array in numbers)
    away = np.abs(value - expected) / np.maximum(std, np.finfo(np.float64).tiny)
    worst, beside = [], []
    for region in regions(flagged, modes):
        at = int(np.argmax(away[region]))
        worst.append([where[at] for where in region])
        box = [edge for where in region[:modes] for edge in (int(where.min()), int(where.max()))]
        beside.append((len(region[0]), *box))
    return tuple(np.array(worst, np.int64).T), beside


def read_alerts(format: str, folder: Path, *, safe: bool = False) -> Iterator[dict[str, Any]]:
    """All alerts of a store, in order, by the names of the columns; none if ``format`` is "none".

    A last row that is half written is left out. ``safe`` says that cells were made safe for spreadsheets.
    """
    path = _path(format, folder)
    if format == "none" or not path.exists():
        return
    if format == "parquet":
        yield from _read_parquet(path)
        return
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        lines = (line for line in file if line.endswith("\n"))
        rows = _read_json(lines) if format == "jsonl" else _read_csv(lines, safe)
        number = 0
        while True:
            number += 1
            try:
                row = next(rows, None)
            except (ValueError, TypeError, csv.Error) as error:
                if next(lines, None) is None:
                    return
                raise StoreError(
                    f"{path} is damaged at alert {number} ({error}): restore it from a copy, or {START_AGAIN}"
                ) from error
            if row is None:
                return
            yield row


def _read_json(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield json.loads(line)


def _read_csv(lines: Iterator[str], safe: bool) -> Iterator[dict[str, Any]]:
    plain = without_apostrophe if safe else str
    for row in csv.DictReader(lines):
        yield {plain(name): float(cell) if name in NUMBERS else plain(cell) for name, cell in row.items()}


class TextFile(GrowingFile):
    """One CSV or JSON-lines file, appended to slice by slice, so that `tail -f` shows alerts as they happen."""

    def __init__(self, path: Path, layout: Layout, format: Format, *, safe: bool = False) -> None:
        super().__init__(path)
        self._names = _columns(layout)
        self._times = layout.times
        self._csv = format == "csv"
        self._safe = safe  # for spreadsheets

    def add(self, index: int, rows: list[Row]) -> None:
        """Append the rows immediately."""
        if rows:
            self.write(self._lines([(self._times.shown(row[0]), *row[1:]) for row in rows]))

    def go_back(self, length: int, marks: Mapping[str, int]) -> None:
        """Cut the file at earlier `marks`; an empty CSV file starts with the names of the columns."""
        self.cut(marks)
        if self._csv and not marks.get(self._path.stem):
            self.write(self._lines([self._names]))
        self.flush()

    def _lines(self, rows: list[Row]) -> bytes:
        if not self._csv:
            named = (dict(zip(self._names, row, strict=True)) for row in rows)
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named).encode()
        if self._safe:
            rows = [tuple(map(spreadsheet_safe, row)) for row in rows]
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

        names = _columns(self._layout)
        columns = list(zip(*self._rows, strict=True)) or [()] * len(names)
        arrays = [pa.array(column, type=kind) for column, kind in zip(columns, self._types(), strict=True)]
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.table(arrays, names=list(names)), buffer, compression="zstd", write_page_checksum=True)
        replace_file(self._part_path(), memoryview(buffer.getvalue()))
        sync_folders([self._folder])

    def marks(self) -> dict[str, int]:
        """Rows in the part under way."""
        return {self._folder.name: len(self._rows)}

    def go_back(self, length: int, marks: Mapping[str, int]) -> None:
        """Read the part under way of a store of ``length`` slices as far as ``marks``, and remove those after it."""
        self._part = max(length - 1, 0) // self._layout.chunk
        self._rows = []
        if rows := marks.get(self._folder.name, 0):
            table = _read_part(self._part_path()).slice(0, rows)
            if self._layout.times.kind == "datetime":
                table = table.set_column(0, table.column_names[0], table.column(0).cast("int64"))
            self._rows = [tuple(row.values()) for row in table.to_pylist()]
        for path in self._folder.glob("part-*.parquet"):
            if path.stem[5:].isdigit() and int(path.stem[5:]) > self._part:
                path.unlink()

    def close(self) -> None:
        """Nothing is open between flushes."""

    def _types(self) -> list[Any]:
        import pyarrow as pa

        named = {"<i8": pa.int64(), "<f8": pa.float64()}
        times = self._layout.times
        time = pa.timestamp("ns") if times.kind == "datetime" else named.get(times.dtype, pa.string())
        modes = [
            pa.int64() if labels is None else named.get(label_column(labels).dtype.str, pa.string())
            for labels in self._layout.labels
        ]
        regions = [pa.int64()] * len(_of_regions(self._layout))
        return [time, *modes, *[pa.float64()] * len(NUMBERS), *regions]

    def _part_path(self) -> Path:
        return self._folder / f"part-{self._part:06d}.parquet"


AlertSink: TypeAlias = TextFile | ParquetParts


def _path(format: str, folder: Path) -> Path:
    """A file, or for Parquet a folder of part files."""
    return folder / ("alerts" if format == "parquet" else f"alerts.{format}")


def _columns(layout: Layout) -> tuple[str, ...]:
    return (layout.time_name, *layout.dims, *NUMBERS, *_of_regions(layout))


def _of_regions(layout: Layout) -> tuple[str, ...]:
    """Columns beyond those of entries."""
    pictured = layout.dims[: layout.region_modes]
    edges = [f"{dim}_{end}" for dim in pictured for end in ("first", "last")]
    return (ENTRIES, *edges) if layout.region_modes else ()


def _read_parquet(folder: Path) -> Iterator[dict[str, Any]]:
    for part in sorted(folder.glob("part-*.parquet")):
        for row in _read_part(part).to_pylist():
            yield {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def _read_part(path: Path) -> Any:
    """A table of PyArrow, whose pages are what was written."""
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise StoreError("alerts in Parquet need pyarrow: pip install 'undertow[table]'") from None
    try:
        return pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is missing or damaged ({error}): restore it from a copy, or {START_AGAIN}") from error
