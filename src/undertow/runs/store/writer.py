"""Writes the Zarr group of one run: append, flush, cut back to an earlier length."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.runs.errors import StoreError
from undertow.runs.store.chunked_array import ChunkedArray
from undertow.runs.store.folder import replace_file, sync_folders
from undertow.runs.store.growth import Growth
from undertow.runs.store.layout import Layout
from undertow.runs.store.zarr_metadata import documents, with_length


class StoreWriter:
    """All arrays of a store. Readers see a length only once all chunks of that length are on the disk."""

    def __init__(self, folder: Path, layout: Layout, growth: Growth | None = None) -> None:
        self._folder = folder
        self._growth = growth or Growth.of(layout.shape)
        layout = layout.grown(self._growth)
        self.layout = layout
        """As slices are now."""
        self._documents = documents(layout)
        self._known = dict.fromkeys(layout.to_come, -1)
        self._arrays = {
            name: ChunkedArray(
                folder / name,
                array.dtype,
                self._growth if name in layout.keep else Growth.of(array.shape),
                array.chunk,
                checksums=layout.checksums,
            )
            for name, array in layout.arrays().items()
        }
        self.notices: deque[str] = deque()
        """Sentences that a user should see."""
        self._with_extremes: set[str] = set()

    @property
    def length(self) -> int:
        """Slices appended so far, those in memory included."""
        return self._arrays[self.layout.time_name].length

    def grow(self, shape: Sequence[int]) -> dict[str, str]:
        """Slices have this shape from the next one on; what is to be among the attributes from now on."""
        for name in self.layout.keep:
            self._arrays[name].grow(shape)
        self._growth = self._growth.then(self.length, shape)
        self.layout = self.layout.grown(self._growth)
        self._documents = documents(self.layout)
        self._known = dict.fromkeys(self._known, -1)
        return self._growth.written()

    def prepare(self, length: int, attributes: Mapping[str, Any]) -> None:
        """Write what never changes and be ready to append at ``length``: 0, or that of a checkpoint."""
        growing = set(self._arrays)
        for name, content in self._documents.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            labels = path.parent.name in self._known and path.name != "zarr.json"
            to_come = labels and path.exists()  # what is there knows more
            if path.parent.name not in growing and path.parent != self._folder and not to_come:
                replace_file(path, content)  # labels
        # First what readers see, then what it was about: at no moment does the group claim what is not there.
        self._commit(length, attributes)
        for name, array in self._arrays.items():
            try:
                array.cut(length)
            except (FileNotFoundError, RuntimeError, ValueError) as error:
                raise StoreError(
                    f"{name} in {self._folder} is missing or damaged ({error}): "
                    "restore it from a copy, or run again with --overwrite to start from the beginning"
                ) from error

    def append(self, time: Any, per_slice: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Append one slice: its time, its values per slice, and the arrays to be kept."""
        index = self.length
        rows: dict[str, Any] = {self.layout.time_name: self.layout.times.stored(time, index), **per_slice}
        for name in self.layout.keep:
            rows[name] = self._within_range(name, arrays[name], index)
        for name, array in self._arrays.items():
            array.append(rows[name])

    def flush(self, attributes: Mapping[str, Any]) -> None:
        """Make everything appended so far durable and visible to readers."""
        for array in self._arrays.values():
            array.flush()
        self._name_places()
        self._commit(self.length, attributes)
        sync_folders([self._folder, *(array.folder for array in self._arrays.values())])

    def _name_places(self) -> None:
        """Labels that have appeared since."""
        if self.layout.to_come != self._known:
            self._known = self.layout.to_come
            self._documents = documents(self.layout)
            for name, content in self._documents.items():
                if Path(name).parts[0] in self._known:
                    replace_file(self._folder / name, content)

    def _commit(self, length: int, attributes: Mapping[str, Any]) -> None:
        for name, content in with_length(self._documents, list(self._arrays), length, dict(attributes)).items():
            # Readers and a resumed run go by the group's own document; those of the arrays can be made anew from it.
            replace_file(self._folder / name, content, durable=name == "zarr.json")

    def _within_range(self, name: str, values: NDArray[Any], index: int) -> NDArray[Any]:
        """The values in the precision of the store, those it cannot hold as its largest number: no value ends a run."""
        with np.errstate(over="ignore"):
            stored = np.asarray(values, self.layout.float_type)
        if np.isinf(stored).any():
            largest = np.finfo(stored.dtype).max
            stored = np.clip(stored, -largest, largest)
            if name not in self._with_extremes:
                self._with_extremes.add(name)
                remedy = "; --precision double holds larger ones" if self.layout.precision == "single" else ""
                self.notices.append(
                    f"{name} of slice {index} holds numbers too large for {self.layout.precision} precision, "
                    f"stored as the largest, {largest:.3g}, here and in later slices{remedy}"
                )
        return stored
