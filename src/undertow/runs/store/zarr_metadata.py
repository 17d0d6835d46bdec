"""The JSON documents of the Zarr group: zarr makes them once, in memory; then only lengths and attributes change."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np

from undertow.runs.store.chunked_array import COMPRESSION
from undertow.runs.store.layout import Layout, label_column

Documents = dict[str, bytes]
"""Path inside the group → content."""


def documents(layout: Layout) -> Documents:
    """A complete group of length 0: metadata of all arrays, and the labels of the modes, which never change."""
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    checks = [Crc32cCodec()] if layout.checksums else []
    group = zarr.create_group(MemoryStore(files), zarr_format=3)

    def create(name: str, dims: tuple[str, ...], shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str) -> Any:
        text = dtype == "str"
        return group.create_array(
            name,
            shape=shape,
            chunks=chunks,
            dtype=str if text else dtype,
            fill_value="" if text else (np.nan if np.dtype(dtype).kind == "f" else 0),
            compressors=[BloscCodec(**COMPRESSION, typesize=1 if text else np.dtype(dtype).itemsize), *checks],
            chunk_key_encoding={"name": "default", "separator": "."},
            dimension_names=dims,
        )

    for name, array in layout.arrays().items():
        rows = layout.first if layout.first and name in layout.keep else array.shape
        made = create(name, array.dims, (0, *array.shape), (array.chunk, *rows), array.dtype)
        made.attrs.update(array.attributes)
    first = dict(zip(layout.dims, layout.first, strict=False))
    for dim, labels in layout.coordinates().items():
        column, size = label_column(labels), len(labels)
        chunk = first.get(dim, size)
        create(dim, (dim,), (size,), (chunk,), "str" if column.dtype == object else column.dtype.str)[:] = column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that other readers may not know consolidated metadata; they need not
        zarr.consolidate_metadata(group.store, zarr_format=3)
    return {name: buffer.to_bytes() for name, buffer in sorted(files.items())}


def with_length(content: Documents, growing: list[str], length: int, attributes: dict[str, Any]) -> Documents:
    """The metadata of the growing arrays and of the group, the group last: with it readers see the new length."""
    root = json.loads(content["zarr.json"])
    root["attributes"] = dict(sorted(attributes.items()))
    changed: Documents = {}
    for name in growing:
        array = json.loads(content[f"{name}/zarr.json"])
        array["shape"][0] = length
        root["consolidated_metadata"]["metadata"][name]["shape"][0] = length
        changed[f"{name}/zarr.json"] = _text(array)
    changed["zarr.json"] = _text(root)
    return changed


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, allow_nan=False).encode()
