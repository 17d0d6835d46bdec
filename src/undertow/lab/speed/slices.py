"""The slices of a workload, and the truth that errors are measured by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.inputs.sparse import Entries
from undertow.lab import metrics
from undertow.lab.recordings import airport
from undertow.lab.recordings.files import Folder
from undertow.lab.synthetic.ingredients import draw_mask
from undertow.lab.synthetic.streams import drifting

if TYPE_CHECKING:
    from undertow.lab.speed.workload import Workload

Floats = NDArray[np.floating[Any]]

_PACE = 100  # slices in which the factors of a generated stream drift from one draw to another
_NOISE, _OUTLIER = 0.1, 10.0  # of sparse slices, over the size of the low rank


@dataclass(frozen=True, eq=False)
class Slices:
    """T slices, the same for every method.

    Attributes:
        values: what is shown: (T, *shape) with NaN for gaps, or T lists of entries.
        truth: what the low rank is compared with, slice by slice.
        where: entries that are compared; None for all.
    """

    values: Any
    truth: Sequence[Floats]
    where: Sequence[NDArray[np.bool_]] | None = None

    def error(self, low_rank: Floats, t: int) -> float:
        """‖low rank − truth‖ / ‖truth‖ of slice t."""
        return metrics.relative_error(low_rank, self.truth[t], None if self.where is None else self.where[t])


def generated(workload: Workload, slices: int, folder: Folder = None) -> Slices:
    """Drifting factors, at the same pace however short the stream is; the low rank itself is the truth."""
    made = drifting(
        workload.shape,
        workload.rank,
        slices=slices,
        observed=workload.observed,
        outlier_fraction=workload.outliers,
        drift=min(slices / _PACE, 1.0),
    )
    return Slices(made.values, list(made.low_rank))


def airport_video(workload: Workload, slices: int, folder: Folder = None) -> Slices:
    """Frames of the airport hall, compared at the pixels that were hidden."""
    frames = airport.load(folder).values[:slices]
    shown = draw_mask(frames.shape, workload.observed, "random", np.random.default_rng(0))
    return Slices(np.where(shown, frames, np.nan), list(frames), list(~shown))


def scattered(workload: Workload, slices: int, folder: Folder = None) -> Slices:
    """A fixed low rank, seen at entries drawn anew for every slice, with noise and outliers; never made whole."""
    rng = np.random.default_rng(0)
    shape, rank = workload.shape, workload.rank
    factors = [rng.normal(size=(size, rank)) for size in shape]
    count = max(round(workload.observed * math.prod(shape)), rank)
    shown, clean = [], []
    for _ in range(slices):
        flat = np.unique(rng.integers(math.prod(shape), size=count))
        indices = np.unravel_index(flat, shape)
        product = rng.normal(1, 0.3, rank)
        for factor, index in zip(factors, indices, strict=True):
            product = product * factor[index]
        truth = product.sum(axis=1)
        size = truth.std() or 1.0
        outlying = rng.random(flat.size) < workload.outliers
        noise = rng.normal(size=flat.size) * size * np.where(outlying, _OUTLIER, _NOISE)
        shown.append(Entries(indices, truth + noise, shape))
        clean.append(truth)
    return Slices(shown, clean)
