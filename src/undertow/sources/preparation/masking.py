"""``mask``: which entries count as observed, from an array or a file; one mask for all slices or one for each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_real, told_in_one_sentence
from undertow.sources.formats.arrays import open_array
from undertow.sources.formats.base import Indexed, Source, first_bytes
from undertow.sources.formats.images import read_array, read_picture
from undertow.sources.options import Options

_PICTURES = (".png", ".pgm", ".bmp", ".tif", ".tiff")


def open_mask(
    mask: Any, source: Source, opener: Callable[[Path, Options], Source]
) -> Callable[[int], NDArray[np.bool_]]:
    """A function that gives the mask of a slice by its number; anything but 0 means observed."""
    name = os.fspath(mask) if isinstance(mask, (str, os.PathLike)) else "mask"
    with told_in_one_sentence(f"mask {name} could not be read", "give an array or a file of the shape of the slices"):
        constant, per_slice = _load(mask, source, opener)
    if constant is not None:
        observed = _observed(constant, source)
        return lambda index: observed
    assert per_slice is not None
    if per_slice.shape != source.shape:
        raise StreamError(f"mask must have the shape of the slices, {source.shape}, got {per_slice.shape}")

    def of_slice(index: int) -> NDArray[np.bool_]:
        if index >= per_slice.length:
            raise StreamError(f"mask has {per_slice.length} slices only, fewer than {source.name}: make it as long")
        return _observed(per_slice.at(index), source)

    return of_slice


def mask_identity(mask: Any) -> str:
    """Something that tells one mask from another."""
    if isinstance(mask, (str, os.PathLike)):
        path = Path(mask)
        return f"{path.name} {first_bytes(path, 2**20) if path.is_file() else ''}"
    return hashlib.sha256(np.ascontiguousarray(mask).tobytes()).hexdigest()


def _load(
    mask: Any, source: Source, opener: Callable[[Path, Options], Source]
) -> tuple[NDArray[Any] | None, Indexed | None]:
    if not isinstance(mask, (str, os.PathLike)):
        array = np.asarray(mask)
        return (array, None) if array.ndim == len(source.shape) else (None, open_array(array, Options()))
    path = Path(mask)
    if path.is_file() and path.suffix.lower() in _PICTURES:
        return read_picture(path, colour=len(source.shape) == 3), None
    opened: Source | None = None
    try:
        opened = opener(path, Options())
    except StreamError:
        if path.suffix.lower() != ".npy":  # one axis, or another reason to read it as a single mask
            raise
    if path.suffix.lower() == ".npy" and (opened is None or opened.shape != source.shape):
        return read_array(path), None
    if not isinstance(opened, Indexed):
        raise StreamError(f"mask {path.name} must be an array or a folder of pictures: save it as .npy")
    return None, opened


def _observed(array: NDArray[Any], source: Source) -> NDArray[np.bool_]:
    check_real("mask", array.dtype)
    if array.shape != source.shape:
        raise StreamError(f"mask must have the shape of the slices, {source.shape}, got {array.shape}")
    return np.asarray((array != 0) & ~np.isnan(array))
