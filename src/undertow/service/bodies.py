"""Slices as clients send them: JSON, a NumPy file, or Arrow IPC. Nothing is unpickled."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from undertow.inputs.dense import as_slice
from undertow.service import times
from undertow.service.errors import Invalid, TooLarge, Unsupported
from undertow.service.spec import LABEL_LENGTH, Spec

JSON, NPY, ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"
_FIELDS = {"values", "time", "sequence", "labels"}


@dataclass(frozen=True, eq=False)
class Given:
    """One slice of a request, checked: its values are NaN where nothing was observed.

    With labels it has the rows that these name, in their order.
    """

    values: NDArray[Any]
    time: str | None = None
    sequence: int | None = None
    labels: tuple[tuple[str, ...] | None, ...] | None = None


def decoded(kind: str, body: bytes, spec: Spec, most: int, sequence: int | None, time: Any) -> list[Given]:
    """The slices in a body.

    Args:
        kind: Its media type.
        body: As it came.
        spec: Of the stream.
        most: Slices in one request.
        sequence: Of the first slice, where the address says it.
        time: Of the first slice, where the address says it.

    Raises:
        Unsupported: The type is not read here.
        Invalid: It does not hold slices of this stream.
        TooLarge: It holds too many.
    """
    plain = kind.partition(";")[0].strip().lower()
    readers = {JSON: _from_json, NPY: _from_npy, ARROW: _from_arrow}
    if plain not in readers:
        raise Unsupported(f"slices are read as {', '.join(readers)}, got {plain or 'no content type'!r:.80}")
    rows = readers[plain](body, spec)
    if not 1 <= len(rows) <= most:
        error = TooLarge if rows else Invalid
        raise error(f"a request holds 1 to {most} slices, got {len(rows)}")
    if rows[0].get("sequence") is None:
        rows[0]["sequence"] = sequence
    if time is not None and rows[0].get("time") is None:
        _time_all(rows, times.checked(time) or "", spec.step)
    return [_checked(row, number, spec) for number, row in enumerate(rows)]


def _time_all(rows: list[dict[str, Any]], first: str, step: float | None) -> None:
    """Times of slices that have none of their own, a step apart."""
    if len(rows) > 1 and step is None:
        raise Invalid("one time for several slices needs the step of the stream: give it one, or send a time with each")
    start = times.milliseconds(first)
    for number, row in enumerate(rows):
        row["time"] = first if number == 0 else (start + 1000 * number * (step or 0.0)) / 1000


def _checked(row: Mapping[str, Any], number: int, spec: Spec) -> Given:
    sequence = row.get("sequence")
    if sequence is not None and (
        not isinstance(sequence, int) or isinstance(sequence, bool) or not 0 <= sequence < 2**53
    ):
        raise Invalid(f"sequence must be an integer of at least 0, got {sequence!r:.60}")
    time = row.get("time")
    if time is not None and (not isinstance(time, (str, int, float)) or isinstance(time, bool)):
        raise Invalid(f"time must be a date or seconds since 1970, got {time!r:.60}")
    labels = checked_labels(row.get("labels"), spec)
    if labels is None and not spec.fits(row["values"].shape):
        got = list(row["values"].shape)
        raise Invalid(f"slice {number}: values must have the shape of the stream, {list(spec.shape)}, got {got}")
    try:
        found = as_slice(row["values"])
    except (ValueError, TypeError) as error:
        raise Invalid(f"slice {number}: {error}") from None
    values = np.where(found.mask, found.values, np.asarray(np.nan, found.values.dtype))
    return Given(values, times.checked(time), sequence, labels)


def checked_labels(given: Any, spec: Spec) -> tuple[tuple[str, ...] | None, ...] | None:
    """Names of the rows of a slice, by mode; None where it has all of them, in order.

    Raises:
        Invalid: They are something else.
    """
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != len(spec.shape):
        raise Invalid(f"labels must be {len(spec.shape)} lists, one for each mode, or null where all rows are there")
    for one in given:
        texts = [] if one is None else one
        if not isinstance(texts, list) or not all(
            isinstance(text, str) and 0 < len(text) <= LABEL_LENGTH for text in texts
        ):
            raise Invalid(f"labels must be texts of 1 to {LABEL_LENGTH} characters, got {one!r:.60}")
    return tuple(None if one is None else tuple(one) for one in given)


def _from_json(body: bytes, spec: Spec) -> list[dict[str, Any]]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}") from None
    rows = content.get("slices") if isinstance(content, dict) and "slices" in content else [content]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "values" in row for row in rows):
        raise Invalid('JSON is {"values": […], "time": …, "sequence": …}, or {"slices": [such, …]}')
    for row in rows:
        if unknown := sorted(set(row) - _FIELDS):
            raise Invalid(f"a slice has values, time, sequence and labels, got {unknown[0]!r:.60}")
        row["values"] = _numbers(row["values"])
    return rows


def _numbers(values: Any) -> NDArray[Any]:
    """Nested lists with null where nothing was observed."""
    try:
        found = np.array(values, dtype=object)
        flat = [math.nan if one is None else _number(one) for one in found.ravel().tolist()]
        return np.array(flat, dtype=np.float64).reshape(found.shape)
    except (TypeError, ValueError, OverflowError):
        raise Invalid("values must be nested lists of numbers, null where nothing was observed") from None


def _number(one: Any) -> float:
    if isinstance(one, bool) or not isinstance(one, (int, float)):
        raise TypeError
    return float(one)


def _from_npy(body: bytes, spec: Spec) -> list[dict[str, Any]]:
    try:
        array = np.load(io.BytesIO(body), allow_pickle=False, max_header_size=4096)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError, MemoryError) as error:
        reason = "" if "pickle" in str(error) else f" ({str(error)[:100]})"
        raise Invalid(f"the body must be an array of numbers as numpy.save writes it{reason}") from None
    if not isinstance(array, np.ndarray):
        raise Invalid("the body must be a single array (.npy), got an archive")
    stack = array if array.ndim == len(spec.shape) + 1 else array[None]
    return [{"values": values} for values in stack]


def _from_arrow(body: bytes, spec: Spec) -> list[dict[str, Any]]:
    """A table with a row for each slice: values (a list, in C order), and where wanted time, sequence and labels."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise Unsupported("Arrow needs pyarrow on the server: pip install 'undertow[table]'") from None
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
        columns = {name: table.column(name) for name in table.column_names}
        if "values" not in columns or set(columns) - _FIELDS:
            raise Invalid(f"Arrow has the columns values, time, sequence and labels, got {table.column_names!r:.80}")
        values = [one.as_py() for one in columns["values"]]
        seconds = [None] * len(values) if "time" not in columns else [_time(one.as_py()) for one in columns["time"]]
        numbers = [None] * len(values) if "sequence" not in columns else columns["sequence"].to_pylist()
        named = [None] * len(values) if "labels" not in columns else columns["labels"].to_pylist()
        arrays = [
            np.array([math.nan if x is None else x for x in one], np.float64).reshape(_shape(labels, spec))
            for one, labels in zip(values, named, strict=True)
        ]
    except Invalid:
        raise
    except (pa.ArrowException, ValueError, TypeError, OSError, OverflowError, AttributeError) as error:
        raise Invalid(f"the body is not Arrow IPC with slices of this stream: {str(error)[:100]}") from None
    rows = zip(arrays, seconds, numbers, named, strict=True)
    return [
        {"values": array, "time": time, "sequence": number, "labels": labels} for array, time, number, labels in rows
    ]


def _shape(labels: Any, spec: Spec) -> tuple[int, ...]:
    """Of a slice whose rows are named."""
    names = checked_labels(labels, spec) or (None,) * len(spec.shape)
    return tuple(size if one is None else len(one) for size, one in zip(spec.shape, names, strict=True))


def _time(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
