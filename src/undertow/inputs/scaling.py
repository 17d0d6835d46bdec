"""The unit and the scale of a stream: between the data as they come and what the model computes with.

The unit is the median size of the first data that are not 0. Everything inside is in that unit, so the answer does not
depend on the user's. On the logarithmic scale the model sees asinh(2 · data / unit).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.config import Config
from undertow.inputs import packing as placing
from undertow.inputs.dense import Slice
from undertow.inputs.packing import Piece
from undertow.model.phases.infer import LARGEST
from undertow.model.types import EntryIndex

SMALLEST_UNIT = 1e-30
"""Down to this unit single precision holds it with all digits."""
SAFE_UNITS = {4: (SMALLEST_UNIT, 1e19), 8: (0.0, 1e200)}
"""Between these units nothing on the linear scale can leave a floating type of so many bytes, roots of variances
included."""
LOG_UNIT = 0.5
"""Where the logarithmic scale bends into a linear one, in units of the stream."""


def first_unit(piece: Piece) -> float:
    """The median size of the data that are not 0; 0 if there are none."""
    sizes = np.abs(piece.values[piece.mask & (piece.values != 0)])
    if not sizes.size:
        return 0.0
    largest = sizes.max().astype(np.float64)  # the median averages two values: they must not overflow
    return float(np.median(sizes / largest) * largest)


def first_units(piece: Slice) -> NDArray[np.float64]:
    """`first_unit` of many slices (n, I_1, …), each for itself (n,)."""
    sizes = np.abs(piece.values.reshape(len(piece.values), -1).astype(np.float64))
    counts = piece.mask.reshape(sizes.shape) & (sizes > 0)
    largest = np.where(counts, sizes, 0).max(axis=1, keepdims=True)
    ordered = np.sort(np.where(counts, sizes / np.where(largest > 0, largest, 1), np.inf), axis=1)
    number = counts.sum(axis=1)
    row = np.arange(len(sizes))
    middle = (
        ordered[row, np.maximum(number - 1, 0) // 2] + ordered[row, np.minimum(number // 2, len(ordered.T) - 1)]
    ) / 2
    units: NDArray[np.float64] = np.where(number > 0, np.where(number > 0, middle, 0) * largest[:, 0], 0.0)
    return units


@dataclass(frozen=True)
class Scaling:
    """From the data of one stream to its model and back; or of many, with units that broadcast against their slices."""

    unit: Any
    """0 until the first data that are not 0."""
    log: bool
    dtype: str

    @classmethod
    def of(cls, config: Config, unit: Any) -> Scaling:
        """That of a model."""
        return cls(unit, config.scale == "log", config.dtype)

    @property
    def _divisor(self) -> Any:
        return np.where(self.unit, self.unit, 1.0) if isinstance(self.unit, np.ndarray) else self.unit or 1.0

    def scaled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Data for the model. What is too large for it may become infinite: the compiled step leaves it out."""
        with np.errstate(over="ignore"):
            if not self.log:
                # In one pass, in the precision of both where that is the same: a video has little time.
                inside: NDArray[Any] = np.empty(values.shape, self.dtype)
                divisor = self._divisor
                if values.dtype != inside.dtype or isinstance(divisor, np.ndarray) or divisor < SMALLEST_UNIT:
                    divisor = np.float64(divisor)
                np.divide(values, divisor, out=inside, casting="same_kind")
                return inside
            size = values.astype(np.float64) / self._divisor
            inside = np.where(np.abs(size) > LARGEST, np.inf, np.arcsinh(size / LOG_UNIT)).astype(self.dtype)
            return inside

    def unscaled(self, inside: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """What `scaled` did, undone; what does not fit the type becomes its largest number."""
        values = np.asarray(inside)
        low, high = SAFE_UNITS[np.dtype(dtype).itemsize]
        if not self.log and low <= np.min(self.unit) <= np.max(self.unit) <= high:
            data: NDArray[Any] = np.multiply(values, self.unit, dtype=dtype, casting="same_kind")
            return data
        with np.errstate(over="ignore", invalid="ignore"):
            size = LOG_UNIT * np.sinh(values, dtype=np.float64) if self.log else values
            data = np.multiply(size, self.unit, dtype=np.float64).astype(dtype)
        clipped: NDArray[Any] = np.nan_to_num(data)
        return clipped

    def too_large(self, piece: Piece, limit: float = LARGEST) -> NDArray[np.bool_]:
        """Observed entries that the compiled step leaves out."""
        with np.errstate(over="ignore"):
            size = np.abs(piece.values.astype(np.float64) / self._divisor)
        large: NDArray[np.bool_] = piece.mask & (size > limit)
        return large


@dataclass(frozen=True, eq=False)
class Given:
    """A slice on its way to one or more models; what several need is made once."""

    piece: Piece
    room: int | None = None
    """Place for so many observed entries, where only these are kept."""
    _made: dict[Scaling | None, Array] = field(default_factory=dict)

    def values(self, scaling: Scaling) -> Array:
        """The values as a model wants them, on the device. To be called in the scope of the model's precision."""
        if scaling not in self._made:
            self._made[scaling] = jax.device_put(
                *placing.placed(self.piece, self.room, scaling.scaled(self.piece.values))
            )
        return self._made[scaling]

    def mask(self) -> Array:
        """What was observed, on the device."""
        if None not in self._made:
            self._made[None] = jax.device_put(*placing.placed(self.piece, self.room, self.piece.mask))
        return self._made[None]

    def absent(self, scaling: Scaling) -> int:
        """How many entries the model will not see: those that are missing and those that are too large for it."""
        piece = self.piece
        missing = piece.mask.size - int(np.count_nonzero(piece.mask))
        size = max(abs(float(piece.values.max(initial=0))), abs(float(piece.values.min(initial=0))))
        large = size > LARGEST * scaling.unit / 2  # nearly so is counted too: rounding must not decide
        return missing + int(np.count_nonzero(scaling.too_large(piece, LARGEST / 2))) if large else missing

    def entry_index(self) -> EntryIndex | None:
        """Where the values lie, where only observed entries are kept."""
        return placing.entry_index(self.piece, self.room)
