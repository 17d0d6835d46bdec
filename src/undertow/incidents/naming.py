"""Positions in words, by the labels of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 4
"""Names that are spelled out."""


@dataclass(frozen=True)
class Names:
    """Names of modes and labels of their rows; numbers where there are none."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(
        cls, shape: Sequence[int], labels: Sequence[Sequence[Any] | None] | None, dims: Sequence[str] | None
    ) -> Names:
        """Checked.

        Raises:
            ValueError: They do not fit the shape.
        """
        sizes = tuple(int(size) for size in shape)
        if not sizes or min(sizes) < 1:
            raise ValueError(f"shape must be that of a slice with at least one entry, got {tuple(shape)}")
        given = tuple(labels) if labels is not None else (None,) * len(sizes)
        named = tuple(dims) if dims is not None else tuple(f"mode_{mode}" for mode in range(len(sizes)))
        if len(given) != len(sizes) or len(named) != len(sizes):
            raise ValueError(
                f"labels and dims must have one item for each of {len(sizes)} modes, got {len(given)} and {len(named)}"
            )
        for mode, (size, one) in enumerate(zip(sizes, given, strict=True)):
            if one is not None and len(one) != size:
                raise ValueError(f"labels of mode {mode} must be {size}, one for each row, got {len(one)}")
        texts = tuple(None if one is None else tuple(str(label) for label in one) for one in given)
        return cls(sizes, tuple(str(name) for name in named), texts)

    def label(self, mode: int, index: int) -> str:
        """Of one row."""
        labels = self.labels[mode]
        return str(index) if labels is None else labels[index]

    def entry(self, position: Sequence[int]) -> tuple[str, ...]:
        """Labels of one entry."""
        return tuple(self.label(mode, int(index)) for mode, index in enumerate(position))

    def entries(self, positions: NDArray[np.int64]) -> str:
        """Several entries, (k, N): "origin a, destination b"; "12 entries: a b, a c, … and 8 more"."""
        if len(positions) == 1:
            named = zip(self.dims, self.entry(positions[0]), strict=True)
            return ", ".join(f"{dim} {label}" for dim, label in named)
        first = [" ".join(self.entry(position)) for position in positions[:_MOST]]
        return f"{len(positions)} entries: {_listed(first, len(positions))}"

    def rows(self, rows: Sequence[tuple[int, int]]) -> str:
        """Such as "origin router-3 and destination router-3"."""
        return " and ".join(
            f"{self.dims[mode]} {_listed([self.label(mode, index) for index in indices[:_MOST]], len(indices))}"
            for mode in range(len(self.shape))
            if (indices := [index for at, index in rows if at == mode])
        )

    def block(self, positions: NDArray[np.int64]) -> str:
        """The rows that a block lies in, mode by mode: "origin 3, 4 × destination 5, 6"."""
        sets = [np.unique(positions[:, mode]) for mode in range(len(self.shape))]
        return " × ".join(
            f"{self.dims[mode]} {_listed([self.label(mode, int(i)) for i in found[:_MOST]], len(found))}"
            for mode, found in enumerate(sets)
        )


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names)} more" if total > len(names) else ""
    return ", ".join(names) + more
