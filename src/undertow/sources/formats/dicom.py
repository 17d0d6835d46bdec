"""DICOM: a folder that holds one series, one image a file, or one file with many frames."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.sources.base import StreamError
from undertow.sources.errors import check_slice_shape, import_extra, one_sentence, shortened
from undertow.sources.formats.base import FRAME_DIMS, Indexed
from undertow.sources.options import SourceOptions

_ORDER = ("TemporalPositionIdentifier", "AcquisitionNumber", "AcquisitionTime", "TriggerTime", "InstanceNumber")
_TAGS = (
    *_ORDER, "SeriesInstanceUID", "ImagePositionPatient", "ImageOrientationPatient", "SliceLocation",
    "Rows", "Columns", "NumberOfFrames", "SamplesPerPixel", "BitsAllocated",
)  # fmt: skip


@dataclass(frozen=True)
class Image:
    """One file of a series: its location along the axis of the body, and what orders it in time."""

    path: Path
    series: str
    location: float
    order: tuple[float, ...]
    shape: tuple[int, ...]


class DicomSeries(Indexed):
    """Images over time; volumes over time if there are several locations; a volume's images if there is one time."""

    format = "dicom"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        images = _one_series([_read_header(file) for file in dicom_files(path)], path.name, options.variable)
        self._frames = _frames(images, path.name)
        first = self._frames[0][0]
        if any(image.shape != first.shape for frame in self._frames for image in frame):
            raise StreamError(f"{path.name} holds images of several sizes: keep those of one size")
        depth = len(self._frames[0])
        shape = (*first.shape, depth) if depth > 1 else first.shape
        dims = FRAME_DIMS[: len(first.shape)] + (("slice",) if depth > 1 else ())
        super().__init__(path.name, shape, len(self._frames), dims)
        self.times = _times([frame[0] for frame in self._frames])

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return np.stack([self._volume(frame) for frame in self._frames[start:stop]])

    def identity(self) -> str:  # noqa: D102
        return hashlib.sha256(self._frames[0][0].path.name.encode() + self.at(0).tobytes()).hexdigest()

    def _volume(self, frame: Sequence[Image]) -> NDArray[Any]:
        layers = [_pixels(image.path, None) for image in frame]
        return layers[0] if len(layers) == 1 else np.stack(layers, axis=-1)


class DicomFrames(Indexed):
    """One file with many frames."""

    format = "dicom"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        header = _header(path, (*_TAGS, "FrameTime"))
        count = int(header.get("NumberOfFrames") or 1)
        shape = _shape(header, path.name)
        super().__init__(path.name, shape, count, FRAME_DIMS[: len(shape)])
        size = int(np.prod(shape)) * int(header.get("BitsAllocated") or 8) // 8
        if not header.file_meta.TransferSyntaxUID.is_compressed and size * count > path.stat().st_size:
            raise StreamError(f"{path.name} claims {count} frames of {size} bytes, more than it holds: it is damaged")
        step = _number(header.get("FrameTime"))
        self.times = np.arange(count) * (step / 1000) if step > 0 else None
        self._path = path

    def read_block(self, start: int, stop: int) -> NDArray[Any]:  # noqa: D102
        return np.stack([_pixels(self._path, index) for index in range(start, stop)])


def dicom_files(path: Path) -> list[Path]:
    """The DICOM files of a folder: by suffix, or by their magic number where there is none."""
    return sorted(file for file in path.iterdir() if file.is_file() and _is_dicom(file))


def _is_dicom(file: Path) -> bool:
    if file.suffix.lower() in (".dcm", ".ima", ".dicom"):
        return True
    if file.suffix and not file.suffix[1:].isdigit():
        return False
    with file.open("rb") as opened:
        return opened.read(132)[128:] == b"DICM"


def _header(path: Path, tags: Sequence[str]) -> Any:
    pydicom = import_extra("pydicom", "mri", "A DICOM file")
    with one_sentence(f"{path.name} could not be read", "check that it is a complete DICOM file"):
        return pydicom.dcmread(path, stop_before_pixels=True, specific_tags=list(tags))


