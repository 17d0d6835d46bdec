"""Validation of an HDF5 file before it is read: no data from other files, no chunks larger than memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra

MAGIC = b"\x89HDF\r\n\x1a\n"
MAX_CHUNK_BYTES = 2**30
_MAX_DATASETS = 10_000


def datasets(file: Any, name: str) -> dict[str, Any]:
    """Every array of numbers in an open file by its full name; one sentence for a file that should not be read.

    Soft links are skipped: what they lead to is found under its own name. No group is entered twice.
    """
    h5py = import_extra("h5py", "store", "An HDF5 file")
    found: dict[str, Any] = {}
    groups = [("", file)]
    seen = {h5py.h5o.get_info(file.id).addr}
    while groups:
        prefix, group = groups.pop()
        for key in group:
            link, full = group.get(key, getlink=True), f"{prefix}{key}"
            if isinstance(link, h5py.ExternalLink):
                raise StreamError(f"{name} takes {full} from another file: copy the data into one file first")
            if not isinstance(link, h5py.HardLink) or key.startswith("#"):
                continue
            item = group[key]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.Group):
                groups.append((f"{full}/", item))
            elif isinstance(item, h5py.Dataset) and item.shape is not None and item.dtype.kind in "biuf":
                _check_dataset(item, name)
                found[full] = item
            if len(found) + len(groups) > _MAX_DATASETS:
                raise StreamError(f"{name} holds more than {_MAX_DATASETS} arrays: copy one of them into its own file")
    return found


def _check_dataset(dataset: Any, name: str) -> None:
    """Refuse what would read other files or allocate more than a real file needs."""
    if dataset.external or dataset.is_virtual:
        raise StreamError(f"{name} takes {dataset.name} from other files: copy the data into one file first")
    chunks = dataset.chunks or ()
    if math.prod(chunks) * dataset.dtype.itemsize > MAX_CHUNK_BYTES:
        raise StreamError(f"{name} claims chunks of {chunks} in {dataset.name}: it may be damaged, write it again")


def dataset_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a file with their shapes."""
    with import_extra("h5py", "store", "An HDF5 file").File(path, "r") as file:
        return {key: tuple(item.shape) for key, item in datasets(file, path.name).items()}
