"""What a tracker said of a stream in one file, so that what comes after it can be tried again in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        write(path, list(made()))
    return read(path)


def write(path: Path, results: list[Any]) -> None:
    """What `undertow.Incidents` reads of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.stack([getattr(one, name) for one in results]) for name in ARRAYS}
    arrays = {name: values.astype(np.float32) for name, values in arrays.items()}
    for name in EVENTS:
        arrays[name] = np.stack([_mask(getattr(one.events, name), one.mean.shape) for one in results])
    arrays["off"] = np.array([one.events.slice_off for one in results])
    temporary = path.with_suffix(".part.npz")
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)


def read(path: Path) -> Results:
    """Them again."""
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    for t, off in enumerate(held["off"]):
        events = SimpleNamespace(slice_off=bool(off), **{name: np.nonzero(held[name][t]) for name in EVENTS})
        arrays = {name: held[name][t] for name in ARRAYS}
        yield SimpleNamespace(**arrays, outliers=np.zeros_like(arrays["mean"]), events=events)


def _mask(positions: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    made = np.zeros(shape, np.bool_)
    if len(positions):
        made[tuple(positions)] = True
    return made
