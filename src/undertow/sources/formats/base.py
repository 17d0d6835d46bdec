"""What one format has to provide: slices as the file holds them. Everything else is done once, in ``prepared.py``."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, Label, StreamError
from undertow.sources.errors import check_length, check_slice_shape
from undertow.sources.following import Follow

BLOCK_BYTES = 32 * 2**20
"""Where several slices are best read at once, about this much of them."""

CHUNK_BYTES = 256 * 2**20
"""The same where they are packed together: unpacking a chunk takes that memory anyway, doing it twice takes time."""


@dataclass(frozen=True, eq=False)
class Raw:
    """One slice as the file holds it: its time, the position after it, and a way to its values if they are wanted."""

    time: Any
    position: dict[str, JSON]
    load: Callable[[], NDArray[Any]]


class Source(ABC):
    """A file, folder or pipe of one format.

    Attributes:
        name: what to call it in messages.
        format: one of the names in ``formats.FORMATS``.
        shape, dims, labels: of its slices, one per mode.
        time_name: of its time axis.
        length: number of slices as far as it is known.
        times: of all slices where that is known without reading them.
        notices: what was odd so far.
    """

    format: str
    length: int | None = None
    times: NDArray[Any] | None = None
    time_name = "time"

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dims: tuple[str, ...] | None = None,
        labels: tuple[tuple[Label, ...] | None, ...] | None = None,
    ) -> None:
        check_slice_shape(name, shape)
        self.name = name
        self.shape = tuple(int(size) for size in shape)
        self.dims = dims or tuple(f"mode_{n}" for n in range(1, len(shape) + 1))
        self.labels = labels or (None,) * len(shape)
        self.notices: list[str] = []

    @abstractmethod
    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:
        """All slices, or those after ``position``."""

    @abstractmethod
    def identity(self) -> str:
        """Tells this content from another of the same name and shape, as well as a quick look can."""

    def close(self) -> None:
        """Let go of files."""
        return


class Indexed(Source):
    """A source that can give any slice by its index; positions are the index of the next slice."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        length: int,
        dims: tuple[str, ...] | None = None,
        labels: tuple[tuple[Label, ...] | None, ...] | None = None,
        *,
        block: int = 1,
        follow: Follow | None = None,
    ) -> None:
        super().__init__(name, shape, dims, labels)
        check_length(name, length)
        self.length: int = length
        self._block_length = max(1, block)
        self._block: tuple[int, NDArray[Any]] | None = None
        self._follow = follow

    @abstractmethod
    def read_block(self, start: int, stop: int) -> NDArray[Any]:
        """Slices ``start`` to ``stop``, time first."""

    def time_at(self, index: int) -> Any:
        """The time of one slice."""
        return None if self.times is None else plain_time(self.times[index])

    def refresh(self) -> int:
        """The length by now, for a source that grows."""
        return self.length

    def at(self, index: int) -> NDArray[Any]:
        """One slice; several are read at once where that is much quicker, and kept until another is asked for."""
        start = index - index % self._block_length
        block = self._block
        if block is None or block[0] != start or index - start >= len(block[1]):
            self._block = None  # let go of the old one before the new one is read
            block = (start, self.read_block(start, min(start + self._block_length, self.length)))
            self._block = block
        return np.asarray(block[1][index - start])

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        index = integer(self.name, position, "index")
        while index < self.length or (self._follow is not None and self._follow.wait(partial(self._grew, index))):
            yield Raw(self.time_at(index), {"index": index + 1}, partial(self.at, index))
            index += 1

    def identity(self) -> str:  # noqa: D102
        if not self.length:
            return ""
        return hashlib.sha256(np.ascontiguousarray(self.at(0)).tobytes()).hexdigest()

    def close(self) -> None:  # noqa: D102
        self._block = None
        if self._follow is not None:
            self._follow.stop()

    def _grew(self, index: int) -> bool:
        self.length = self.refresh()
        return self.length > index


def block_length(shape: tuple[int, ...], itemsize: int, wanted: int, limit: int = BLOCK_BYTES) -> int:
    """How many slices to read at once if ``wanted`` would be best."""
    fitting = limit // max(1, int(np.prod(shape, dtype=np.int64)) * itemsize)
    return max(1, min(wanted, fitting))


def integer(name: str, position: Mapping[str, JSON] | None, key: str) -> int:
    """A count out of a position, which may come from another source or a damaged checkpoint."""
    if position is None:
        return 0
    value = position.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise StreamError(f"the position to resume {name} from is not one of its own: start afresh")
    return value


def first_bytes(path: Path, count: int = 4096) -> str:
    """Digest of the beginning of a file, which stays the same while the file grows."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(count)).hexdigest()


def plain_time(value: Any) -> Any:
    """A time as one of: ``numpy.datetime64``, int, float, str, None."""
    if value is None or isinstance(value, (str, np.datetime64)):
        return value
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)
