"""A slice on the device, as one or more models want it."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.inputs import packing
from undertow.inputs.dense import Slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.sparse import AnySlice, Entries
from undertow.model.defaults import LARGEST_VALUE
from undertow.model.flags import Flags
from undertow.model.types import EntryIndex


@dataclass(frozen=True, eq=False)
class DeviceSlice:
    """A slice on its way to one or more models; what several need is made once.

    Attributes:
        host: The validated slice.
        capacity: For how many observed entries it is padded, where only these are kept; else None.
    """

    host: AnySlice
    capacity: int | None = None
    _sent: dict[Scaling | None, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, validated: AnySlice, capacity: int | None) -> DeviceSlice:
        """For a window of this capacity, or for a wider one if the slice needs it."""
        if capacity is None or isinstance(validated, Slice):
            return cls(validated, capacity)
        return cls(validated, max(capacity, packing.entry_capacity(validated.values.size)))

    @property
    def indices(self) -> tuple[NDArray[np.int32], ...] | None:
        """Where the entries lie, of a sparse slice."""
        return self.host.indices if isinstance(self.host, Entries) else None

    @property
    def noticed(self) -> int:
        """Flags of the slice itself."""
        return Flags.FILL_VALUES.value if np.any(self.host.filled) else 0

    def values(self, scaling: Scaling) -> Array:
        """The values as a model wants them. To be called in the scope of the model's precision."""
        if scaling not in self._sent:
            scaled = packing.packed(self.host, self.capacity, scaling.scaled(self.host.values))
            self._sent[scaling] = jax.device_put(*scaled)
        return self._sent[scaling]

    def mask(self) -> Array:
        """True where observed."""
        if None not in self._sent:
            self._sent[None] = jax.device_put(*packing.packed(self.host, self.capacity, self.host.mask))
        return self._sent[None]

    def entry_index(self) -> EntryIndex | None:
        """Where the values lie, where only observed entries are kept."""
        return packing.entry_index(self.host, self.capacity)

    def unused_entries(self, scaling: Scaling) -> int:
        """How many entries the model will not see: those that are missing and those that are too large for it."""
        values, mask = self.host.values, self.host.mask
        missing = mask.size - int(np.count_nonzero(mask))
        size = max(abs(float(values.max(initial=0))), abs(float(values.min(initial=0))))
        large = size > LARGEST_VALUE * scaling.unit / 2  # nearly so is counted too: rounding must not decide
        return missing + int(np.count_nonzero(scaling.too_large(self.host, LARGEST_VALUE / 2))) if large else missing
