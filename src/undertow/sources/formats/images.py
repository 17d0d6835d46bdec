"""A folder with one picture (or one ``.npy`` file) per slice, in the order of their names; it may still grow."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import MAX_SLICE_ENTRIES, check_slice_shape, optional, told_in_one_sentence
from undertow.sources.formats.base import Raw, Source
from undertow.sources.formats.npy import Layout
from undertow.sources.options import Options

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm", ".webp", ".gif", ".npy")
COLOURS = ("red", "green", "blue")
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "PPM", "WEBP", "GIF")  # those whose readers are pure decoders, nothing else


class Folder(Source):
    """Files of a folder by name; numbers in names count as numbers, so that 9 comes before 10."""

    format = "images"

    def __init__(self, path: Path, options: Options) -> None:
        self._path, self._colour, self._follow = path, bool(options.colour), options.follow
        names = _names(path)
        if not names and self._follow is not None and self._follow.wait(lambda: bool(_names(path))):
            names = _names(path)
        if not names:
            raise StreamError(f"{path.name} holds no pictures: it needs files such as 0001.png, 0002.png")
        array = self._load(names[0])
        picture = self._kind(names[0]) == "picture"
        dims = ("row", "column", "colour")[: array.ndim] if picture and array.ndim < 4 else None
        labels = (None, None, COLOURS)[: array.ndim] if picture and self._colour else None
        super().__init__(path.name, array.shape, dims, labels)
        self.length = None if self._follow is not None else len(names)

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        last: str | None = None
        if position is not None:
            named = position.get("file")
            if not isinstance(named, str):
                raise StreamError(f"the position to resume {self.name} from is not one of its own: start afresh")
            last = named
        names = self._after(last)
        while True:
            for name in names:
                if self._follow is None or self._is_complete(name):
                    yield Raw(Path(name).stem, {"file": name}, partial(self._load, name))
                    last = name
                else:
                    break
            if self._follow is None or not self._follow.wait(partial(self._has_next, last)):
                return
            names = self._after(last)

    def identity(self) -> str:  # noqa: D102
        first = _names(self._path)[0]
        return hashlib.sha256(first.encode() + np.ascontiguousarray(self._load(first)).tobytes()).hexdigest()

    def close(self) -> None:  # noqa: D102
        if self._follow is not None:
            self._follow.stop()

    def _after(self, last: str | None) -> list[str]:
        names = _names(self._path)
        return names if last is None else [name for name in names if _natural(name) > _natural(last)]

    def _has_next(self, last: str | None) -> bool:
        following = self._after(last)
        return bool(following) and self._is_complete(following[0])

    def _is_complete(self, name: str) -> bool:
        """Whether a file that may still be written can be read by now."""
        try:
            self._load(name)
        except StreamError:
            return False
        return True

    def _kind(self, name: str) -> str:
        return "array" if name.lower().endswith(".npy") else "picture"

    def _load(self, name: str) -> NDArray[Any]:
        path = self._path / name
        with told_in_one_sentence(f"{self._path.name}/{name} could not be read", "check that it is a complete file"):
            return read_array(path) if self._kind(name) == "array" else read_picture(path, self._colour)


def read_array(path: Path) -> NDArray[Any]:
    """A small ``.npy`` file as a whole."""
    with path.open("rb") as file:
        layout = Layout(file, path.name)
        check_slice_shape(path.name, layout.shape)
        layout.check_fits(path.name, path.stat().st_size - layout.offset)
        flat = np.fromfile(file, layout.dtype, count=layout.size // layout.dtype.itemsize)
    return flat.reshape(layout.shape, order="F" if layout.fortran else "C")


def read_picture(path: Path, colour: bool) -> NDArray[Any]:
    """A picture as grey values (rows, columns) or as colours (rows, columns, 3)."""
    pillow = optional("PIL.Image", "images", "A folder of pictures")
    with pillow.open(path, formats=_FORMATS) as image:
        if image.width * image.height > MAX_SLICE_ENTRIES:
            raise StreamError(f"{path.name} claims {image.width}×{image.height} pixels: it may be damaged")
        if colour:
            return np.asarray(image.convert("RGB"))
        deep = image.mode in ("F", "I") or image.mode.startswith("I;16")
        return np.asarray(image if deep else image.convert("L"))


def _names(path: Path) -> list[str]:
    found = (
        entry.name for entry in path.iterdir() if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".")
    )
    return sorted(found, key=_natural)


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sorts 2 before 10; the name itself settles ties such as 01 and 1."""
    pieces = re.findall(r"\d+|\D+", name)
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces], name


def open_folder(path: Path, options: Options) -> Folder:
    """A folder of pictures or of ``.npy`` files."""
    return Folder(path, options)
