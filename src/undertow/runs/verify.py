"""``undertow inspect --verify``: every file of a store is read and compared with its checksum."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from undertow.runs.checkpoints import CheckpointFolder
from undertow.runs.errors import StoreError, reason
from undertow.runs.store.alerts import read_alerts
from undertow.runs.store.folder import PRIVATE
from undertow.runs.store.growing import checked
from undertow.runs.store.growth import chunk_names
from undertow.runs.store.incidents import FILE, read_incidents


@dataclass(frozen=True)
class Verification:
    """What reading everything has shown.

    Attributes:
        chunks: how many were read.
        checksums: whether all of them have checksums; without, only gross damage can be seen.
        damage: one text for everything that is damaged or missing.
    """

    chunks: int
    checksums: bool
    damage: tuple[str, ...]


def verify(folder: Path) -> Verification:
    """Read all chunks, alerts, incidents and checkpoints of a store.

    Args:
        folder: what `undertow.run` wrote.

    Raises:
        StoreError: not even the metadata can be read.
    """
    import zarr

    try:
        root = json.loads((folder / "zarr.json").read_bytes())
        names = list(root["consolidated_metadata"]["metadata"])
        group = zarr.open_group(folder, mode="r", use_consolidated=True)
        arrays: list[Any] = [group[name] for name in names]
        alerts = root["attributes"].get("alerts", "none")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder / 'zarr.json'} is damaged ({reason(error)}): restore it from a copy") from error
    damage: list[str] = []
    chunks, with_checksums = 0, True
    for name, array in zip(names, arrays, strict=True):
        damage += _damage_of_metadata(folder / name, name, root["consolidated_metadata"]["metadata"][name])
        with_checksums &= any(type(codec).__name__ == "Crc32cCodec" for codec in array.metadata.codecs)
        for start, chunk in chunk_names(array.shape, array.chunks, root["attributes"]):
            chunks += 1
            damage += _damage_of_chunk(folder / name, name, array, start, chunk)
    checkpoints = CheckpointFolder(folder / PRIVATE)
    marks = checkpoints.marks()
    for path, kept in ((folder / f"alerts.{alerts}", partial(read_alerts, alerts)), (folder / FILE, read_incidents)):
        try:
            deque(kept(folder), maxlen=0)  # read, not kept: there may be millions
            if path.suffix in (".csv", ".jsonl") and path.stem in marks:
                checked(path, marks)
        except (OSError, ValueError) as error:
            damage.append(reason(error).partition(": restore it")[0])  # who shows it says what to do
    damage += checkpoints.damage()
    return Verification(chunks, with_checksums, tuple(damage))


def _damage_of_metadata(folder: Path, name: str, known: dict[str, Any]) -> list[str]:
    """Of an array's own document, which has no checksum, beside what the group's says; one that is larger was written
    just before a run was killed."""
    document = f"{name}/zarr.json"
    try:
        own = json.loads((folder / "zarr.json").read_bytes())
        larger = all(its >= said for its, said in zip(own["shape"], known["shape"], strict=True))
        same = {**own, "shape": None} == {**known, "shape": None}
    except FileNotFoundError:
        return [f"{document} is missing"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{document}: {reason(error)}"]
    return [] if larger and same else [f"{document} differs from zarr.json"]


def _damage_of_chunk(folder: Path, name: str, array: Any, start: int, chunk: str) -> list[str]:
    if not (folder / chunk).is_file():
        return [f"{name}/{chunk} is missing"]
    rows = zip(map(int, chunk.split(".")[2:]), array.chunks[1:], strict=True)
    where = (slice(number * size, (number + 1) * size) for number, size in rows)
    try:
        array[(slice(start, start + array.chunks[0]), *where)]
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        return [f"{name}/{chunk}: {reason(error)}"]
    return []
