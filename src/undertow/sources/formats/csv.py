"""CSV: text with a line of column names, then one row an entry; commas, semicolons or tabs, also compressed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra
from undertow.sources.formats.base import Source
from undertow.sources.formats.lines import LineBlocks, LineFile, LinePipe
from undertow.sources.formats.rows import MAX_COLUMNS, Batch, Columns, Rows, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.formats.wide import DATES, date_forms, delimiter_of, named_columns, offset_in, open_wide_csv
from undertow.sources.options import SourceOptions

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class CSVRows(Rows):
    """Rows of a CSV file or pipe; a batch starts at a byte."""

    def __init__(self, lines: LineBlocks, columns: Columns, dates: tuple[str, ...] = DATES) -> None:
        super().__init__(lines.name, columns)
        self._lines, self.is_pipe = lines, lines.is_pipe
        header = lines.first_line()
        if not header.strip():
            raise StreamError(f"{self.name} must begin with a line of column names, got an empty line")
        self._delimiter = delimiter_of(header)
        self._begin = len(header)
        if header.count(self._delimiter.encode()) >= 2 * MAX_COLUMNS:  # in quotes a few may not count
            self.check_columns(header.decode("utf-8", "replace").split(self._delimiter))
        self._time_type: Any = None
        self._dates = dates
        self._decimal: str | None = None
        self._names: list[str] | None = None
        self._names = self._parsed(header, {}).column_names
        self.check_columns(self._names)

    def batches(self, start: int = 0) -> Iterator[Batch]:  # noqa: D102
        sample = self._lines.sample(self._begin)
        self._note_decimal(sample)
        self._note_time_type(sample)  # the first rows decide, wherever reading begins
        for offset, block in self._lines.blocks(max(start, self._begin)):
            self._note_decimal(block)
            self._note_time_type(block)
            table = self._usable(block, offset)
            if table.num_rows:
                yield self.batch(table, offset)

    def close(self) -> None:  # noqa: D102
        self._lines.close()

    def _note_decimal(self, block: bytes) -> None:
        """Whether numbers are written with a comma: where nothing else is separated by it, the first value decides."""
        if self._decimal is not None or self._delimiter == "," or not block.strip():
            return
        arrow, value = import_extra("pyarrow", "table", "A CSV table"), self.columns.value
        texts = self._parsed(block, {value: arrow.string()}, only=[value]).column(value).to_pylist()
        fractions = [text for text in texts if text and re.fullmatch(r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*", text)]
        if fractions:
            self._decimal = "," if "," in fractions[0] else "."

    def _note_time_type(self, block: bytes) -> None:
        """Numbers, dates or texts: what the times of these rows are, or most of them and the first."""
        arrow = import_extra("pyarrow", "table", "A CSV table")
        if self._time_type is not None or not block.strip():
            return
        time = self.columns.time
        column = self._parsed(block, {}, only=[time]).column(time)
        if arrow.types.is_string(column.type) and column.null_count < len(column):
            texts = [text for text in column.to_pylist() if text][:1000]
            looks = _NUMBER if _NUMBER.fullmatch(texts[0]) else _DATE if _DATE.match(texts[0]) else None
            alike = [text for text in texts if looks is not None and looks.match(text)]
            if 2 * len(alike) > len(texts):
                names, self._names = self._names, [time]
                try:
                    column = self._parsed("\n".join(alike).encode(), {}).column(time)
                finally:
                    self._names = names
        if len(column) and not arrow.types.is_null(column.type):
            self._time_type = column.type

    def _usable(self, block: bytes, offset: int) -> Any:
        """The rows of a block; halved until those that cannot be read stand alone."""
        arrow = import_extra("pyarrow", "table", "A CSV table")
        types = dict.fromkeys(self.columns.modes, arrow.string()) | {self.columns.value: arrow.float64()}
        if self._time_type is not None:
            types[self.columns.time] = self._time_type
        try:
            return self._parsed(block, types)
        except arrow.ArrowInvalid:
            lines = block.splitlines(keepends=True)
        if len(lines) == 1:
            shown = lines[0].strip().decode("utf-8", "replace")
            shown = shown if len(shown) <= 60 else shown[:59] + "…"
            self.bad((offset, "row"), 1, f"a row that does not fit its columns, {shown!r}", "mend it")
            return self._parsed(b"\n", types)
        middle = len(lines) // 2
        first = b"".join(lines[:middle])
        return arrow.concat_tables(
            [self._usable(first, offset), self._usable(block[len(first) :], offset + len(first))]
        )

    def _parsed(self, block: bytes, types: dict[str, Any], only: list[str] | None = None) -> Any:
        """Rows with the columns that matter; with ``only`` some of them, without lines of another length."""
        csv = import_extra("pyarrow.csv", "table", "A CSV table")
        wanted = None if self._names is None else only or [n for n in self.columns.names if n in self._names]
        handler = {} if only is None else {"invalid_row_handler": lambda row: "skip"}
        size = max(len(block) + 1, 2**16)  # the whole block is parsed as one
        return csv.read_csv(
            io.BytesIO(block),
            read_options=csv.ReadOptions(use_threads=False, column_names=self._names, block_size=size),
            parse_options=csv.ParseOptions(delimiter=self._delimiter, **handler),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=wanted,
                decimal_point=self._decimal or ".",
                timestamp_parsers=[csv.ISO8601, *self._dates],
            ),
        )


def open_csv(path: Path, options: SourceOptions) -> Source:
    """A file, which may still grow; a first pass finds labels and times. One with a column per entry is read whole."""
    dates = DATES
    if options.follow is None:
        dates = date_forms(path)
        named = named_columns(path, options, dates)
        if named is None:
            return open_wide_csv(path, options, dates)
        options = named
    columns = columns_of(path.name, options)
    rows = CSVRows(LineFile(path, options.follow), columns, dates)
    source = open_table(rows, options, CSVRows(LineFile(path, growing=options.follow is not None), columns, dates))
    if source.time_zone is not None:
        source.time_zone = offset_in(LineFile(path)) or source.time_zone
    return source


def open_csv_pipe(file: Any, name: str, options: SourceOptions) -> Source:
    """A pipe, whose labels must be given."""
    return open_table(CSVRows(LinePipe(file, name), columns_of(name, options)), options, None)
