"""A Zarr folder whose Blosc chunks are checked: the decoder reads past the end of one that is cut short."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zarr.storage import LocalStore, WrapperStore

from undertow.sources.base import BadInputError

_HEADER_BYTES = 16


class CheckedStore(WrapperStore[Any]):
    """Read only. The last four bytes of a Blosc header are the size of the chunk, which must be that of its file."""

    def __init__(self, store: Any, name: str, arrays: frozenset[str]) -> None:
        super().__init__(store)
        self._name, self._arrays = name, arrays

    def _with_store(self, store: Any) -> CheckedStore:
        return CheckedStore(store, self._name, self._arrays)

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """The content of a file of the folder."""
        content = await super().get(key, prototype, byte_range)
        if content is not None and byte_range is None and self._is_blosc(key):
            claimed = int.from_bytes(content[:_HEADER_BYTES].to_bytes()[12:], "little")
            if len(content) < _HEADER_BYTES or claimed != len(content):
                raise BadInputError(
                    f"the chunk {key} of {self._name} has {len(content)} bytes, but should have {claimed}: it is "
                    "damaged, write it again"
                )
        return content

    def _is_blosc(self, key: str) -> bool:
        folder, _, file = key.rpartition("/")
        if file == "zarr.json" or file.startswith(".z"):
            return False
        parts = folder.split("/") if folder else []
        return any("/".join(parts[:depth]) in self._arrays for depth in range(len(parts) + 1))


def open_checked(path: Path, metadata: Iterable[Path]) -> CheckedStore:
    """A Zarr folder of either version of the format, with the files of metadata in it."""
    arrays = [
        file.parent.relative_to(path).as_posix().removeprefix(".")
        for file in metadata
        if file.name != ".zmetadata" and _last_codec(json.loads(file.read_bytes())) in ("blosc", "numcodecs.blosc")
    ]
    return CheckedStore(LocalStore(path, read_only=True), path.name, frozenset(arrays))


def _last_codec(metadata: Any) -> str | None:
    """What the bytes of the chunks were encoded with last."""
    codecs = metadata.get("codecs") if isinstance(metadata, dict) else None
    last = codecs[-1] if isinstance(codecs, list) and codecs else (metadata or {}).get("compressor")
    return str(last.get("name", last.get("id"))) if isinstance(last, dict) else None
