"""Modes that grow while a store is written: which chunks there are then.

Chunks keep the size that slices had at first. Rows that are added later lie in further chunks beside them, from the
chunk of time on in which they were added; before, nothing was known of these rows, and readers of Zarr find NaN there.
So nothing that was written is ever written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from undertow.runs.errors import StoreError

ATTRIBUTE = "grown"
"""Of the group: from which slice on slices had which shape, where they can grow."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Growth:
    """Shapes of slices, each with the first slice that had it; the first of them is that of the first slice.

    Examples:
        >>> growth = Growth.of((4, 3)).then(10, (6, 3))
        >>> list(growth.blocks(1, 8, (4, 3))), list(growth.blocks(0, 8, (4, 3)))
        ([(0, 0), (1, 0)], [(0, 0)])
    """

    steps: tuple[tuple[int, Shape], ...]

    @classmethod
    def of(cls, shape: Sequence[int]) -> Growth:
        """Of slices that have not grown."""
        return cls(((0, tuple(shape)),))

    @classmethod
    def read(cls, attributes: Mapping[str, Any], shape: Sequence[int]) -> Growth:
        """What `written` gave, among the attributes of a store; of slices of this shape where they have not grown.

        Raises:
            StoreError: It is damaged.
        """
        if ATTRIBUTE not in attributes:
            return cls.of(shape)
        try:
            steps = tuple((int(start), tuple(map(int, one))) for start, one in json.loads(attributes[ATTRIBUTE]))
            if not steps or steps[0][0] != 0 or {len(one) for _, one in steps} != {len(steps[0][1])}:
                raise ValueError("no shapes")
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{ATTRIBUTE} of the store is damaged: restore zarr.json from a copy") from error
        return cls(steps)

    def written(self) -> dict[str, str]:
        """As attributes of the store."""
        return {ATTRIBUTE: json.dumps(self.steps)}

    @property
    def shape(self) -> Shape:
        """Of slices now."""
        return self.steps[-1][1]

    def then(self, start: int, shape: Sequence[int]) -> Growth:
        """With this shape from a slice on."""
        return Growth((*self.steps, (start, tuple(shape))))

    def blocks(self, index: int, chunk: int, block: Sequence[int]) -> Iterator[Shape]:
        """Where chunks lie among the rows of a slice, in the order of their names.

        Args:
            index: Of the chunk along time.
            chunk: Slices in it.
            block: Rows of every mode in it.
        """
        shape = next(shape for start, shape in reversed(self.steps) if start < (index + 1) * chunk)
        return product(*(range(-(-size // most)) for size, most in zip(shape, block, strict=True)))


def chunk_name(index: int, block: Sequence[int]) -> str:
    """Of a file, as Zarr names it with dots."""
    return ".".join(map(str, ("c", index, *block)))


def chunk_names(
    shape: Sequence[int], chunks: Sequence[int], attributes: Mapping[str, Any]
) -> Iterator[tuple[int, str]]:
    """All chunks that an array must have: the first slice of each, and its name.

    Args:
        shape: Of the array, time first.
        chunks: Its chunks.
        attributes: Of the store.
    """
    growth = Growth.of(shape[1:])
    if len(shape) > 1 and (read := Growth.read(attributes, shape[1:])).shape == tuple(shape[1:]):
        growth = read
    for index in range(-(-shape[0] // chunks[0])):
        for block in growth.blocks(index, chunks[0], chunks[1:]):
            yield index * chunks[0], chunk_name(index, block)
