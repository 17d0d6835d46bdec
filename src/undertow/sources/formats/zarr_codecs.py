"""Validation of a Zarr folder before it is opened: some codecs unpickle, which would run code from the folder."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError

_METADATA = ("zarr.json", ".zarray", ".zmetadata")
_MAX_METADATA_BYTES = 64 * 2**20
_MAX_CHUNK_ENTRIES = 2**28
_SAFE = {
    "adler32", "astype", "base64", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "default", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "pcodec", "quantize",
    "sharding_indexed", "shuffle", "transpose", "v2", "vlen-bytes", "vlen-utf8", "zfpy", "zlib", "zstd",
}  # fmt: skip


def check_folder(path: Path) -> None:
    """Refuse a folder that asks for a codec not known to be safe, or for chunks larger than any slice."""
    for folder, _, names in os.walk(path):
        for name in names:
            if name in _METADATA:
                _check_file(Path(folder) / name, path.name)


def _check_file(path: Path, name: str) -> None:
    if path.stat().st_size > _MAX_METADATA_BYTES:
        raise StreamError(f"{name} has metadata above {_MAX_METADATA_BYTES} bytes: it may be damaged, write it again")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise StreamError(f"{path.name} in {name} is not JSON: it may be damaged, write it again") from None
    _check(content, name)


def _check(content: Any, name: str) -> None:
    for inner in content if isinstance(content, list) else ():
        _check(inner, name)
    for key, inner in content.items() if isinstance(content, dict) else ():
        if key in ("codecs", "filters", "compressor", "compressors", "index_codecs", "serializer"):
            _check_codecs(inner, name)
        if key in ("chunks", "chunk_shape"):
            _check_chunk(inner, name)
        if key != "attributes":
            _check(inner, name)


def _check_codecs(codecs: Any, name: str) -> None:
    for codec in codecs if isinstance(codecs, list) else [codecs]:
        if codec is None:
            continue
        known = codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec
        if not isinstance(known, str) or known.removeprefix("numcodecs.") not in _SAFE:
            raise StreamError(f"{name} uses the codec {known!r}, which is not known to be safe: write it with zstd")


def _check_chunk(shape: Any, name: str) -> None:
    sizes = [size for size in shape if isinstance(size, int)] if isinstance(shape, list) else []
    if math.prod(sizes) > _MAX_CHUNK_ENTRIES or min(sizes, default=1) < 1:
        raise StreamError(f"{name} claims chunks of {sizes} entries: it may be damaged, write it again")
