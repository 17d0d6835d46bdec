"""Checkpoints of a run: model, source position and store length in one file that is replaced atomically.

The newest two are kept, after the end of the stream too. If the newest cannot be read, the one before it counts, and
the store is cut to its length.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.store.folder import PRIVATE
from undertow.serialization.container import CheckpointError, read, write

VERSION = 1
_KIND = "run"
_KEPT = 2
_PREFIX = "checkpoint-"
_HEADER = ("slices", "position", "identity", "marks", "attributes")
_CONTENTS = ("model", "incidents", "places")


@dataclass(frozen=True)
class RunCheckpoint:
    """How far a run has got. No wall-clock times: the same run gives the same bytes.

    Attributes:
        slices: slices learned, which is also the length of the store.
        position: where the source continues.
        identity: source, settings and layout; a run with other ones cannot resume from here.
        marks: how far the sinks beside the store had got, and checksums of what they hold.
        attributes: those of the store.
        model: what the model's own `to_bytes` gave; empty before the first slice.
        incidents: what `Incidents.to_bytes` gave; empty where none are kept.
        places: what `Places.to_bytes` gave; empty where no labels come and go.
    """

    slices: int
    position: dict[str, Any] | None
    identity: dict[str, Any]
    marks: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    model: bytes = b""
    incidents: bytes = b""
    places: bytes = b""


class CheckpointFolder:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, checkpoint: RunCheckpoint) -> None:
        """Write one more and remove those no longer needed."""
        header = {"kind": _KIND, "version": VERSION, **{name: getattr(checkpoint, name) for name in _HEADER}}
        path = self._folder / f"{_PREFIX}{checkpoint.slices:012d}"
        contents = {name: getattr(checkpoint, name) for name in _CONTENTS}
        kept = {name: one for name, one in contents.items() if one or name == "model"}
        write(path, header, {name: np.frombuffer(one, np.uint8) for name, one in kept.items()})
        for older in self._newest_first()[_KEPT:]:
            older.unlink(missing_ok=True)

    def newest(self, notify: Callable[[str], None]) -> RunCheckpoint | None:
        """The newest that can be read, None if there is none at all; damaged ones are removed, with a notice."""
        damaged: list[Path] = []
        for path in self._newest_first():
            try:
                checkpoint = _read(path)
            except CheckpointError as error:
                damaged.append(path)
                damage = error
                continue
            for worse in damaged:
                notify(f"{worse} cannot be read, resuming from the checkpoint before it, {checkpoint.slices} slices in")
                worse.unlink(missing_ok=True)
            return checkpoint
        if damaged:
            raise CheckpointError(
                f"no checkpoint in {self._folder} can be read ({damage}): "
                "run again with --overwrite to start from the beginning"
            )
        return None

    def marks(self) -> dict[str, int]:
        """Those of the newest that can be read; nothing where there is none."""
        for path in self._newest_first():
            with contextlib.suppress(CheckpointError):
                return _read(path).marks
        return {}

    def damage(self) -> list[str]:
        """Why checkpoints cannot be read, those that cannot."""
        found = []
        for path in self._newest_first():
            try:
                _read(path)
            except CheckpointError as error:
                found.append(str(error))
        return found

    def _newest_first(self) -> list[Path]:
        return sorted(self._folder.glob(_PREFIX + "[0-9]" * 12), reverse=True)


def stopped(folder: Path) -> str:
    """What a signal has left of a run into this store, as a sentence; asked of the disk, so true at any moment."""
    try:
        names = [name.removeprefix(_PREFIX) for name in os.listdir(folder / PRIVATE) if name.startswith(_PREFIX)]
    except OSError:
        names = []
    slices = max((int(name) for name in names if name.isdigit()), default=0)
    if not slices:
        return "stopped before the first slice was done"
    return f"stopped after {slices} slices, all of them in {folder}: continue with --resume"


def _read(path: Path) -> RunCheckpoint:
    header, arrays = read(path)
    if header.get("kind") != _KIND or header.get("version") != VERSION:
        raise CheckpointError(f"{path} is not a checkpoint of a run that this version of Undertow knows")
    try:
        contents = {name: arrays[name].tobytes() for name in _CONTENTS if name in arrays or name == "model"}
        return RunCheckpoint(**{name: header[name] for name in _HEADER} | contents)
    except KeyError as error:
        raise CheckpointError(f"{path} lacks {error}, which a checkpoint of a run holds") from error
