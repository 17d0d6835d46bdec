"""What a format provides: slices as the file holds them. Everything else is done once, in ``preparation/``."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Label
from undertow.sources.errors import check_length, check_slice_shape, foreign_position
from undertow.sources.following import Follow
from undertow.sources.times import plain_time

Labels = tuple[tuple[Label, ...] | None, ...]

BLOCK_BYTES = 32 * 2**20
"""Where reading several slices together is faster, about this much of them."""

CHUNK_BYTES = 256 * 2**20
"""The same for compressed chunks: decompressing one takes that memory anyway, doing it twice takes time."""

FRAME_DIMS = ("row", "column", "colour")
COLOURS = ("red", "green", "blue")


@dataclass(frozen=True, eq=False)
class Raw:
    """One slice as the file holds it: its time, the position after it, and a function that loads its values."""

    time: Any
    position: dict[str, JSON]
    load: Callable[[], NDArray[Any]]


class Source(ABC):
    """A file, folder or pipe of one format.

    Attributes:
        name: what to call it in messages.
        format: one of the names in ``registry.FORMATS``.
        shape, dims, labels: of its slices, one per mode.
        time_name: of its time axis.
        length: number of slices as far as it is known.
        times: of all slices where that is known without reading them.
        time_zone: name of the zone that times had; they are in UTC then.
        is_pipe: whether it can be read only once.
        notices: what was irregular so far.
    """

    format: str
    length: int | None = None
    times: NDArray[Any] | None = None
    time_name = "time"
    time_zone: str | None = None
    is_pipe = False
    _follow: Follow | None = None

    @property
    def attributes(self) -> dict[str, str]:
        """What else the format knows, for those who write it again."""
        return {}

    def __init__(
        self, name: str, shape: tuple[int, ...], dims: tuple[str, ...] | None = None, labels: Any = None
    ) -> None:
        check_slice_shape(name, shape)
        self.name = name
        self.shape = tuple(int(size) for size in shape)
        self.dims = dims or tuple(f"mode_{n}" for n in range(1, len(shape) + 1))
        self.labels: Labels = labels or (None,) * len(shape)
        self.notices: list[str] = []

    @abstractmethod
    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:
        """All slices, or those after ``position``."""

    @abstractmethod
    def identity(self) -> str:
        """Distinguishes this content from another of the same name and shape, without reading all of it."""

    def former_identities(self) -> tuple[str, ...]:
        """What earlier versions gave as the identity of this content."""
        return ()

    def skipped_rows(self) -> list[str]:
        """What was left out below the level of slices, as sentences."""
        return []

    def time_at(self, index: int) -> Any:
        """The time of one slice."""
        return None if self.times is None else plain_time(self.times[index])

    def close(self) -> None:
        """Release files and end every wait for more."""
        if self._follow is not None:
            self._follow.stop()


class Indexed(Source):
    """A source that gives any slice by its index; positions are the index of the next slice."""

    length: int

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        length: int,
        dims: tuple[str, ...] | None = None,
        labels: Labels | None = None,
        *,
        block: int = 1,
        follow: Follow | None = None,
    ) -> None:
        super().__init__(name, shape, dims, labels)
        check_length(name, length)
        self.length = length
        self._block_length = max(1, block)
        self._block: tuple[int, NDArray[Any]] | None = None
        self._follow = follow

    @abstractmethod
    def read_block(self, start: int, stop: int) -> NDArray[Any]:
        """Slices ``start`` to ``stop``, time first."""

    def refresh(self) -> int:
        """The present length, for a source that grows."""
        return self.length

    def at(self, index: int) -> NDArray[Any]:
        """One slice; its block is read together where that is faster, and kept until another is asked for."""
        start = index - index % self._block_length
        block = self._block
        if block is None or block[0] != start or index - start >= len(block[1]):
            self._block = None  # release the old one before the new one is read
            block = (start, self.read_block(start, min(start + self._block_length, self.length)))
            self._block = block
        return np.asarray(block[1][index - start])

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        index = count_in(position, "index", self.name)
        while index < self.length or (self._follow is not None and self._follow.wait(partial(self._grew, index))):
            yield Raw(self.time_at(index), {"index": index + 1}, partial(self.at, index))
            index += 1

    def identity(self) -> str:  # noqa: D102
        return hashlib.sha256(np.ascontiguousarray(self.at(0)).tobytes()).hexdigest() if self.length else ""

    def close(self) -> None:  # noqa: D102
        super().close()
        self._block = None

    def _grew(self, index: int) -> bool:
        self.length = self.refresh()
        return self.length > index


def block_length(shape: tuple[int, ...], itemsize: int, wanted: int, limit: int = BLOCK_BYTES) -> int:
    """Number of slices to read together if ``wanted`` would be best."""
    return max(1, min(wanted, limit // max(1, math.prod(shape) * itemsize)))


def along(data: Any, axis: int, start: int, stop: int) -> NDArray[Any]:
    """Part of anything that is sliced like an array, with ``axis`` first; only that part is read."""
    where = [slice(None)] * len(data.shape)
    where[axis] = slice(start, stop)
    return np.moveaxis(np.asarray(data[tuple(where)]), axis, 0)


def count_in(position: Mapping[str, JSON] | None, key: str, name: str) -> int:
    """A count out of a position, which may come from another source or a damaged checkpoint."""
    if position is None:
        return 0
    value = position.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise foreign_position(name)
    return value


def frame_modes(height: int, width: int, colour: bool) -> tuple[tuple[int, ...], tuple[str, ...], Labels | None]:
    """Shape, dims and labels of the frames of a video."""
    if colour:
        return (height, width, 3), FRAME_DIMS, (None, None, COLOURS)
    return (height, width), FRAME_DIMS[:2], None
