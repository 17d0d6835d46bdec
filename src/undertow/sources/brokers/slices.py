"""The slices in a message: JSON or a NumPy file, as the service takes them. Nothing is unpickled."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import BadInputError
from undertow.sources.brokers.base import Message
from undertow.sources.times import parse_time

NPY = b"\x93NUMPY"
_MOST_HEADER = 4096
_LARGEST_SEQUENCE = 2**53


@dataclass(frozen=True, eq=False)
class Part:
    """One slice of a message.

    Attributes:
        values: NaN where nothing was observed.
        time: Plain; None if the message says none.
        sequence: Number that its sender gave it; None if none.
        labels: Names of its rows, by mode, as they came; for the service.
    """

    values: NDArray[Any]
    time: Any
    sequence: int | None
    labels: Any = None


def parts(message: Message, name: str, modes: int | None, time: str = "time", value: str = "values") -> list[Part]:
    """The slices of a message.

    Args:
        message: Its body is ``{"values": …, "time": …, "sequence": …}``, ``{"slices": [such, …]}``, nested lists alone
            or a NumPy file; time and sequence of a NumPy file may be headers.
        name: What to call the source.
        modes: Of a slice; an array with one more is several slices. None where that is not known yet.
        time: Key of the time.
        value: Key of the values.

    Raises:
        BadInputError: It holds no slices.
    """
    what = f"message {message.number} of {name}"
    if message.body.startswith(NPY):
        rows = [{value: values} for values in _of_file(message.body, what, modes)]
    else:
        rows = _of_json(message.body, what, value)
    first = {key: message.headers[key] for key in ("time", "sequence") if key in message.headers}
    found = []
    for number, row in enumerate(rows):
        given = {**first, **row} if number == 0 else row
        found.append(
            Part(row[value], parse_time(given.get(time)), _sequence(given.get("sequence"), what), row.get("labels"))
        )
    return found


def _of_file(body: bytes, what: str, modes: int | None) -> NDArray[Any]:
    try:
        array = np.load(io.BytesIO(body), allow_pickle=False, max_header_size=_MOST_HEADER)
    except Exception as error:  # whatever NumPy raises for damaged files
        raise BadInputError(f"{what} is not a NumPy file ({str(error)[:80]}): mend what sends it") from None
    stack: NDArray[Any] = array if modes is not None and array.ndim == modes + 1 else array[None]
    return stack


def _of_json(body: bytes, what: str, value: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInputError(f"{what} is neither JSON nor a NumPy file, {body[:40]!r}: mend what sends it") from None
    if isinstance(content, list):
        content = {value: content}
    rows = content.get("slices", [content]) if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and value in row for row in rows):
        raise BadInputError(f"{what} is not {{{value!r}: […]}} or {{'slices': [such, …]}}: mend what sends it")
    return [{**row, value: _numbers(row[value], what)} for row in rows]


def _numbers(values: Any, what: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)  # null becomes NaN
    except (ValueError, TypeError, OverflowError):
        raise BadInputError(f"{what} must hold nested lists of numbers of equal length: mend what sends it") from None


def _sequence(given: Any, what: str) -> int | None:
    if isinstance(given, str) and given.isdigit():
        given = int(given)
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given < _LARGEST_SEQUENCE):
        return given
    raise BadInputError(f"{what} must have an integer of at least 0 as its sequence, got {str(given)[:40]!r}")
