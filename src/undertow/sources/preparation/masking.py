"""``mask``: which entries count as observed, from an array or a file; one mask for all slices or one for each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_real, one_sentence
from undertow.sources.formats.arrays import ArraySource
from undertow.sources.formats.base import Indexed, Source
from undertow.sources.formats.images import read_array, read_image
from undertow.sources.options import SourceOptions

Mask = Callable[[int], NDArray[np.bool_]]
_IMAGES = (".png", ".pgm", ".bmp", ".tif", ".tiff")


def open_mask(mask: Any, source: Source, open_path: Callable[[Path, SourceOptions], Source]) -> Mask:
    """A function that gives the mask of a slice by its index; anything but 0 means observed."""
    name = os.fspath(mask) if isinstance(mask, (str, os.PathLike)) else "mask"
    with one_sentence(f"mask {name} could not be read", "give an array or a file of the shape of the slices"):
        loaded = _load(mask, source, open_path)
    if not isinstance(loaded, Indexed):
        observed = _observed(loaded, source)
        return lambda index: observed
    _check_shape(loaded.shape, source)

    def of_slice(index: int) -> NDArray[np.bool_]:
        if index >= loaded.length:
            raise StreamError(f"mask has {loaded.length} slices only, fewer than {source.name}: make it as long")
        return _observed(loaded.at(index), source)

    return of_slice


def _load(mask: Any, source: Source, open_path: Callable[[Path, SourceOptions], Source]) -> NDArray[Any] | Indexed:
    """One mask for all slices, or a source of masks."""
    if not isinstance(mask, (str, os.PathLike)):
        array = np.asarray(mask)
        return array if array.ndim == len(source.shape) else ArraySource(array, "array", SourceOptions())
    path = Path(mask)
    if path.is_file() and path.suffix.lower() in _IMAGES:
        return read_image(path, colour=len(source.shape) == 3)
    opened: Source | None = None
    try:
        opened = open_path(path, SourceOptions())
    except StreamError:
        if path.suffix.lower() != ".npy":  # one axis, or another reason to read it as a single mask
            raise
    if path.suffix.lower() == ".npy" and (opened is None or opened.shape != source.shape):
        return read_array(path)
    if not isinstance(opened, Indexed):
        raise StreamError(f"mask {path.name} must be an array or an image: save it as .npy")
    return opened


def _observed(array: NDArray[Any], source: Source) -> NDArray[np.bool_]:
    check_real("mask", array.dtype)
    _check_shape(array.shape, source)
    return np.asarray((array != 0) & ~np.isnan(array))


def _check_shape(shape: tuple[int, ...], source: Source) -> None:
    if shape != source.shape:
        raise StreamError(f"mask must have the shape of the slices, {source.shape}, got {shape}: cut or transpose it")
