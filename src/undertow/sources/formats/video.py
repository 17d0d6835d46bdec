"""Video files through PyAV: frames as grey values (rows, columns) or as colours (rows, columns, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import check_slice_shape, import_extra
from undertow.sources.formats.base import Raw, Source, count_in, frame_modes
from undertow.sources.options import SourceOptions, first_bytes

LOOKED_AT = 25
"""Frames in which colours are looked for."""
COLOURFUL, PATCH = 12, 0.002
"""Difference of red, green and blue that shows, and the part of a frame that must have it: codecs tint grey a bit."""


class VideoFile(Source):
    """Decoded frame by frame. A position holds the time stamp of its frame, so that resuming can seek near it."""

    format = "video"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path, self.name = path, path.name
        with self._opened() as (_, stream):
            height, width, count = stream.codec_context.height, stream.codec_context.width, int(stream.frames)
        if height < 1 or width < 1:
            raise StreamError(f"{path.name} has no size of its frames in its header: it may be damaged")
        self._colour = self._has_colours() if options.colour is None else options.colour
        super().__init__(path.name, *frame_modes(int(height), int(width), self._colour))
        self.length = count if count > 0 else None

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        done, stamp = count_in(position, "frame", self.name), None if position is None else position.get("stamp")
        if isinstance(stamp, int) and self._can_seek(stamp):
            frames: Iterator[Any] = (frame for frame in self._decoded(stamp) if frame.pts is None or frame.pts > stamp)
            last, ordered = stamp, True
        else:
            frames, last, ordered = islice(self._decoded(), done, None), None, done == 0
        for frame in frames:
            done += 1
            ordered = ordered and frame.pts is not None and (last is None or frame.pts > last)
            last = frame.pts
            seconds = None if frame.pts is None or frame.time_base is None else float(frame.pts * frame.time_base)
            # Without stamps in order, a frame is found again only by counting from the start.
            after: dict[str, JSON] = {"frame": done, "stamp": last if ordered else None}
            yield Raw(seconds, after, partial(self._array, frame))

    def identity(self) -> str:  # noqa: D102
        return first_bytes(self._path, 2**16)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        """The container and its first video stream."""
        av = import_extra("av", "video", "A video file")
        # The library gets bytes, not a name, and may open nothing itself: a playlist must not lead it to other files.
        with (
            self._path.open("rb") as file,
            av.open(file, "r", options={"protocol_whitelist": "none"}, metadata_errors="replace") as container,
        ):
            if not container.streams.video:
                raise StreamError(f"{self.name} holds no video: name another file")
            yield container, container.streams.video[0]

    def _decoded(self, stamp: int | None = None) -> Iterator[Any]:
        """All frames, or those from the key frame that seeking to a time stamp finds."""
        with self._opened() as (container, stream):
            if stamp is not None:
                container.seek(stamp, stream=stream, backward=True)
            yield from container.decode(stream)

    def _has_colours(self) -> bool:
        """Whether one of the first frames has; damage is reported where frames are read."""
        try:
            frames = islice(self._decoded(), LOOKED_AT)
            return any((np.ptp(_rgb(frame), axis=-1) > COLOURFUL).mean() > PATCH for frame in frames)
        except Exception:
            return False

    def _can_seek(self, stamp: int) -> bool:
        """Whether seeking finds a frame at or before this stamp; not every format can, and some land after it."""
        try:
            first = next(self._decoded(stamp), None)
        except Exception:
            return False
        return first is not None and first.pts is not None and bool(first.pts <= stamp)

    def _array(self, frame: Any) -> Any:
        check_slice_shape(self.name, (frame.height, frame.width))
        return _rgb(frame) if self._colour else frame.to_ndarray(format="gray")


def _rgb(frame: Any) -> Any:
    return frame.to_ndarray(format="rgb24")
