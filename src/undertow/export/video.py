"""Video: original | background | outliers, side by side; or masks of what is flagged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.runs.errors import StoreError
from undertow.runs.store.masks import filled
from undertow.runs.store.reader import StoredRun

SUFFIXES = (".mp4", ".mkv", ".avi", ".mov")
_CODECS = ("libx264", "mpeg4")  # the first that this build of FFmpeg has
_SMALLEST = 240  # pixels: smaller frames are enlarged, to be visible
_LARGEST = 8192
_SAMPLED = 16  # slices that determine the grey scale


MASK = "mask"


def write_video(
    run: StoredRun, path: Path, frames_per_second: float, tick: Callable[[int], None], mask: bool = False
) -> None:
    """Slices of two modes as grey pictures, of two modes and three colours as colours, of others their middle plane.

    Args:
        run: The store.
        path: Of the video.
        frames_per_second: Of the video.
        tick: Called with the number of slices written so far.
        mask: White where something is flagged, gaps filled, black elsewhere, instead of the three panels.
    """
    try:
        import av
    except ModuleNotFoundError:
        raise StoreError("video needs av: pip install 'undertow[video]'") from None
    mean = run.mean_name
    if mask and "outlier_probability" not in run.kept:
        raise StoreError(f"{run.folder} lacks outlier_probability: run again with --keep outlier_probability")
    if not mask and (mean is None or "outliers" not in run.kept):
        raise StoreError(f"{run.folder} lacks mean or outliers: run again with --keep mean,outliers,data")
    if len(run.shape) < 2:
        raise StoreError(f"{run.folder} has slices with one mode, which make no picture: export to .csv or .nc")
    if not 0 < frames_per_second <= 1000:
        raise StoreError(f"frames per second must be above 0 and at most 1000, got {frames_per_second}")
    names = ["outlier_probability"] if mask else [one for one in ("data", mean, "outliers") if one in run.kept]
    low, high = (0.0, 1.0) if mask else grey_scale(run, "data" if "data" in run.kept else str(mean))
    with av.open(str(path), "w") as container:
        stream: Any = None
        for start, arrays in run.blocks(names):
            for offset in range(len(arrays[names[0]])):
                found = {"mean" if name == mean else name: arrays[name][offset] for name in names}
                picture = masked(found[names[0]], run.threshold) if mask else side_by_side(found, low, high)
                if stream is None:
                    stream = _stream(container, picture.shape, frames_per_second)
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                container.mux(stream.encode(frame))
            tick(start + len(arrays[names[0]]))
        if stream is not None:
            container.mux(stream.encode())


def encoded(pictures: NDArray[np.uint8], path: Path, frames_per_second: float) -> None:
    """Pictures (T, rows, columns, 3), of even size, as a video file."""
    import av

    with av.open(str(path), "w") as container:
        stream = _stream(container, pictures.shape[1:], frames_per_second)
        for picture in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def masked(probability: NDArray[Any], threshold: float) -> NDArray[np.uint8]:
    """White where one of the colours is flagged (rows, columns, 3); the last row and column twice to be even."""
    white = filled(_pixels(probability).max(axis=-1) >= threshold)
    pixels = np.where(white, 255, 0).astype(np.uint8)[:, :, None].repeat(3, axis=-1)
    return np.pad(pixels, [(0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)], "edge")


def grey_scale(run: StoredRun, name: str) -> tuple[float, float]:
    """Black and white: 0 and 255 if the values look like pixels, otherwise what nearly all of them lie between."""
    picks = np.unique(np.linspace(0, run.length - 1, min(_SAMPLED, run.length)).astype(int))
    sample = np.concatenate([run.slice(name, int(pick)).reshape(-1) for pick in picks])
    sample = sample[np.isfinite(sample)]
    if not sample.size:
        return 0.0, 1.0
    low, high = (float(edge) for edge in np.quantile(sample, [0.005, 0.995]))
    if low >= -1 and 2 < high <= 256:
        return 0.0, 255.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def side_by_side(arrays: dict[str, NDArray[Any]], low: float, high: float) -> NDArray[np.uint8]:
    """The three panels of one frame; what was not observed is black in the original."""
    background, outliers = _pixels(arrays["mean"]), _pixels(arrays["outliers"])
    original = _pixels(arrays["data"]) if "data" in arrays else background + outliers
    scale = 255 / (high - low)
    panels = [(original - low) * scale, (background - low) * scale, np.abs(outliers) * scale]
    height, width = background.shape[:2]
    factor = max(1, _SMALLEST // min(height, width))
    if 3 * width * factor > _LARGEST or height * factor > _LARGEST:
        factor = 1
    gap = np.full((height, 2, 3), 40.0)
    picture = np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=1)
    pixels = np.clip(np.nan_to_num(picture), 0, 255).astype(np.uint8)
    pixels = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
    return np.pad(pixels, [(0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)])  # even, for the codec


def _pixels(values: NDArray[Any]) -> NDArray[np.float64]:
    """(rows, columns, 3)."""
    values = np.asarray(values, np.float64)
    if values.ndim >= 3 and values.shape[-1] != 3:
        keep = sorted(sorted(range(values.ndim), key=lambda mode: -values.shape[mode])[:2])
        values = values[tuple(slice(None) if mode in keep else size // 2 for mode, size in enumerate(values.shape))]
    while values.ndim > 3:
        values = values[values.shape[0] // 2]
    return np.repeat(values[..., np.newaxis], 3, axis=-1) if values.ndim == 2 else values


def _stream(container: Any, shape: tuple[int, ...], frames_per_second: float) -> Any:
    import av

    codec = next((name for name in _CODECS if name in av.codecs_available), None)
    if codec is None:
        raise StoreError("this build of PyAV can encode neither H.264 nor MPEG-4: install another one of av")
    stream = container.add_stream(codec, rate=Fraction(frames_per_second).limit_denominator(1001))
    stream.height, stream.width = shape[:2]
    stream.pix_fmt = "yuv420p"
    if codec == "libx264":
        stream.options = {"crf": "18"}
    else:
        stream.bit_rate = 8_000_000
    return stream
