"""The interface of every stream, whatever file, folder or pipe it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None
"""Anything that :mod:`json` writes and reads back unchanged."""

Label: TypeAlias = str | int | float


class StreamError(ValueError):
    """A stream cannot be opened or read; the message is one sentence that says why and what to do."""


class BadInputError(StreamError):
    """A row or a slice cannot be used; the stream goes on after it if it was opened with ``on_bad="skip"``."""


@dataclass(frozen=True, eq=False)
class Item:
    """One slice of a stream.

    Attributes:
        values: float32 or float64 array of the stream's shape, NaN where nothing was observed; a copy of its own.
            Where labels are still to come (`capacity`) it grows: rows are added at the end of their mode.
        time: ``numpy.datetime64``, int, float or str; None where the source has no times.
        position: where to continue AFTER this slice; small and plain JSON.
    """

    values: NDArray[np.floating[Any]]
    time: Any
    position: dict[str, JSON]


@runtime_checkable
class Stream(Protocol):
    """Slices of one shape, one after the other, from the beginning or from the position of an earlier slice.

    Example:
        >>> stream = open_stream("flows.csv", time="t", modes="src,dst", value="bytes")  # doctest: +SKIP
        >>> for item in stream.slices(last_position):  # doctest: +SKIP
        ...     model.update(item.values)
    """

    @property
    def name(self) -> str:
        """What to call the stream in messages, such as the file's name."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the modes."""

    @property
    def dims(self) -> tuple[str, ...]:
        """One name per mode."""

    @property
    def labels(self) -> tuple[tuple[Label, ...] | None, ...]:
        """Per mode the labels of its entries; None for plain indices."""

    @property
    def time_name(self) -> str:
        """``"time"`` unless the source names it."""

    @property
    def length(self) -> int | None:
        """Number of slices as far as the source has it; None where it does not."""

    @property
    def fingerprint(self) -> str:
        """Identifies source and options: positions are valid for streams of the same fingerprint only."""

    @property
    def notices(self) -> list[str]:
        """Sentences about what was irregular so far and what was done: times out of order, repeated, missing, …"""

    def slices(self, position: Mapping[str, JSON] | None = None) -> Iterator[Item]:
        """All slices, or those after ``position``."""

    def close(self) -> None:
        """Release files; a closed stream gives no more slices."""
