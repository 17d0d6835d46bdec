"""A folder with one image (or one ``.npy`` file) per slice, in the order of their names; it may still grow."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, BadInputError, StreamError
from undertow.sources.errors import (
    MAX_SLICE_ENTRIES,
    check_slice_shape,
    foreign_position,
    import_extra,
    one_sentence,
    shortened,
)
from undertow.sources.formats.base import COLOURS, FRAME_DIMS, Raw, Source
from undertow.sources.formats.npy import NpyHeader
from undertow.sources.options import SourceOptions

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm", ".webp", ".gif", ".npy")
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "PPM", "WEBP", "GIF")  # those whose readers are pure decoders, nothing else


class Folder(Source):
    """Files of a folder by name; numbers in names count as numbers, so that 9 comes before 10."""

    format = "images"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path, self._colour, self._follow = path, bool(options.colour), options.follow
        if self._follow is not None:
            self._follow.wait(lambda: bool(self._after(None)))
        names = self._after(None)
        if not names:
            raise StreamError(f"{path.name} holds no images: it needs files such as 0001.png, 0002.png")
        array = self._load(names[0])
        is_image = not _is_array(names[0])
        dims = FRAME_DIMS[: array.ndim] if is_image and array.ndim < 4 else None
        labels = (None, None, COLOURS)[: array.ndim] if is_image and self._colour else None
        super().__init__(path.name, array.shape, dims, labels)
        self.length = None if self._follow is not None else len(names)
        others = [entry.name for entry in path.iterdir() if entry.suffix.lower() in SUFFIXES and not entry.is_file()]
        if others:
            self.notices.append(f"left out what is not a file in {path.name}: {shortened(others)}")

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        last = None if position is None else position.get("file")
        if not isinstance(last, str) and position is not None:
            raise foreign_position(self.name)
        while True:
            for name in self._after(last):
                if self._follow is not None and not self._is_complete(name):
                    break
                yield Raw(Path(name).stem, {"file": name}, partial(self._load, name))
                last = name
            if self._follow is None or not self._follow.wait(partial(self._has_next, last)):
                return

    def identity(self) -> str:  # noqa: D102
        first = self._after(None)[0]
        return hashlib.sha256(first.encode() + np.ascontiguousarray(self._load(first)).tobytes()).hexdigest()

    def _after(self, last: Any) -> list[str]:
        """The names of the files after ``last``, in order."""
        with os.scandir(self._path) as entries:  # a pipe or a device would be waited for: files only
            names = [e.name for e in entries if Path(e.name).suffix.lower() in SUFFIXES and e.is_file()]
        names = [
            name for name in names if not name.startswith(".") and (last is None or _natural(name) > _natural(last))
        ]
        return sorted(names, key=_natural)

    def _has_next(self, last: Any) -> bool:
        following = self._after(last)
        return bool(following) and self._is_complete(following[0])

    def _is_complete(self, name: str) -> bool:
        """Whether a file that may still be written can be read by now."""
        try:
            self._load(name)
        except StreamError:
            return False
        return True

    def _load(self, name: str) -> NDArray[Any]:
        path = self._path / name
        try:
            with one_sentence(f"{self._path.name}/{name} could not be read", "check that it is a complete file"):
                return read_array(path) if _is_array(name) else read_image(path, self._colour)
        except StreamError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno is not None:
                raise  # the disk, not what is in the file
            raise BadInputError(str(error)) from error


def read_array(path: Path) -> NDArray[Any]:
    """A small ``.npy`` file as a whole."""
    with path.open("rb") as file:
        header = NpyHeader(file, path.name)
        check_slice_shape(path.name, header.shape)
        header.check_fits(path.name, path.stat().st_size - header.offset)
        flat = np.fromfile(file, header.dtype, count=header.size // header.dtype.itemsize)
    return flat.reshape(header.shape, order=header.order)


def read_image(path: Path, colour: bool) -> NDArray[Any]:
    """An image as grey values (rows, columns) or as colours (rows, columns, 3)."""
    pillow = import_extra("PIL.Image", "images", "A folder of images")
    with pillow.open(path, formats=_FORMATS) as image:
        if image.width * image.height > MAX_SLICE_ENTRIES:
            raise StreamError(f"{path.name} claims {image.width}×{image.height} pixels: it may be damaged")
        if colour:
            return np.asarray(image.convert("RGB"))
        deep = image.mode in ("F", "I") or image.mode.startswith("I;16")
        return np.asarray(image if deep else image.convert("L"))


def _is_array(name: str) -> bool:
    return name.lower().endswith(".npy")


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sorts 2 before 10; the name itself decides ties such as 01 and 1."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts], name
