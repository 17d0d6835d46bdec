"""Video files through PyAV: frames as grey values (rows, columns) or as colours (rows, columns, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from undertow.sources.base import JSON, StreamError
from undertow.sources.errors import check_slice_shape, optional
from undertow.sources.formats.base import Raw, Source, first_bytes, integer
from undertow.sources.formats.images import COLOURS
from undertow.sources.options import Options


class VideoFile(Source):
    """Decoded frame by frame. A position holds the time stamp of its frame, so that resuming can jump near it."""

    format = "video"

    def __init__(self, path: Path, options: Options) -> None:
        self._path, self._colour = path, bool(options.colour)
        with self._opened() as container:
            stream = _first_video(container, path.name)
            height, width = int(stream.codec_context.height), int(stream.codec_context.width)
            count = int(stream.frames)
        if height < 1 or width < 1:
            raise StreamError(f"{path.name} does not say how large its frames are: it may be damaged")
        shape = (height, width, 3) if self._colour else (height, width)
        dims = ("row", "column", "colour")[: len(shape)]
        super().__init__(path.name, shape, dims, (None, None, COLOURS) if self._colour else None)
        self.length = count if count > 0 else None

    def read(self, position: Mapping[str, JSON] | None) -> Iterator[Raw]:  # noqa: D102
        done, stamp = integer(self.name, position, "frame"), None if position is None else position.get("stamp")
        if isinstance(stamp, int) and self._can_jump(stamp):
            frames, last, ordered = self._after_stamp(stamp), stamp, True
        else:
            frames, last, ordered = self._after_count(done), None, done == 0
        for frame in frames:
            done += 1
            ordered = ordered and frame.pts is not None and (last is None or frame.pts > last)
            last = frame.pts
            seconds = None if frame.pts is None or frame.time_base is None else float(frame.pts * frame.time_base)
            # Without stamps in order there is no finding a frame again but by counting from the start.
            after: dict[str, JSON] = {"frame": done, "stamp": last if ordered else None}
            yield Raw(seconds, after, partial(self._array, frame))

    def identity(self) -> str:  # noqa: D102
        return first_bytes(self._path, 2**16)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        av = optional("av", "video", "A video file")
        # The library gets bytes, not a name, and may open nothing by itself: a playlist must not lead it elsewhere.
        with (
            self._path.open("rb") as file,
            av.open(file, "r", options={"protocol_whitelist": "none"}, metadata_errors="replace") as container,
        ):
            yield container

    def _after_count(self, count: int) -> Iterator[Any]:
        with self._opened() as container:
            for number, frame in enumerate(container.decode(_first_video(container, self.name))):
                if number >= count:
                    yield frame

    def _can_jump(self, stamp: int) -> bool:
        """Whether a jump lands on or before the frame of this stamp; not every format can, and some land behind it."""
        try:
            with self._opened() as container:
                first = next(self._jumped(container, stamp), None)
        except Exception:
            return False
        return first is not None and first.pts is not None and bool(first.pts <= stamp)

    def _jumped(self, container: Any, stamp: int) -> Iterator[Any]:
        stream = _first_video(container, self.name)
        container.seek(stamp, stream=stream, backward=True)
        frames: Iterator[Any] = container.decode(stream)
        return frames

    def _after_stamp(self, stamp: int) -> Iterator[Any]:
        with self._opened() as container:
            for frame in self._jumped(container, stamp):
                if frame.pts is None or frame.pts > stamp:
                    yield frame

    def _array(self, frame: Any) -> Any:
        check_slice_shape(self.name, (frame.height, frame.width))
        return frame.to_ndarray(format="rgb24" if self._colour else "gray")


def _first_video(container: Any, name: str) -> Any:
    if not container.streams.video:
        raise StreamError(f"{name} holds no video: name another file")
    return container.streams.video[0]


def open_video(path: Path, options: Options) -> VideoFile:
    """A video file of any kind that PyAV reads."""
    return VideoFile(path, options)
