"""From streams to data: hide, corrupt, crop. What data sets are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.cases.case import Bools, Condition, Data, Floats, Make, Size
from undertow.lab.recordings.files import Folder
from undertow.lab.synthetic.ingredients import SyntheticStream, draw_mask, place_outliers


def from_synthetic(stream: SyntheticStream, burn_in: int) -> Data:
    """A generated stream: its low rank is the truth."""
    noise_and_truth = np.where(stream.outlier_mask, stream.low_rank, stream.complete)
    corrupted = stream.outlier_mask if stream.outlier_mask.any() else None
    return Data(stream.values, stream.low_rank, noise_and_truth, corrupted, burn_in, known_truth=True)


def from_recording(
    recorded: Floats, condition: Condition, seed: int, burn_in: int, *, faults: Bools | None = None, **more: Any
) -> Data:
    """A recording, some of it hidden at random, some of it corrupted: the recording itself is the truth.

    An injected outlier adds or takes away the 99 % quantile of the recording's size: as large as its large values.
    Known faults stay in what is shown, but are not scored: there the truth is unknown.

    Args:
        recorded: (T, *shape), NaN where nothing was recorded.
        condition: what is shown and what is corrupted.
        seed: of the mask and of the outliers, which are drawn independently.
        burn_in: slices that are not scored.
        faults: True where the recording is known to be wrong.
        more: further fields of `Data`.
    """
    draws = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]
    mask = draw_mask(recorded.shape, condition.observed, "random", draws[0])
    where, signs = place_outliers(recorded.shape, condition.outliers, "random", draws[1])
    size = float(np.nanquantile(np.abs(recorded), 0.99))
    truth = recorded if faults is None else np.where(faults, np.nan, recorded)
    corrupted = where if faults is None else where | faults
    values = np.where(mask, recorded + size * signs, np.nan)
    found = corrupted if corrupted.any() else None
    return Data(values, truth, truth, found, burn_in, known_truth=condition.outliers > 0, **more)


def synthetic(generate: Callable[..., SyntheticStream], shape: tuple[int, ...], rank: int) -> Make:
    """Streams of one of the generators."""

    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
        stream = generate(
            shape if size.crop is None else tuple(min(side, size.crop) for side in shape),
            rank,
            slices=size.slices,
            observed=condition.observed,
            outlier_fraction=condition.outliers,
            seed=seed,
        )
        return from_synthetic(stream, size.burn_in)

    return make


def unfolded(make: Make) -> Make:
    """The same slices as matrices: first mode × all the others."""

    def flat(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
        whole = make(condition, seed, size, folder)
        shape = (len(whole), whole.shape[0], -1)
        values, truth, clean = (array.reshape(shape) for array in (whole.values, whole.truth, whole.clean))
        corrupted = None if whole.corrupted is None else whole.corrupted.reshape(shape)
        return Data(values, truth, clean, corrupted, whole.burn_in, whole.known_truth)

    return flat


def matrices(load: Callable[[Folder], Any]) -> Make:
    """A recording as it is; what its loader calls impossible is known to be wrong."""

    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
        recording = load(folder)
        faults = getattr(recording, "impossible", None)
        if faults is not None:
            faults = faults[: size.slices]
        return from_recording(recording.values[: size.slices], condition, seed, size.burn_in, faults=faults)

    return make


def film(load: Callable[[Folder], Any]) -> Make:
    """A recording of pictures, at every n-th pixel, cropped."""

    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
        recording = load(folder)
        frames, foreground = getattr(recording, "foreground_frames", np.zeros(0, int)), None
        if frames.size:
            scored = (frames >= size.burn_in) & (frames < size.slices)
            frames, foreground = frames[scored], cut(recording.foreground[scored], size)
        return from_recording(
            cut(recording.values[: size.slices], size),
            condition,
            seed,
            size.burn_in,
            pictures=True,
            foreground_frames=tuple(int(t) for t in frames),
            foreground=foreground,
        )

    return make


def raised(load: Callable[[Folder], Any]) -> Make:
    """A recording with some entries raised by a multiple of its largest value: one-sided, and far off."""

    def make(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
        draw = np.random.default_rng(seed)
        truth = load(folder).values[: size.slices]
        shown = draw.random(truth.shape) >= round(1 - condition.observed, 12)
        bad = draw.random(truth.shape) < condition.outliers
        values = np.where(shown, truth + bad * (condition.magnitude or 1.0) * truth.max(), np.nan)
        return Data(values, truth, truth, bad, size.burn_in, known_truth=True)

    return make


def cut(pictures: NDArray[Any], size: Size) -> NDArray[Any]:
    """Pictures (T, rows, columns, …) at every stride-th pixel, then their middle."""
    coarse = pictures[:, :: size.stride, :: size.stride]
    if size.crop is None:
        return np.ascontiguousarray(coarse)
    rows, columns = (max(0, (length - size.crop) // 2) for length in coarse.shape[1:3])
    return np.ascontiguousarray(coarse[:, rows : rows + size.crop, columns : columns + size.crop])
