"""Components of a CP model as people read them: loadings of unit length, sizes in time, fractions of variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.view.names import Names
from undertow.view.table import Table

Floats = NDArray[np.floating[Any]]
COLUMNS = ("component", "mode", "label", "loading", "share", "since")


@dataclass(frozen=True)
class Components:
    """The active components, largest first, on the scale of the model.

    Attributes:
        loadings: (I_n, R) for each mode; columns have length 1, and their largest number is positive.
        temporal: (T, R): size of every component in each slice of the window, oldest first.
        shares: (R,): of the sum of squares of the low-rank part over the window. They need not add up to 1, since
            components overlap.
        since: (R,): the slice from which on each has been in use, counted from 0; −1 where that is not known.
    """

    loadings: tuple[Floats, ...]
    temporal: Floats
    shares: Floats
    since: NDArray[np.int64]

    @classmethod
    def of(cls, modes: tuple[Floats, ...], temporal: Floats, since: NDArray[np.int64] | None = None) -> Components:
        """Normalised and in order."""
        loadings, size = [], np.array(temporal, np.float64)
        for matrix in modes:
            matrix = np.asarray(matrix, np.float64)
            length = np.linalg.norm(matrix, axis=0)
            largest = matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])]
            scale = np.where(largest < 0, -length, length)
            loadings.append(np.divide(matrix, scale, out=np.zeros_like(matrix), where=scale != 0))
            size = size * scale
        overlap = np.prod([matrix.T @ matrix for matrix in loadings], axis=0)  # of the components without their sizes
        total = float(((size @ overlap) * size).sum())
        own = (size**2).sum(axis=0)
        order = np.argsort(-own, kind="stable")
        unknown = np.full(own.size, -1) if since is None else since
        return cls(
            tuple(matrix[:, order] for matrix in loadings),
            size[:, order],
            (own / total if total > 0 else np.zeros_like(own))[order],
            np.asarray(unknown, np.int64)[order],
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.shares.size)

    def parts(self, position: tuple[int, ...]) -> Floats:
        """What each adds to one entry of the newest slice (R,)."""
        loading = np.prod([matrix[index] for matrix, index in zip(self.loadings, position, strict=True)], axis=0)
        return np.asarray(loading * self.temporal[-1])

    def table(self, names: Names) -> Table:
        """One row for each loading."""
        rows = [
            (number + 1, names.dims[mode], names.label(mode, index), float(matrix[index, number]), *facts)
            for number, facts in enumerate(self._facts())
            for mode, matrix in enumerate(self.loadings)
            for index in range(len(matrix))
        ]
        return Table(COLUMNS, rows)

    def summary(self, names: Names, most: int = 3) -> list[str]:
        """One line for each: its share and the labels it loads on most."""
        lines = []
        for number, (share, since) in enumerate(self._facts()):
            strongest = (
                f"{names.dims[mode]} {', '.join(str(names.label(mode, i)) for i in _largest(matrix[:, number], most))}"
                for mode, matrix in enumerate(self.loadings)
            )
            known = "" if since is None else f", since slice {since}"
            lines.append(f"component {number + 1}: {share:.0%}{known}; most in {'; '.join(strongest)}")
        return lines

    def _facts(self) -> list[tuple[float, int | None]]:
        return [
            (float(share), None if since < 0 else int(since))
            for share, since in zip(self.shares, self.since, strict=True)
        ]


def _largest(column: Floats, most: int) -> list[int]:
    order = np.argsort(-np.abs(column), kind="stable")[:most]
    return [int(index) for index in order if abs(column[index]) > 0.2 * abs(column[order[0]])]
