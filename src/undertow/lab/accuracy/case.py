"""A case: a stream as methods may see it, and everything that they are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from undertow.lab.synthetic.ingredients import SyntheticStream, draw_mask, place_outliers

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Yardstick = Literal["hidden", "all", "prediction"]


@dataclass(frozen=True)
class Condition:
    """How much of a stream is shown and how much of it is corrupted.

    observed  share of the entries shown in every slice
    outliers  share of the entries corrupted in every slice, hidden ones included
    """

    observed: float = 1.0
    outliers: float = 0.0

    @property
    def name(self) -> str:
        """For rows of tables."""
        shown = f"{self.observed:.0%}".replace("%", " %")
        return shown + (f", {100 * self.outliers:g} % outliers" if self.outliers else ", clean")


@dataclass(frozen=True)
class Case:
    """One stream of T slices under one condition. Arrays are (T, *shape).

    values             what a method sees, NaN where hidden or never recorded
    truth              what it should find: the low rank of a generated stream, a recording before it was corrupted;
                       NaN where that is not known
    clean              a new observation without corruption: truth and noise. What predictive intervals should hold
    corrupted          True where an outlier was put or is known to be; None where nothing is known
    burn_in            slices at the start that are not judged
    known_truth        the truth is not what was shown: the error on shown entries means something
    pictures           slices are pictures (or volumes): PSNR and SSIM make sense
    foreground_frames  slices whose foreground is known
    foreground         their masks
    """

    values: Floats
    truth: Floats
    clean: Floats
    corrupted: Bools | None
    burn_in: int
    known_truth: bool
    pictures: bool = False
    foreground_frames: tuple[int, ...] = ()
    foreground: Bools | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one slice."""
        return tuple(self.values.shape[1:])

    @property
    def shown(self) -> Bools:
        """True where a method sees something."""
        return ~np.isnan(self.values)

    @property
    def known(self) -> Bools:
        """True where the truth is known."""
        return ~np.isnan(self.truth)

    @property
    def hidden(self) -> Bools:
        """True where the truth is known and nothing was shown."""
        return self.known & ~self.shown

    @property
    def yardstick(self) -> Yardstick:
        """What decides: hidden entries; without any, all entries against a truth that was not shown.

        A complete, clean recording leaves only the prediction of each slice before it is seen: repeating what was
        shown would be without error, and mean nothing.
        """
        if bool(self.hidden[self.burn_in :].any()):
            return "hidden"
        return "all" if self.known_truth else "prediction"

    def __len__(self) -> int:
        return len(self.values)


def from_synthetic(stream: SyntheticStream, burn_in: int) -> Case:
    """A generated stream: its low rank is the truth."""
    noise_and_truth = np.where(stream.outlier_mask, stream.low_rank, stream.complete)
    corrupted = stream.outlier_mask if stream.outlier_mask.any() else None
    return Case(stream.values, stream.low_rank, noise_and_truth, corrupted, burn_in, known_truth=True)


def from_recording(
    recorded: Floats,
    condition: Condition,
    seed: int,
    burn_in: int,
    *,
    faults: Bools | None = None,
    pictures: bool = False,
    foreground_frames: tuple[int, ...] = (),
    foreground: Bools | None = None,
) -> Case:
    """A recording, some of it hidden at random, some of it corrupted: the recording itself is the truth.

    An injected outlier adds or takes away the 99 % quantile of the recording's size: as large as its large values.
    Known faults stay in what is shown, but nobody is asked to reproduce them: there the truth is unknown.
    """
    draws = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)]
    mask = draw_mask(recorded.shape, condition.observed, "random", draws[0])
    where, signs = place_outliers(recorded.shape, condition.outliers, "random", draws[1])
    size = float(np.nanquantile(np.abs(recorded), 0.99))
    truth = recorded if faults is None else np.where(faults, np.nan, recorded)
    corrupted = where if faults is None else where | faults
    return Case(
        values=np.where(mask, recorded + size * signs, np.nan),
        truth=truth,
        clean=truth,
        corrupted=corrupted if corrupted.any() else None,
        burn_in=burn_in,
        known_truth=condition.outliers > 0,
        pictures=pictures,
        foreground_frames=foreground_frames,
        foreground=foreground,
    )
