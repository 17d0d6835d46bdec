"""Long tables as CSV, Parquet, Arrow and JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import optional
from undertow.sources.formats.lines import LineBlocks
from undertow.sources.formats.rows import Batch, Columns, Rows
from undertow.sources.preparation import times

_BATCH_ROWS = 65_536


class CSVRows(Rows):
    """Text with a line of column names and commas, semicolons or tabs; a place is a byte."""

    def __init__(self, lines: LineBlocks, columns: Columns) -> None:
        super().__init__(lines.name, columns)
        self._lines = lines
        header = lines.first_line()
        if not header.strip():
            raise StreamError(f"{self.name} must begin with a line of column names, got an empty line")
        self._delimiter = max(",;\t", key=header.decode("utf-8", "replace").count)
        self._begin = len(header)
        self._time_type: Any = None
        self._names: list[str] | None = None
        self._names = self._parsed(header).column_names
        self.check_columns(self._names)

    def batches(self, place: int = 0) -> Iterator[Batch]:  # noqa: D102
        if self._time_type is None:  # dates are told from texts by the first rows, wherever reading begins
            self._note_time_type(self._parsed(self._lines.sample(self._begin) or b"\n"))
        for offset, block in self._lines.blocks(max(place, self._begin)):
            table = self._parsed(block)
            if table.num_rows:
                self._note_time_type(table)
                yield self.batch(table, offset)

    def close(self) -> None:  # noqa: D102
        self._lines.close()

    def _note_time_type(self, table: Any) -> None:
        if self._time_type is None and table.num_rows:
            self._time_type = table.column(self.columns.time).type

    def _parsed(self, block: bytes) -> Any:
        csv, arrow = optional("pyarrow.csv", "table", "A CSV table"), optional("pyarrow", "table", "A CSV table")
        types = dict.fromkeys(self.columns.modes, arrow.string()) | {self.columns.value: arrow.float64()}
        if self._time_type is not None:
            types[self.columns.time] = self._time_type
        wanted = None if self._names is None else list(self.columns.names)
        size = max(len(block) + 1, 2**16)  # one block of ours is one of theirs
        return csv.read_csv(
            io.BytesIO(block),
            read_options=csv.ReadOptions(use_threads=False, column_names=self._names, block_size=size),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=wanted),
        )


class ParquetRows(Rows):
    """A place is a row group."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path.name, columns)
        self._path = path
        with self._opened() as file:
            self.check_columns(file.schema_arrow.names)

    def batches(self, place: int = 0) -> Iterator[Batch]:  # noqa: D102
        with self._opened() as file:
            for group in range(place, file.num_row_groups):
                offset = 0
                for piece in file.iter_batches(_BATCH_ROWS, [group], list(self.columns.names), use_threads=False):
                    if piece.num_rows:
                        yield self.batch(piece, group, offset)
                    offset += piece.num_rows

    def _opened(self) -> Any:
        parquet = optional("pyarrow.parquet", "table", "A Parquet table")
        return parquet.ParquetFile(self._path)


class ArrowRows(Rows):
    """Arrow IPC, from a file or a pipe; a place is a record batch."""

    def __init__(self, opened: Any, name: str, columns: Columns) -> None:
        """``opened`` gives the record batches, see ``arrow_ipc.py``."""
        super().__init__(name, columns)
        self._opened = opened
        self.check_columns(opened.schema.names)

    def batches(self, place: int = 0) -> Iterator[Batch]:  # noqa: D102
        for number, piece in self._opened.batches(place):
            if piece.num_rows:
                yield self.batch(piece, number)


class JSONRows(Rows):
    """One JSON object a line and row; a place is a byte."""

    def __init__(self, lines: LineBlocks, columns: Columns) -> None:
        super().__init__(lines.name, columns)
        self._lines = lines

    def batches(self, place: int = 0) -> Iterator[Batch]:  # noqa: D102
        arrow = optional("pyarrow", "table", "A table of JSON lines")
        time = self.columns.time
        for offset, block in self._lines.blocks(place):
            rows = [json.loads(line) for line in block.splitlines() if line.strip()]
            for row in rows:
                if not isinstance(row, dict):
                    raise StreamError(
                        f"{self.name} must have an object such as {{…}} in each line, got {str(row)[:40]!r}"
                    )
                self.check_columns(list(row))
                if isinstance(row[time], str):
                    row[time] = times.from_text(row[time])
            if not rows:
                continue
            data = {name: [row[name] for row in rows] for name in self.columns.names}
            for mode in self.columns.modes:
                data[mode] = [None if label is None else str(label) for label in data[mode]]
            yield self.batch(arrow.table(data), offset)

    def close(self) -> None:  # noqa: D102
        self._lines.close()