def _shape(header: Any, name: str) -> tuple[int, ...]:
    samples = int(header.get("SamplesPerPixel") or 1)
    rows, columns = int(header.get("Rows") or 0), int(header.get("Columns") or 0)
    shape = (rows, columns) if samples == 1 else (rows, columns, samples)
    check_slice_shape(name, shape)
    return shape


def _read_header(path: Path) -> Image:
    header = _header(path, _TAGS)
    with one_sentence(f"{path.name} could not be read", "check that it is a complete DICOM file"):
        if int(header.get("NumberOfFrames") or 1) > 1:
            raise StreamError(f"{path.name} holds many frames in one file: name the file instead of its folder")
        order = tuple(_number(header.get(key)) for key in _ORDER)
        return Image(
            path, str(header.get("SeriesInstanceUID", "")), _location(header), order, _shape(header, path.name)
        )


def _location(header: Any) -> float:
    """How far along the axis of the body: the position projected on the normal of the image."""
    position, orientation = header.get("ImagePositionPatient"), header.get("ImageOrientationPatient")
    if position is not None and orientation is not None and len(position) == 3 and len(orientation) == 6:
        across, down = np.array(orientation, float).reshape(2, 3)
        return round(float(np.cross(across, down) @ np.array(position, float)), 3)
    return round(_number(header.get("SliceLocation")), 3)


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if np.isfinite(number) else 0.0


def _one_series(images: list[Image], name: str, wanted: str | None) -> list[Image]:
    series = sorted({image.series for image in images})
    if not images:
        raise StreamError(f"{name} holds no DICOM files: name another folder")
    if wanted is None and len(series) > 1:
        raise StreamError(f"{name} holds several series, {shortened(series)}: name one of them with variable=…")
    if wanted is not None and wanted not in series:
        raise StreamError(f"{name} holds no series {wanted!r}: it holds {shortened(series)}")
    return [image for image in images if wanted is None or image.series == wanted]


def _frames(images: list[Image], name: str) -> list[list[Image]]:
    """Per time step the images from one end of the body to the other."""
    by_location: dict[float, list[Image]] = defaultdict(list)
    for image in sorted(images, key=lambda image: (image.order, image.path.name)):
        by_location[image.location].append(image)
    stacks = [by_location[location] for location in sorted(by_location)]
    counts = {len(stack) for stack in stacks}
    if len(counts) > 1:
        raise StreamError(
            f"{name} holds {min(counts)} to {max(counts)} images per location: keep the files of a complete series only"
        )
    if counts == {1}:
        return stacks  # one volume, or one image: its locations are the stream
    return [list(frame) for frame in zip(*stacks, strict=True)]


def _times(firsts: list[Image]) -> NDArray[Any] | None:
    """Seconds from the trigger or of the day, whichever increases from slice to slice."""
    triggers = np.array([image.order[3] for image in firsts]) / 1000
    clock = np.array([_seconds_of_day(image.order[2]) for image in firsts])
    return next((times for times in (triggers, clock) if len(times) > 1 and (np.diff(times) > 0).all()), None)


def _seconds_of_day(clock: float) -> float:
    """DICOM writes half past one as 133000."""
    return (clock // 10000) * 3600 + (clock // 100 % 100) * 60 + clock % 100


def _pixels(path: Path, index: int | None) -> NDArray[Any]:
    pixels = import_extra("pydicom.pixels", "mri", "A DICOM file")
    with one_sentence(f"{path.name} could not be read", "check that it is complete, or decompress it first"):
        array = np.asarray(pixels.pixel_array(path, index=index, raw=True))
        header = _header(path, ("RescaleSlope", "RescaleIntercept"))
        slope, intercept = header.get("RescaleSlope"), header.get("RescaleIntercept")
        if slope is None and intercept is None:
            return array
        return array * float(1 if slope is None else slope) + float(intercept or 0)


def open_dicom(path: Path, options: SourceOptions) -> Indexed:
    """A folder with a series (``variable`` names one of several), or one file with many frames."""
    return DicomSeries(path, options) if path.is_dir() else DicomFrames(path, options)
