"""What all formats share: slices in blocks that fit into memory, and a file that appears once it is whole."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from undertow.runs.errors import StoreError
from undertow.runs.store.reader import StoredRun

_BLOCK_BYTES = 32 * 2**20


class ExportError(StoreError):
    """An export cannot be made; the message is one sentence that says why and what to do."""


def blocks(run: StoredRun, names: Sequence[str]) -> Iterator[tuple[int, dict[str, np.ndarray[Any, Any]]]]:
    """Index of the first slice and the arrays of several slices, until all have been given."""
    entries = max(1, math.prod(run.shape)) * max(1, len(names))
    length = max(1, min(1024, _BLOCK_BYTES // (8 * entries)))
    for start in range(0, run.length, length):
        part = run.dataset[list(names)].isel({run.time_name: slice(start, start + length)})
        yield start, {name: np.asarray(part[name].values) for name in names}


def kept(run: StoredRun, wanted: Sequence[str] | None) -> list[str]:
    """The arrays to export: all that were kept, or those asked for."""
    names = list(wanted) if wanted else list(run.kept)
    for name in names:
        if name not in run.kept:
            there = ", ".join(run.kept) or "none"
            raise ExportError(
                f"{run.folder} does not hold {name}: choose among {there}, or run again with --keep {name}"
            )
    if not names:
        raise ExportError(f"{run.folder} holds values per step only: run again with --keep low_rank")
    return names


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A path to write to; it becomes ``target`` if all goes well and disappears if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".unfinished-{target.name}")  # the suffix stays: libraries go by it
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
