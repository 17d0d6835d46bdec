"""Parquet: a long table in row groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undertow.sources.errors import import_extra
from undertow.sources.formats.base import Source
from undertow.sources.formats.rows import Batch, Columns, Rows, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions

_BATCH_ROWS = 65_536


class ParquetRows(Rows):
    """Rows of a Parquet file; a batch starts at a row group."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path.name, columns)
        self._path = path
        with self._opened() as file:
            self.check_columns(file.schema_arrow.names)

    def batches(self, start: int = 0) -> Iterator[Batch]:  # noqa: D102
        with self._opened() as file:
            for group in range(start, file.num_row_groups):
                offset = 0
                for part in file.iter_batches(_BATCH_ROWS, [group], list(self.columns.names), use_threads=False):
                    if part.num_rows:
                        made = self.batch(part, group, offset)
                        yield made
                        offset += len(made)

    def _opened(self) -> Any:
        return import_extra("pyarrow.parquet", "table", "A Parquet table").ParquetFile(self._path)


def open_parquet(path: Path, options: SourceOptions) -> Source:
    """A file; a first pass finds labels and times."""
    rows = ParquetRows(path, columns_of(path.name, options))
    return open_table(rows, options, rows)
