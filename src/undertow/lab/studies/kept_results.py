"""What a tracker said of a stream in one file, so that what comes after it can be tried again in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Results = Iterator[Any]
ARRAYS = ("mean", "std", "innovations", "outlier_probability")
EVENTS = ("changed", "dead")


def kept(path: Path, made: Callable[[], Results]) -> Results:
    """Results from the file, in single precision; made and written first where there is none."""
    if not path.exists():
        write(path, made())
    return read(path)


def write(path: Path, results: Iterable[Any]) -> None:
    """What `undertow.Incidents` reads of them."""
    slices = [_arrays(one) for one in results]
    held: dict[str, Any] = {name: np.stack([one[name] for one in slices]) for name in slices[0]}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part.npz")
    np.savez_compressed(temporary, **held)
    temporary.replace(path)


def read(path: Path) -> Results:
    """Them again."""
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    for t, off in enumerate(held["off"]):
        events = SimpleNamespace(slice_off=bool(off), **{name: np.nonzero(held[name][t]) for name in EVENTS})
        arrays = {name: held[name][t] for name in ARRAYS}
        yield SimpleNamespace(**arrays, outliers=np.zeros_like(arrays["mean"]), events=events)


def _arrays(result: Any) -> dict[str, NDArray[Any]]:
    held = {name: np.asarray(getattr(result, name), np.float32) for name in ARRAYS}
    held["off"] = np.asarray(bool(result.events.slice_off))
    for name in EVENTS:
        held[name] = np.zeros(held["mean"].shape, np.bool_)
        positions = getattr(result.events, name)
        if len(positions):
            held[name][tuple(positions)] = True
    return held
