"""Raw video: frames of known size one after the other, without any header (``.yuv``, ``.raw``, ``.gray``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_slice_shape, import_extra
from undertow.sources.formats.base import Indexed, frame_modes
from undertow.sources.options import SourceOptions

_CHROMA = {"yuv420p": (2, 2), "yuv422p": (2, 1), "yuv444p": (1, 1), "gray": None}
"""Pixel formats, and by which factors their colour planes are smaller than the frame: across, down."""


class RawVideo(Indexed):
    """Any frame is found by its number; the file may still grow."""

    format = "yuv"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        if options.size is None:
            raise StreamError(f"{path.name} has no header: give the size of its frames, for example size='176x144'")
        self._pixels = options.pixels or ("gray" if path.suffix == ".gray" else "yuv420p")
        if self._pixels not in _CHROMA:
            raise StreamError(f"pixels must be one of {', '.join(_CHROMA)}, got {self._pixels!r}")
        width, height = options.size
        check_slice_shape(path.name, (height, width, 3))
        self._path, self._colour = path, bool(options.colour)
        if self._colour and self._pixels == "gray":
            raise StreamError(f"{path.name} has grey pixels only: leave colour out")
        across, down = _CHROMA[self._pixels] or (1, 1)
        chroma = 0 if self._pixels == "gray" else -(-width // across) * -(-height // down)
        self._planes = (width * height, chroma, chroma)
        frames, rest = divmod(path.stat().st_size, sum(self._planes))
        if options.follow is None and (rest or not frames):
            raise StreamError(
                f"{path.name} must hold complete frames of {sum(self._planes)} bytes, got {path.stat().st_size} bytes: "
                "check size and pixels, or the end of the file is missing"
            )
        shape, dims, labels = frame_modes(height, width, self._colour)
        super().__init__(path.name, shape, frames, dims, labels, follow=options.follow)

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return np.stack([self._frame(index) for index in range(start, stop)])

    def refresh(self) -> int:  # noqa: D102
        return self._path.stat().st_size // sum(self._planes)

    def _frame(self, index: int) -> NDArray[Any]:
        count = sum(self._planes) if self._colour else self._planes[0]
        values = np.fromfile(self._path, np.uint8, count, offset=index * sum(self._planes))
        if values.size != count:
            raise StreamError(f"{self.name} became shorter while it was read: write it again")
        return self._rgb(values) if self._colour else values.reshape(self.shape)

    def _rgb(self, values: NDArray[np.uint8]) -> NDArray[Any]:
        av = import_extra("av", "video", "A raw video in colour")
        frame = av.VideoFrame(self.shape[1], self.shape[0], self._pixels)
        for plane, part in zip(frame.planes, np.split(values, np.cumsum(self._planes)[:-1]), strict=True):
            padded = np.zeros((plane.height, plane.line_size), np.uint8)
            padded[:, : plane.width] = part.reshape(plane.height, plane.width)
            plane.update(padded.tobytes()[: plane.buffer_size])
        return np.asarray(frame.to_ndarray(format="rgb24"))
