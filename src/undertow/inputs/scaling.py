"""The unit and the scale of a stream: between the data as they come and what the model computes with.

The unit is the median size of the first data that are not 0. The model computes in that unit, so results do not depend
on the user's. On the logarithmic scale the model sees asinh(2 · data / unit).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.inputs.dense import Slice
from undertow.inputs.sparse import AnySlice
from undertow.model.defaults import LARGEST_VALUE

SMALLEST_UNIT = 1e-30
"""Down to this unit single precision holds it with all digits."""
SAFE_UNITS = {4: (SMALLEST_UNIT, 1e19), 8: (0.0, 1e200)}
"""By bytes of a floating-point type: between these units nothing on the linear scale leaves its range, roots of
variances included."""
LOG_UNIT = 0.5
"""Where the logarithmic scale bends into a linear one, in units of the stream."""


def first_unit(validated: AnySlice) -> float:
    """The median size of the data that are not 0; 0 if there are none."""
    sizes = np.abs(validated.values[validated.mask & (validated.values != 0)])
    if not sizes.size:
        return 0.0
    largest = sizes.max().astype(np.float64)  # the median averages two values: they must not overflow
    return float(np.median(sizes / largest) * largest)


def first_units(validated: Slice) -> NDArray[np.float64]:
    """`first_unit` of many slices (n, I_1, …), each for itself (n,)."""
    sizes = np.abs(validated.values.reshape(len(validated.values), -1).astype(np.float64))
    counts = validated.mask.reshape(sizes.shape) & (sizes > 0)
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
    """From the data of one stream to its model and back; or of many, with units that broadcast against their slices.

    Attributes:
        unit: Size of the data; 0 until the first data that are not 0.
        log: Whether the scale is logarithmic.
        dtype: Precision of the model.
    """

    unit: Any
    log: bool
    dtype: str

    @classmethod
    def of(cls, config: Config, unit: Any) -> Scaling:
        """The scaling of a model."""
        return cls(unit, config.scale == "log", config.dtype)

    def positive(self) -> Scaling:
        """With the unit 1 where there is none yet: before any data, nothing is certain."""
        return replace(self, unit=self._divisor)

    @property
    def _divisor(self) -> Any:
        return np.where(self.unit, self.unit, 1.0) if isinstance(self.unit, np.ndarray) else self.unit or 1.0

    def scaled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Data for the model. What is too large for it may become infinite: the compiled step leaves it out.

        Linear scale: data / unit. Logarithmic scale: asinh(data / (unit · LOG_UNIT)).
        """
        with np.errstate(over="ignore"):
            if not self.log:
                # In one pass, in the precision of both where that is the same: a video has little time.
                scaled: NDArray[Any] = np.empty(values.shape, self.dtype)
                divisor = self._divisor
                if values.dtype != scaled.dtype or isinstance(divisor, np.ndarray) or divisor < SMALLEST_UNIT:
                    divisor = np.float64(divisor)
                np.divide(values, divisor, out=scaled, casting="same_kind")
                return scaled
            size = values.astype(np.float64) / self._divisor
            scaled = np.where(np.abs(size) > LARGEST_VALUE, np.inf, np.arcsinh(size / LOG_UNIT)).astype(self.dtype)
            return scaled

    def unscaled(self, scaled: Any, dtype: Any = np.float64) -> NDArray[Any]:
        """The inverse of `scaled`; what does not fit the type becomes its largest number."""
        values = np.asarray(scaled)
        low, high = SAFE_UNITS[np.dtype(dtype).itemsize]
        if not self.log and low <= np.min(self.unit) <= np.max(self.unit) <= high:
            data: NDArray[Any] = np.multiply(values, self.unit, dtype=dtype, casting="same_kind")
            return data
        with np.errstate(over="ignore", invalid="ignore"):
            size = LOG_UNIT * np.sinh(values, dtype=np.float64) if self.log else values
            data = np.multiply(size, self.unit, dtype=np.float64).astype(dtype)
        clipped: NDArray[Any] = np.nan_to_num(data)
        return clipped

    def too_large(self, validated: AnySlice, limit: float = LARGEST_VALUE) -> NDArray[np.bool_]:
        """Observed entries that the compiled step leaves out."""
        with np.errstate(over="ignore"):
            size = np.abs(validated.values.astype(np.float64) / self._divisor)
        large: NDArray[np.bool_] = validated.mask & (size > limit)
        return large
