"""A Zarr folder whose Blosc chunks are checked: the decoder reads past the end of one that is cut short."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from zarr.abc.store import RangeByteRequest
from zarr.storage import LocalStore, WrapperStore

from undertow.sources.base import BadInputError

_HEADER_BYTES = 16
_BLOSC = ("blosc", "numcodecs.blosc")
_ABSENT = 2**64 - 1
"""Where the index of a shard says that a chunk was not written."""


@dataclass(frozen=True)
class _Chunks:
    """Where the Blosc chunks are in a file of an array.

    Attributes:
        inner: Chunks of a shard, which has an index of their places; 0 where the file is one chunk.
        index_first: Whether the index stands before them.
        checksum: Bytes behind the index.
    """

    inner: int = 0
    index_first: bool = False
    checksum: int = 0

    def of_file(self, content: bytes) -> Iterator[bytes]:
        """All chunks of a whole file."""
        if not self.inner:
            yield content
            return
        size = 16 * self.inner
        start = 0 if self.index_first else len(content) - size - self.checksum
        if start < 0 or len(content) < size:
            return  # zarr finds no index there, and says so
        for offset, length in np.frombuffer(content, "<u8", 2 * self.inner, start).reshape(-1, 2).tolist():
            if offset != _ABSENT:
                yield content[offset : offset + length]


class CheckedStore(WrapperStore[Any]):
    """Read only. The last four bytes of a Blosc header are the size of the chunk, which must be that of its file, or
    of its part of a shard."""

    def __init__(self, store: Any, name: str, arrays: Mapping[str, _Chunks]) -> None:
        super().__init__(store)
        self._name, self._arrays = name, arrays

    def _with_store(self, store: Any) -> CheckedStore:
        return CheckedStore(store, self._name, self._arrays)

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """The content of a file of the folder."""
        content = await super().get(key, prototype, byte_range)
        chunks = self._chunks(key)
        if content is None or chunks is None:
            return content
        if byte_range is None:
            for chunk in chunks.of_file(content.to_bytes()):
                self._check(key, chunk)
        elif isinstance(byte_range, RangeByteRequest) and not (chunks.index_first and byte_range.start == 0):
            self._check(key, content.to_bytes())  # one chunk of a shard, where its index says
        return content

    def _check(self, key: str, chunk: bytes) -> None:
        claimed = int.from_bytes(chunk[_HEADER_BYTES - 4 : _HEADER_BYTES], "little")
        if len(chunk) < _HEADER_BYTES or claimed != len(chunk):
            raise BadInputError(
                f"the chunk {key} of {self._name} has {len(chunk)} bytes, but should have {claimed}: it is damaged, "
                "write it again"
            )

    def _chunks(self, key: str) -> _Chunks | None:
        """Of the array that a file belongs to, if it has Blosc chunks."""
        folder, _, file = key.rpartition("/")
        if file == "zarr.json" or file.startswith(".z"):
            return None
        parts = folder.split("/") if folder else []
        found = (self._arrays.get("/".join(parts[:depth])) for depth in range(len(parts) + 1))
        return next((chunks for chunks in found if chunks is not None), None)


def open_checked(path: Path, metadata: Iterable[Path]) -> CheckedStore:
    """A Zarr folder of either version of the format, with the files of metadata in it."""
    arrays = {}
    for file in metadata:
        chunks = None if file.name == ".zmetadata" else _blosc_chunks(json.loads(file.read_bytes()))
        if chunks is not None:
            arrays[file.parent.relative_to(path).as_posix().removeprefix(".")] = chunks
    return CheckedStore(LocalStore(path, read_only=True), path.name, arrays)


def _blosc_chunks(metadata: Any) -> _Chunks | None:
    """Where the Blosc chunks of an array are; None where its chunks were encoded with something else last."""
    if not isinstance(metadata, dict):
        return None
    if _name(metadata.get("compressor")) in _BLOSC:
        return _Chunks()
    last = _last(metadata.get("codecs"))
    if _name(last) in _BLOSC:
        return _Chunks()
    if _name(last) != "sharding_indexed":
        return None
    shard = last["configuration"]
    index = [_name(codec) for codec in shard.get("index_codecs", ())]
    if _name(_last(shard.get("codecs"))) not in _BLOSC or index not in (["bytes"], ["bytes", "crc32c"]):
        return None
    outer = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    inner = math.prod(whole // part for whole, part in zip(outer, shard["chunk_shape"], strict=True))
    return _Chunks(inner, shard.get("index_location") == "start", 4 * (len(index) - 1))


def _last(codecs: Any) -> Any:
    return codecs[-1] if isinstance(codecs, list) and codecs else None


def _name(codec: Any) -> str | None:
    return str(codec.get("name", codec.get("id"))) if isinstance(codec, dict) else None
