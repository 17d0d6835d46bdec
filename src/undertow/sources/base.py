"""What every stream looks like to the rest of Undertow, whatever file, folder or pipe it comes from."""

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


@dataclass(frozen=True, eq=False)
class Item:
    """One slice of a stream.

    Attributes:
        values: float32 or float64 array of the stream's shape, NaN where nothing was observed; the receiver's to keep.
        time: ``numpy.datetime64``, int, float or str; None where the source has no times.
        position: where to go on AFTER this slice; small and plain JSON.
    """

    values: NDArray[np.floating[Any]]
    time: Any
    position: dict[str, JSON]


@runtime_checkable
class Stream(Protocol):
    """Slices of one shape, one after the other, from the beginning or from the position of an earlier slice."""

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
        """Number of slices as far as the source says it; None where it does not."""

    @property
    def fingerprint(self) -> str:
        """Identifies source and options: positions are valid for streams of the same fingerprint only."""

    @property
    def notices(self) -> list[str]:
        """Sentences about what was odd so far and what was done about it: times out of order, repeated, missing, …"""

    def slices(self, position: Mapping[str, JSON] | None = None) -> Iterator[Item]:
        """All slices, or those after ``position``."""

    def close(self) -> None:
        """Let go of files; a closed stream gives no more slices."""
