"""Parquet: a long table in row groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import MAX_LOADED_BYTES, import_extra
from undertow.sources.formats.base import Source
from undertow.sources.formats.frames import columns_found, open_frame
from undertow.sources.formats.rows import Batch, Columns, Rows, check_number_of_columns, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions

_BATCH_ROWS = 65_536
_GUESSED_FROM = 1000
"""Rows that show which columns hold what."""
_MAX_INFLATED_BYTES = 2**28


class ParquetRows(Rows):
    """Rows of a Parquet file; a batch starts at a row group."""

    def __init__(self, path: Path, columns: Columns) -> None:
        super().__init__(path.name, columns)
        self._path = path
        with self._opened() as file:
            self.check_columns(file.schema_arrow.names)
            self._check_sizes(file.metadata)

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
        parquet = import_extra("pyarrow.parquet", "table", "A Parquet table")
        return parquet.ParquetFile(self._path, read_dictionary=list(self.columns.modes))  # labels are not multiplied

    def _check_sizes(self, metadata: Any) -> None:
        """Refuse row groups that take far more memory than the file is large."""
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            columns = [group.column(which) for which in range(group.num_columns)]
            columns = [column for column in columns if column.path_in_schema in self.columns.names]
            needed = sum(column.total_uncompressed_size for column in columns)
            stored = sum(column.total_compressed_size for column in columns)
            if needed > MAX_LOADED_BYTES or (needed > _MAX_INFLATED_BYTES and needed > 1000 * stored):
                raise StreamError(
                    f"{self.name} has a row group that takes {needed} bytes of memory, {stored} in the file: write it "
                    "with smaller row groups, for example row_group_size=100000"
                )


def open_parquet(path: Path, options: SourceOptions) -> Source:
    """A file; a first pass finds labels and times. One with a column per entry is read whole."""
    if options.modes is None and options.value is None:
        parquet = import_extra("pyarrow.parquet", "table", "A Parquet table")
        file = parquet.ParquetFile(path)
        check_number_of_columns(file.metadata.num_columns, path.name)
        head = next(file.iter_batches(_GUESSED_FROM), None)
        found = None if head is None else columns_found(head.to_pandas(date_as_object=False), options, path.name)
        if head is not None and found is None:
            if options.duplicates is not None:
                raise StreamError(f"duplicates is for long tables, and {path.name} is a wide one: leave it out")
            size = 8 * file.metadata.num_rows * file.metadata.num_columns
            if size > MAX_LOADED_BYTES:
                raise StreamError(
                    f"{path.name} is a wide table that takes {size} bytes of memory: write it in parts, or one row per "
                    "entry, which is read in parts"
                )
            return open_frame(file.read().to_pandas(date_as_object=False), options, path.name)
        if found is not None:
            options = replace(options, time=found[0], modes=found[1], value=found[2])
    rows = ParquetRows(path, columns_of(path.name, options))
    return open_table(rows, options, rows)
