"""CSV: text with a line of column names, then one row an entry; commas, semicolons or tabs, also compressed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra
from undertow.sources.formats.base import Source
from undertow.sources.formats.lines import LineBlocks, LineFile, LinePipe
from undertow.sources.formats.rows import Batch, Columns, Rows, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions


class CSVRows(Rows):
    """Rows of a CSV file or pipe; a batch starts at a byte."""

    def __init__(self, lines: LineBlocks, columns: Columns) -> None:
        super().__init__(lines.name, columns)
        self._lines, self.is_pipe = lines, lines.is_pipe
        header = lines.first_line()
        if not header.strip():
            raise StreamError(f"{self.name} must begin with a line of column names, got an empty line")
        self._delimiter = max(",;\t", key=header.decode("utf-8", "replace").count)
        self._begin = len(header)
        self._time_type: Any = None
        self._names: list[str] | None = None
        self._names = self._parsed(header).column_names
        self.check_columns(self._names)

    def batches(self, start: int = 0) -> Iterator[Batch]:  # noqa: D102
        if self._time_type is None:  # the first rows decide between dates and texts, wherever reading begins
            self._note_time_type(self._parsed(self._lines.sample(self._begin) or b"\n"))
        for offset, block in self._lines.blocks(max(start, self._begin)):
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
        arrow, csv = (import_extra(module, "table", "A CSV table") for module in ("pyarrow", "pyarrow.csv"))
        types = dict.fromkeys(self.columns.modes, arrow.string()) | {self.columns.value: arrow.float64()}
        if self._time_type is not None:
            types[self.columns.time] = self._time_type
        wanted = None if self._names is None else list(self.columns.names)
        size = max(len(block) + 1, 2**16)  # the whole block is parsed as one
        return csv.read_csv(
            io.BytesIO(block),
            read_options=csv.ReadOptions(use_threads=False, column_names=self._names, block_size=size),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=wanted),
        )


def open_csv(path: Path, options: SourceOptions) -> Source:
    """A file, which may still grow; a first pass finds labels and times."""
    columns = columns_of(path.name, options)
    rows = CSVRows(LineFile(path, options.follow), columns)
    return open_table(rows, options, CSVRows(LineFile(path, growing=options.follow is not None), columns))


def open_csv_pipe(file: Any, name: str, options: SourceOptions) -> Source:
    """A pipe, whose labels must be given."""
    return open_table(CSVRows(LinePipe(file, name), columns_of(name, options)), options, None)
