"""Newline-delimited JSON: a slice a line, ``{"time": "2024-05-01T12:00", "values": [[1, null], [3, 4]]}``, or a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, BadInputError, StreamError
from undertow.sources.errors import check_slice_shape, import_extra, left_out
from undertow.sources.formats.base import Raw, Source, count_in
from undertow.sources.formats.history import RunningDigest
from undertow.sources.formats.lines import LineBlocks, LineFile, LinePipe
from undertow.sources.formats.rows import Batch, Columns, Rows, columns_of
from undertow.sources.formats.table import open_table
from undertow.sources.options import SourceOptions
from undertow.sources.times import is_unknown, parse_time


class JSONSlices(Source):
    """A line is an object with values and perhaps a time, or the nested list of values alone; null means missing."""

    format = "jsonl"

    def __init__(self, lines: LineBlocks, options: SourceOptions) -> None:
        self._lines, self.name = lines, lines.name
        self._time, self._value = options.time or "time", options.value or "values"
        first = lines.first_line()
        if not first.strip():
            raise StreamError(f"{lines.name} must begin with a slice in JSON, got an empty line")
        super().__init__(lines.name, self._parsed(first)[1].shape)
        self.is_pipe = lines.is_pipe
        self._skip_bad, self._bad, self._first_bad = options.on_bad == "skip", 0, ""
        self.time_name = self._time
        self._identity = "" if isinstance(lines, LinePipe) else hashlib.sha256(first).hexdigest()

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        done = count_in(position, "offset", self.name)
        history = RunningDigest(self.name, position, is_pipe=self._lines.is_pipe)
        if done and not history.is_known:
            self.notices.append(history.unchecked())
        end = 0
        for end, line in self._lines.lines(0):  # what was done is read again, to be compared
            history.add(line)
            if end > done > end - len(line):
                raise history.other_data()
            if end == done and history.is_known:
                history.check()
            if end > done and line.strip():
                try:
                    time, values = self._parsed(line)
                except BadInputError as error:
                    self._left_out(error)
                    continue
                yield Raw(time, {"offset": end, **history.marks()}, partial(np.asarray, values))
        if end < done:
            raise history.ended_early()

    def identity(self) -> str:  # noqa: D102
        return self._identity

    def close(self) -> None:  # noqa: D102
        self._lines.close()

    def skipped_rows(self) -> list[str]:  # noqa: D102
        return [left_out("line", self._bad, self.name, self._first_bad)] if self._bad else []

    def _left_out(self, error: BadInputError) -> None:
        if not self._skip_bad:
            raise StreamError(f"{error}, or leave such lines out with --on-bad skip (on_bad='skip')") from error
        self._bad += 1
        self._first_bad = self._first_bad or str(error)

    def _parsed(self, line: bytes) -> tuple[Any, NDArray[np.float64]]:
        name, time = self.name, None
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            raise BadInputError(f"{name} must have one JSON value per line, got {_shown(line)}") from None
        if isinstance(content, dict):
            if self._value not in content:
                keys = ", ".join(list(content)[:8])
                raise BadInputError(f"{name} has a line without {self._value!r}, with {keys}: give value")
            time, content = content.get(self._time), content[self._value]
        try:
            values = np.array(content, dtype=np.float64)  # null becomes NaN
        except (ValueError, TypeError, OverflowError):
            raise BadInputError(
                f"{name} must have nested lists of numbers of equal length, got {_shown(line)}"
            ) from None
        check_slice_shape(name, values.shape)
        return parse_time(time), values


class JSONRows(Rows):
    """Rows of a long table, one JSON object a line; a batch starts at a byte."""

    def __init__(self, lines: LineBlocks, columns: Columns) -> None:
        super().__init__(lines.name, columns)
        self._lines, self.is_pipe = lines, lines.is_pipe
        self._kind: str | None = None

    def batches(self, start: int = 0) -> Iterator[Batch]:  # noqa: D102
        arrow = import_extra("pyarrow", "table", "A table of JSON lines")
        with suppress(BadInputError):  # the first row decides on the kind of times, wherever reading begins
            self._checked(self._lines.first_line())
        for offset, block in self._lines.blocks(start):
            rows = []
            for number, line in enumerate(block.splitlines()):
                try:
                    rows += [self._checked(line)] if line.strip() else []
                except BadInputError as error:
                    what, _, remedy = str(error).partition(": ")
                    self.bad((offset, number), 1, what, remedy)
            if rows:
                columns = zip(*rows, strict=True)
                yield self.batch(arrow.table(dict(zip(self.columns.names, map(list, columns), strict=True))), offset)

    def close(self) -> None:  # noqa: D102
        self._lines.close()

    def _checked(self, line: bytes) -> list[Any]:
        """Time, labels and value of a row."""
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            remedy = "mend it" + ", or say what it is with --format, for example csv" * self.is_pipe
            raise BadInputError(f"a line that is not JSON, {_shown(line)}: {remedy}") from None
        if not isinstance(row, dict):
            raise BadInputError(f"a line that is no object such as {{…}}, {_shown(line)}: write one") from None
        if self._kind is None:
            self.check_columns(list(row))
        elif not row.keys() >= set(self.columns.names):
            raise BadInputError(f"a row without all of {', '.join(self.columns.names)}, {_shown(line)}: mend it")
        time, *labels, value = (row[name] for name in self.columns.names)
        time = parse_time(time)
        kind = _kind(time)
        self._kind = self._kind or kind
        if kind is None or kind != self._kind:
            wanted = f"of another kind than before ({self._kind})" if kind else "that is none"
            raise BadInputError(f"a row with a time {wanted}, {_shown(line)}: give all rows times of one kind")
        try:
            number = float("nan") if value is None else float(value)
            texts = [str(label) for label in labels if label is not None]
            "".join(texts).encode()
        except (TypeError, ValueError, OverflowError):
            raise BadInputError(f"a row whose labels or value cannot be used, {_shown(line)}: mend it") from None
        if isinstance(value, str) or len(texts) < len(labels):
            raise BadInputError(f"a row without a label or with a text as value, {_shown(line)}: mend it")
        return [time, *texts, number]


def _kind(time: Any) -> str | None:
    """What times are compared by; None for what is no time."""
    if is_unknown(time):
        return None
    if isinstance(time, str):
        return None if any("\ud800" <= character <= "\udfff" for character in time) else "texts"  # half a character
    return "dates" if isinstance(time, np.datetime64) else "numbers"


def open_json_lines(path: Path, options: SourceOptions) -> Source:
    """A file, which may still grow."""
    first_pass = LineFile(path, growing=options.follow is not None)
    return _open(LineFile(path, options.follow), options, first_pass)


def open_json_pipe(file: Any, name: str, options: SourceOptions) -> Source:
    """A pipe."""
    return _open(LinePipe(file, name), options, None)


def _open(lines: LineBlocks, options: SourceOptions, first_pass: LineBlocks | None) -> Source:
    """A slice a line, or a row of a long table a line if its columns are named."""
    if options.modes is None or options.value is None:
        return JSONSlices(lines, options)
    columns = columns_of(lines.name, options)
    return open_table(JSONRows(lines, columns), options, None if first_pass is None else JSONRows(first_pass, columns))


def _shown(line: bytes) -> str:
    text = line.strip().decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:39] + "…")
