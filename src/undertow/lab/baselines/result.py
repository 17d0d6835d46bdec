"""What a baseline reports about one slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class BaselineResult:
    """One slice as a baseline sees it. Every array has the shape of the slice and belongs to the caller.

    low_rank       the whole slice as the method explains it, missing entries filled in
    prediction     this slice as predicted before anything was learned from it; None where nothing was known yet.
                   Methods without a model of time hold their last temporal row, so they predict their last slice.
    outliers       the sparse part, zero where nothing is an outlier; None for methods without one
    outlier_score  larger = more outlying, zero where nothing was observed; fit for average precision
    rank           components in use; None for methods without components
    status         "ok", "initialising" (the method still gathers its first slices: low_rank is then the data, missing
                   entries at their mean), "no data" (nothing observed: the state did not learn), "rank 0", "diverged"
                   (not a finite number any more: low_rank is zero, the state is kept as it was, or starts
                   gathering afresh where the slices gathered so far cannot be factorised)
    """

    low_rank: Array
    prediction: Array | None
    outliers: Array | None
    outlier_score: Array | None
    rank: int | None
    status: str
