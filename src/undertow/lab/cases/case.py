"""A case: one data set under one condition, from one seed; what methods see, and what they are scored by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.recordings.files import Folder

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """How much of a stream is shown and how much of it is corrupted.

    Attributes:
        observed: fraction of the entries shown in every slice.
        outliers: fraction of the entries corrupted in every slice, hidden ones included.
        magnitude: what an outlier adds, in units of the largest value; None for the data set's own choice.
    """

    observed: float = 1.0
    outliers: float = 0.0
    magnitude: float | None = None

    @property
    def name(self) -> str:
        """For rows of tables."""
        shown = f"{self.observed:.0%}".replace("%", " %")
        times = "" if self.magnitude is None else f" × {self.magnitude:g}"
        return shown + (f", {100 * self.outliers:g} % outliers{times}" if self.outliers else ", clean")


@dataclass(frozen=True)
class Size:
    """How much of a data set is used.

    Attributes:
        slices: how many, from its start.
        burn_in: how many of them are not scored.
        stride: every n-th row and column of a picture.
        crop: then only the middle n rows and columns, and generated slices no longer than that; None for all.
    """

    slices: int = 100
    burn_in: int = 20
    stride: int = 1
    crop: int | None = None


@dataclass(frozen=True, eq=False)
class Data:
    """The arrays of a case, T slices. Arrays are (T, *shape).

    Attributes:
        values: what a method sees, NaN where hidden or never recorded.
        truth: what it should find: the low rank of a generated stream, a recording before it was corrupted; NaN where
            that is not known.
        clean: a new observation without corruption: truth and noise. What predictive intervals should hold.
        corrupted: True where an outlier was put or is known to be; None where nothing is known.
        burn_in: slices at the start that are not scored.
        known_truth: the truth is not what was shown: the error on shown entries means something.
        pictures: slices are pictures (or volumes): PSNR and SSIM make sense.
        foreground_frames: slices whose foreground is known.
        foreground: their masks.
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
    def decided_by(self) -> str:
        """The score that decides: error on hidden entries; without any, on all entries if the truth was not shown.

        A complete, clean recording leaves only the prediction of each slice before it is seen: repeating what was
        shown would be without error, and mean nothing.
        """
        if bool(self.hidden[self.burn_in :].any()):
            return "hidden_error"
        return "all_error" if self.known_truth else "prediction_error"

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Case:
    """One data set under one condition, from one seed. Its data are made when they are first asked for.

    Attributes:
        dataset: where the slices come from.
        condition: what is shown and what is corrupted.
        seed: of every random draw.
        size: how much of the data set.
        folder: of the data files, where the data set is a recording.
    """

    dataset: Dataset
    condition: Condition
    seed: int
    size: Size
    folder: Folder = None

    @cached_property
    def data(self) -> Data:
        """The arrays."""
        return self.dataset.make(self.condition, self.seed, self.size, self.folder)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that makes this case another than the others, for the key of a result."""
        return {
            "dataset": self.dataset.name,
            "condition": asdict(self.condition),
            "seed": self.seed,
            "size": asdict(self.size),
        }


Make = Callable[[Condition, int, Size, Folder], Data]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A source of cases.

    Attributes:
        name: its key.
        title: for people.
        rank: offered to every baseline: the true one where there is one.
        make: (condition, seed, size, folder) → data.
        conditions: rows of the scoreboard; none: not part of it.
        full: how much of it the scoreboard uses.
        quick: how much of it `--quick` uses.
        in_quick: conditions of `--quick`; none: left out there.
        period: season, for methods that want one.
        recorded: real data, needs a file.
    """

    name: str
    title: str
    rank: int
    make: Make
    conditions: tuple[Condition, ...] = ()
    full: Size = Size()
    quick: Size = Size(slices=40, burn_in=15)
    in_quick: tuple[Condition, ...] = ()
    period: int | None = None
    recorded: bool = False

    def case(
        self,
        condition: Condition = Condition(),  # noqa: B008 - frozen
        seed: int = 0,
        quick: bool = False,
        folder: Folder = None,
        **size: Any,
    ) -> Case:
        """A case of this data set; `size` replaces parts of its size.

        Example:
            >>> from undertow.lab.cases import DATASETS, Condition
            >>> DATASETS["drifting"].case(Condition(observed=0.15), seed=1, slices=30).data.values.shape
            (30, 40, 40)
        """
        return Case(self, condition, seed, replace(self.quick if quick else self.full, **size), folder)
