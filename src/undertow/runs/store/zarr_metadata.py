"""The JSON documents of the Zarr group: zarr makes them once, in memory; then only lengths and attributes change."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np

from undertow.runs.store.chunked_array import COMPRESSION
from undertow.runs.store.layout import SLICE_VARIABLES, STEP_VARIABLES, Layout, label_column

Documents = dict[str, bytes]
"""Path inside the group → content."""


def documents(layout: Layout) -> Documents:
    """A complete group of length 0: metadata of all arrays, and the labels of the modes, which never change."""
    import zarr
    from zarr.codecs import BloscCodec
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    group = zarr.create_group(MemoryStore(files), zarr_format=3)

    def make(name: str, dims: tuple[str, ...], shape: tuple[int, ...], chunks: tuple[int, ...], **more: Any) -> Any:
        dtype, attributes = more["dtype"], more["attributes"]
        return group.create_array(
            name,
            shape=shape,
            chunks=chunks,
            dtype=str if dtype == "str" else dtype,
            fill_value="" if dtype == "str" else (np.nan if np.dtype(dtype).kind == "f" else 0),
            compressors=BloscCodec(**COMPRESSION, typesize=1 if dtype == "str" else np.dtype(dtype).itemsize),
            chunk_key_encoding={"name": "default", "separator": "."},
            dimension_names=dims,
            attributes=attributes,
        )

    time, step, chunk = layout.time_name, layout.step_chunk, layout.chunk
    make(time, (time,), (0,), (step,), dtype=layout.times.dtype, attributes=layout.times.attributes)
    for name, (dtype, meaning) in STEP_VARIABLES.items():
        make(name, (time,), (0,), (step,), dtype=dtype, attributes={"long_name": meaning})
    for name in layout.keep:
        shape, attributes = layout.shape, {"long_name": SLICE_VARIABLES[name]}
        make(name, (time, *layout.dims), (0, *shape), (chunk, *shape), dtype=layout.float_type, attributes=attributes)
    for dim, size, labels in zip(layout.dims, layout.shape, layout.labels, strict=True):
        if labels is not None:
            column = label_column(labels)
            dtype = "str" if column.dtype == object else column.dtype.str
            make(dim, (dim,), (size,), (size,), dtype=dtype, attributes={})[:] = column
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
