"""A list of slices in a file, for recordings that do not fit into memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 4 * 2**20
"""That are read together when the slices are used as one array."""


class OnDisk:
    """Appended to, read and replaced one slice at a time; all of one shape and type.

    Args:
        path: Of the file, which is written anew.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._length = path, 0
        self._shape: tuple[int, ...] = ()
        self._type = np.dtype(np.float64)
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[index] for index in range(self._length))

    def append(self, values: NDArray[Any]) -> None:
        """One more."""
        if self._length == 0:
            self._shape, self._type = values.shape, values.dtype
        self._length += 1
        self[self._length - 1] = values

    def __getitem__(self, index: int) -> NDArray[Any]:
        place = range(self._length)[index] * self._bytes
        found = np.fromfile(self._path, self._type, math.prod(self._shape), offset=place)
        return found.reshape(self._shape)

    def __setitem__(self, index: int, values: NDArray[Any]) -> None:
        if values.shape != self._shape or values.dtype != self._type:
            raise ValueError(f"slices must be {self._type}{self._shape}, got {values.dtype}{values.shape}")
        with self._path.open("r+b") as file:
            file.seek(range(self._length)[index] * self._bytes)
            file.write(values.tobytes())

    def lazy(self) -> Any:
        """All of them as one array of dask (T, …), which reads them when they are used."""
        import dask.array

        mapped = np.memmap(self._path, self._type, "r", shape=(self._length, *self._shape))
        return dask.array.from_array(  # type: ignore[no-untyped-call]
            mapped, chunks=(max(1, _BLOCK_BYTES // max(self._bytes, 1)), *self._shape)
        )

    @property
    def _bytes(self) -> int:
        return math.prod(self._shape) * self._type.itemsize
