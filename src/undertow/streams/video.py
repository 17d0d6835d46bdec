"""Video files through PyAV: frames as grey values (rows, columns) or as colours (rows, columns, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from undertow.streams.images import COLOURS
from undertow.streams.options import Options
from undertow.streams.source import Raw, Source, first_bytes, integer
from undertow.streams.stream import JSON, StreamError
from undertow.streams.trouble import check_slice_shape, optional


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
        if isinstance(stamp, int) and (frames := self._from_stamp(stamp)) is not None:
            ordered = True
        else:
            frames, ordered = self._from_start(done), done == 0
        last = stamp if isinstance(stamp, int) else None
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

    def _opened(self) -> Any:
        av = optional("av", "video", "A video file")
        # Only this file: playlists and the like must not make the library open anything else.
        return av.open(
            f"file:{self._path}", mode="r", options={"protocol_whitelist": "file"}, metadata_errors="replace"
        )

    def _from_start(self, skip: int) -> Iterator[Any]:
        with self._opened() as container:
            for number, frame in enumerate(container.decode(_first_video(container, self.name))):
                if number >= skip:
                    yield frame

    def _from_stamp(self, stamp: int) -> Iterator[Any] | None:
        """Frames after the one of this stamp, from the nearest key frame before it; None if that cannot be found."""
        container = self._opened()
        try:
            stream = _first_video(container, self.name)
            container.seek(stamp, stream=stream, backward=True)
            first = next(container.decode(stream), None)
        except Exception:  # not every format can jump
            first = None
        if first is None or first.pts is None or first.pts > stamp:
            container.close()
            return None
        return self._after_stamp(container, stream, stamp)

    def _after_stamp(self, container: Any, stream: Any, stamp: int) -> Iterator[Any]:
        with container:
            for frame in container.decode(stream):
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
