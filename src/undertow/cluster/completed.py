"""What comes out of a shard: slices that were learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow.cluster.places import Labels
from undertow.incidents import Change


@dataclass(frozen=True, eq=False)
class Completed:
    """Slices that were learned, and what is said about them; one row each.

    Attributes:
        stream: Names (k,).
        time: (k,).
        values: As they came, NaN where missing (k, entries).
        mean: (k, entries).
        std: (k, entries).
        outlier_probability: (k, entries).
        status: Codes of what was noticed.
        incidents: What changed.
        labels: At all places, by mode, where labels come and go; else none.
    """

    stream: NDArray[np.str_]
    time: NDArray[np.int64]
    values: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    outlier_probability: NDArray[np.float64]
    status: list[tuple[str, ...]]
    incidents: list[list[Change]]
    labels: list[Labels]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def together(cls, parts: Sequence[Completed], entries: int) -> Self:
        """Those of several, or none, of slices with this many entries."""
        none = np.zeros((0, entries))
        empty = cls(np.zeros(0, np.str_), np.zeros(0, np.int64), none, none, none, none, [], [], [])

        def joined(name: str) -> Any:
            found = [getattr(part, name) for part in (empty, *parts)]
            return list(chain(*found)) if isinstance(found[0], list) else np.concatenate(found)

        return cls(**{field.name: joined(field.name) for field in fields(cls)})
