"""Newline-delimited JSON, one slice a line: ``{"time": "2024-05-01T12:00", "values": [[1, null], [3, 4]]}``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import check_slice_shape
from undertow.sources.formats.base import Raw, Source, integer, plain_time
from undertow.sources.formats.lines import LineBlocks, LinePipe
from undertow.sources.options import Options
from undertow.sources.preparation.times import from_text


class JSONSlices(Source):
    """A line is an object with values and perhaps a time, or the nested list of values alone; null means missing."""

    format = "jsonl"

    def __init__(self, lines: LineBlocks, options: Options) -> None:
        self._lines = lines
        self._time, self._value = options.time or "time", options.value or "values"
        first = lines.first_line()
        if not first.strip():
            raise StreamError(f"{lines.name} must begin with a slice in JSON, got an empty line")
        super().__init__(lines.name, self._parsed(lines.name, first)[1].shape)
        self.time_name = self._time
        self._identity = "" if isinstance(lines, LinePipe) else hashlib.sha256(first).hexdigest()

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        for end, line in self._lines.lines(integer(self.name, position, "offset")):
            if line.strip():
                time, values = self._parsed(self.name, line)
                yield Raw(time, {"offset": end}, partial(np.asarray, values))

    def identity(self) -> str:  # noqa: D102
        return self._identity

    def close(self) -> None:  # noqa: D102
        self._lines.close()

    def _parsed(self, name: str, line: bytes) -> tuple[Any, NDArray[np.float64]]:
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            raise StreamError(f"{name} must have one JSON value per line, got {_shown(line)}") from None
        time = None
        if isinstance(content, dict):
            if self._value not in content:
                raise StreamError(
                    f"{name} has a line without {self._value!r}, with {', '.join(list(content)[:8])}: give value"
                )
            time = content.get(self._time)
            content = content[self._value]
        try:
            values = np.array(content, dtype=np.float64)  # null becomes NaN
        except (ValueError, TypeError, OverflowError):
            raise StreamError(f"{name} must have nested lists of numbers of equal length, got {_shown(line)}") from None
        check_slice_shape(name, values.shape)
        return from_text(time) if isinstance(time, str) else plain_time(time), values


def _shown(line: bytes) -> str:
    text = line.strip().decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:39] + "…")
