"""Raw video: frames of known size one after the other, without any header (``.yuv``, ``.raw``, ``.gray``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_slice_shape, optional
from undertow.sources.formats.base import Indexed
from undertow.sources.formats.images import COLOURS
from undertow.sources.options import Options

_CHROMA = {"yuv420p": (2, 2), "yuv422p": (2, 1), "yuv444p": (1, 1), "gray": None}
"""Pixel formats, and by how much their colour planes are smaller than the picture: across, down."""


class RawVideo(Indexed):
    """Any frame is found by its number; the file may still grow."""

    format = "yuv"

    def __init__(self, path: Path, options: Options) -> None:
        if options.size is None:
            raise StreamError(f"{path.name} has no header: give the size of its frames, for example size='176x144'")
        self._pixels = options.pixels or ("gray" if path.suffix == ".gray" else "yuv420p")
        if self._pixels not in _CHROMA:
            raise StreamError(f"pixels must be one of {', '.join(_CHROMA)}, got {self._pixels!r}")
        self._width, self._height = options.size
        check_slice_shape(path.name, (self._height, self._width, 3))
        self._path, self._colour = path, bool(options.colour)
        if self._colour and self._pixels == "gray":
            raise StreamError(f"{path.name} has grey pixels only: leave colour out")
        self._frame_bytes = self._width * self._height + 2 * self._chroma_bytes()
        whole, rest = divmod(path.stat().st_size, self._frame_bytes)
        if options.follow is None and (rest or not whole):
            raise StreamError(
                f"{path.name} must hold whole frames of {self._frame_bytes} bytes, got {path.stat().st_size} bytes: "
                "check size and pixels, or the end of the file is missing"
            )
        shape = (self._height, self._width, 3) if self._colour else (self._height, self._width)
        labels = (None, None, COLOURS) if self._colour else None
        super().__init__(
            path.name, shape, whole, ("row", "column", "colour")[: len(shape)], labels, follow=options.follow
        )

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return np.stack([self._frame(index) for index in range(start, stop)])

    def refresh(self) -> int:  # noqa: D102
        return self._path.stat().st_size // self._frame_bytes

    def _chroma_bytes(self) -> int:
        ratio = _CHROMA[self._pixels]
        return 0 if ratio is None else -(-self._width // ratio[0]) * -(-self._height // ratio[1])

    def _frame(self, index: int) -> NDArray[Any]:
        offset = index * self._frame_bytes
        count = self._frame_bytes if self._colour else self._width * self._height
        planes = np.fromfile(self._path, np.uint8, count, offset=offset)
        if planes.size != count:
            raise StreamError(f"{self.name} became shorter while it was read: write it again")
        return self._rgb(planes) if self._colour else planes.reshape(self._height, self._width)

    def _rgb(self, planes: NDArray[np.uint8]) -> NDArray[Any]:
        av = optional("av", "video", "A raw video in colour")
        frame = av.VideoFrame(self._width, self._height, self._pixels)
        sizes = [self._width * self._height, self._chroma_bytes(), self._chroma_bytes()]
        start = 0
        for plane, size in zip(frame.planes, sizes, strict=True):
            rows = planes[start : start + size].reshape(plane.height, plane.width)
            padded = np.zeros((plane.height, plane.line_size), np.uint8)
            padded[:, : plane.width] = rows
            plane.update(padded.tobytes()[: plane.buffer_size])
            start += size
        return np.asarray(frame.to_ndarray(format="rgb24"))


def open_yuv(path: Path, options: Options) -> RawVideo:
    """A raw video of the given ``size``."""
    return RawVideo(path, options)
