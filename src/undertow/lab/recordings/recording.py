"""A recorded stream: real data, with no truth beyond what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Recording:
    """A real stream of T slices.

    values    (T, *shape), NaN where nothing was recorded
    citation  whom to cite
    labels    names of the indices of a mode, by the mode's name; empty where there are none
    period    slices of the natural season, or None
    """

    values: NDArray[np.float64]
    citation: str
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    period: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one slice."""
        return tuple(self.values.shape[1:])

    def __len__(self) -> int:
        return len(self.values)
