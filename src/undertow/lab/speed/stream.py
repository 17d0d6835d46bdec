"""The slices of a case, and the truth that errors are measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab import metrics
from undertow.lab.recordings import airport
from undertow.lab.recordings.files import Folder
from undertow.lab.synthetic.ingredients import draw_mask
from undertow.lab.synthetic.streams import drifting

if TYPE_CHECKING:
    from undertow.lab.speed.case import Case

Floats = NDArray[np.float64]

_PACE = 100  # slices in which the factors of a generated stream drift from one draw to another


@dataclass(frozen=True, eq=False)
class Stream:
    """So many slices, the same for every method.

    values  (T, *shape), NaN where nothing is shown
    truth   (T, *shape), what the low rank is compared with
    judged  (T, *shape), where it is compared
    """

    values: Floats
    truth: Floats
    judged: NDArray[np.bool_]

    def error(self, low_rank: NDArray[Any], t: int) -> float:
        """‖low rank − truth‖ / ‖truth‖ of slice t, where it is judged."""
        return metrics.relative_error(low_rank, self.truth[t], self.judged[t])


def generated(case: Case, slices: int, folder: Folder = None) -> Stream:
    """Drifting factors, at the same pace however short the stream is; the low rank itself is the truth."""
    made = drifting(
        case.shape,
        case.rank,
        slices=slices,
        observed=case.observed,
        outlier_fraction=case.outliers,
        drift=min(slices / _PACE, 1.0),
    )
    return Stream(made.values, made.low_rank, np.ones(made.values.shape, dtype=bool))


def airport_video(case: Case, slices: int, folder: Folder = None) -> Stream:
    """Frames of the airport hall; judged by the pixels that were hidden."""
    frames = airport.load(folder).values[:slices]
    shown = draw_mask(frames.shape, case.observed, "random", np.random.default_rng(0))
    return Stream(np.where(shown, frames, np.nan), frames, ~shown)
