"""Errors of files and libraries as one sentence each; sizes are validated before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from undertow.sources.base import StreamError

MAX_SLICE_ENTRIES = 2**28
"""Entries of one slice: 2 GiB in double precision. Larger claims come from damaged headers or need to be cut."""

MAX_LOADED_BYTES = 2**31
"""Largest array that is read as a whole where a format cannot be read in parts."""

MAX_LENGTH = 2**40

MAX_MODES = 12
"""Modes of a slice: the time to compile the model grows with their number, 40 of them take minutes."""


@contextmanager
def one_sentence(what: str, remedy: str) -> Iterator[None]:
    """Turn any exception into a :class:`StreamError`: libraries raise whatever they like for damaged files."""
    try:
        yield
    except StreamError:
        raise
    except MemoryError:
        raise StreamError(f"{what} (it needs more memory than there is): {remedy}") from None
    except Exception as error:
        raise StreamError(f"{what} ({_reason(error)}): {remedy}") from error


def _reason(error: Exception) -> str:
    text = str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    short = words if len(words) <= 160 else words[:159] + "…"
    return short.rstrip(".:") or type(error).__name__


@contextmanager
def closed_on_error(resource: Any) -> Iterator[None]:
    """Close a resource if what is done with it fails; otherwise whoever opened it closes it later."""
    try:
        yield
    except BaseException:
        resource.close()
        raise


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """An optional package, imported when needed; its absence is one sentence with the command that installs it."""
    try:
        return import_module(module)
    except ImportError:
        name = module.split(".")[0]
        raise StreamError(f"{purpose} needs {name}, which is not installed: pip install 'undertow[{extra}]'") from None


def check_slice_shape(name: str, shape: tuple[int, ...]) -> None:
    """Refuse slices without modes or entries, and sizes that only a damaged header claims."""
    if not shape:
        raise StreamError(f"{name} must have a time axis and at least one more, got one axis: reshape it to (times, 1)")
    if len(shape) > MAX_MODES:
        raise StreamError(
            f"{name} must have slices of at most {MAX_MODES} modes, got {len(shape)}: combine some of them with reshape"
        )
    if math.prod(shape) == 0:
        raise StreamError(f"{name} must have slices with at least one entry, got shape {shape}: check the file")
    if math.prod(shape) > MAX_SLICE_ENTRIES:
        raise StreamError(
            f"{name} must have slices of at most {MAX_SLICE_ENTRIES} entries, got shape {shape}: "
            "check the file, or cut it into smaller ones"
        )


def check_length(name: str, length: int) -> None:
    """Refuse a number of slices that only a damaged header claims."""
    if not 0 <= length <= MAX_LENGTH:
        raise StreamError(f"{name} claims to hold {length} slices: check the file, it may be damaged")


def check_real(name: str, dtype: np.dtype[Any]) -> None:
    """Only real numbers: never objects, which would have to be unpickled."""
    if dtype.kind not in "biuf" or dtype.hasobject:
        raise StreamError(f"{name} must hold real numbers, got dtype {dtype}: convert it to float first")


def foreign_position(name: str) -> StreamError:
    """The error for a position that this source cannot have given."""
    return StreamError(f"the position to resume {name} from belongs to another source: start from the beginning")


def left_out(what: str, count: int, name: str, first: str) -> str:
    """The notice about rows or slices that were skipped."""
    what, were = (what, "was") if count == 1 else (f"{what}s", "were")
    return f"{count} {what} of {name} could not be used and {were} left out, the first: {first}"


def shortened(labels: Sequence[Any], most: int = 8) -> str:
    """Some of the labels, for a sentence."""
    shown = ", ".join(str(label) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown} … ({len(labels)} in all)"
