"""Checkpoints of a run: model, source position and store length in one file that appears in one move.

The newest two are kept. If the newest cannot be read, the one before it counts, and the store goes back to its length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from undertow.serialization.container import CheckpointError, read, write

VERSION = 1
_KIND = "run"
_KEPT = 2


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands. No wall-clock times: the same run gives the same bytes."""

    slices: int
    """Slices learned, which is also the length of the store."""
    position: dict[str, Any] | None
    """Where the source goes on."""
    identity: dict[str, Any]
    """Source, settings and layout; a run with other ones cannot go on from here."""
    marks: dict[str, int] = field(default_factory=dict)
    """How far the sinks beside the store had got."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """What the store says about itself."""
    model: bytes = b""
    """The file that the model's own `save` wrote; empty before the first slice."""


class Snapshots:
    """The checkpoints in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, snapshot: Snapshot, *, alone: bool = False) -> None:
        """Write one more and remove what is no longer needed; ``alone`` removes all others."""
        header = {
            "kind": _KIND,
            "version": VERSION,
            "slices": snapshot.slices,
            "position": snapshot.position,
            "identity": snapshot.identity,
            "marks": snapshot.marks,
            "attributes": snapshot.attributes,
        }
        write(self._path(snapshot.slices), header, {"model": np.frombuffer(snapshot.model, np.uint8)})
        for path in self._newest_first()[1 if alone else _KEPT :]:
            path.unlink(missing_ok=True)

    def newest(self, say: Callable[[str], None]) -> Snapshot | None:
        """The newest that can be read, or None where there is none; those that cannot are removed and spoken of."""
        paths = self._newest_first()
        for path in paths:
            try:
                snapshot = _read(path)
            except CheckpointError as error:
                damage = error
                continue
            for worse in paths[: paths.index(path)]:
                say(f"{worse} cannot be read, going on from the checkpoint before it, {snapshot.slices} slices in")
                worse.unlink(missing_ok=True)
            return snapshot
        if paths:
            raise CheckpointError(
                f"no checkpoint in {self._folder} can be read ({damage}): "
                "run again with --overwrite to start from the beginning"
            )
        return None

    def _path(self, slices: int) -> Path:
        return self._folder / f"checkpoint-{slices:012d}"

    def _newest_first(self) -> list[Path]:
        return sorted(self._folder.glob("checkpoint-" + "[0-9]" * 12), reverse=True)


def saved(model: Any, folder: Path) -> bytes:
    """What the model's own `save` writes, as bytes."""
    path = folder / "model.tmp"
    try:
        model.save(path)
        return path.read_bytes()
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def loaded(content: bytes, folder: Path, load: Callable[[Path], Any]) -> Any:
    """The model whose `save` wrote these bytes."""
    path = folder / "model.tmp"
    try:
        path.write_bytes(content)
        return load(path)
    finally:
        path.unlink(missing_ok=True)


def _read(path: Path) -> Snapshot:
    header, arrays = read(path)
    if header.get("kind") != _KIND or header.get("version") != VERSION:
        raise CheckpointError(f"{path} is no checkpoint of a run that this Undertow knows")
    try:
        return Snapshot(
            slices=int(header["slices"]),
            position=header["position"],
            identity=dict(header["identity"]),
            marks={name: int(mark) for name, mark in header["marks"].items()},
            attributes=dict(header["attributes"]),
            model=arrays["model"].astype(np.uint8).tobytes(),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} lacks what a checkpoint of a run holds ({error})") from error
