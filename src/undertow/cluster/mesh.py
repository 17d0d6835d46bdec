"""Where the arrays of a model lie that is spread over several devices: which mode is split, and every array's place.

The longest mode is moved to the front and split. Whatever has that mode is split along it: the slices of the window,
outlier probabilities, noise by entry, the level, and the rows of that mode's factor, so that these rows are solved
where their entries lie. Everything else, the other factors and all numbers, is the same on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.tree_util import SequenceKey, tree_map_with_path
from numpy.typing import NDArray

PartitionSpec: Any = jax.sharding.PartitionSpec
AXIS = "rows"
"""Name of the only axis of the mesh."""


@dataclass(frozen=True)
class Split:
    """How slices of one shape lie on the devices.

    Attributes:
        mesh: All devices, of all processes, in one line.
        shape: (I_1, …, I_N) as the user has it.
        mode: The mode that is split.
    """

    mesh: Mesh
    shape: tuple[int, ...]
    mode: int

    @classmethod
    def of(cls, shape: tuple[int, ...], devices: Sequence[jax.Device]) -> Split:
        """Split the longest mode evenly.

        Raises:
            ValueError: It is no multiple of the number of devices.
        """
        count, mode = len(devices), int(np.argmax(shape))
        if shape[mode] % count:
            fewer = next(number for number in range(count, 0, -1) if shape[mode] % number == 0)
            raise ValueError(
                f"the longest mode of x must be a multiple of the {count} devices, got {shape[mode]} of {shape}: "
                f"leave out the last {shape[mode] % count} or split it over {fewer}."
            )
        return cls(Mesh(np.array(devices), (AXIS,), axis_types=(AxisType.Auto,)), shape, mode)

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """The shape of a slice with the split mode in front."""
        return (self.shape[self.mode], *self.shape[: self.mode], *self.shape[self.mode + 1 :])

    @property
    def sharding(self) -> NamedSharding:
        """Of a slice."""
        return self._split(0)

    @property
    def rows(self) -> slice:
        """The part of the split mode that the devices of this process hold."""
        held = [number for number, device in enumerate(self.mesh.devices.flat) if device in self.mesh.local_devices]
        each = self.shape[self.mode] // self.mesh.size
        return slice(held[0] * each, (held[-1] + 1) * each)

    def local(self, x: Any) -> Any:
        """This process's part of a slice as the user has it; nothing else of it is touched."""
        return x[(slice(None),) * self.mode + (self.rows,)]

    def placed(self, local: NDArray[Any]) -> Array:
        """This process's part of a slice as its part of the array on all devices."""
        inner = np.moveaxis(local, self.mode, 0)
        make: Any = jax.make_array_from_process_local_data
        placed: Array = make(self.sharding, inner, self.inner_shape)
        return placed

    def shardings(self, tree: Any) -> Any:
        """The place of every array of a state or a report. It decides what a step costs, never what it answers."""
        modes = len(self.shape)

        def sharding(path: tuple[Any, ...], array: Any) -> NamedSharding:
            of_mode = next((key.idx for key in path if isinstance(key, SequenceKey)), None)  # tuples are by mode
            if of_mode is None and array.shape[-modes:] == self.inner_shape:
                return self._split(array.ndim - modes)
            return self._split(0) if of_mode == 0 else NamedSharding(self.mesh, PartitionSpec())

        return tree_map_with_path(sharding, tree)

    def everywhere(self, tree: Any) -> Any:
        """Numbers, the same on every device."""
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec()))

    def returned(self, array: Array) -> Array:
        """This process's part of an array of a report, its modes in the order of the user."""
        if not array.is_fully_addressable:
            parts = [shard.data for shard in array.addressable_shards]
            if array.is_fully_replicated:
                only: Array = parts[0]
                return only
            here = Mesh(np.array(self.mesh.local_devices), (AXIS,), axis_types=(AxisType.Auto,))
            shape = (sum(part.shape[0] for part in parts), *array.shape[1:])
            array = jax.make_array_from_single_device_arrays(shape, NamedSharding(here, PartitionSpec(AXIS)), parts)
        return array if array.ndim == 0 or self.mode == 0 else jnp.moveaxis(array, 0, self.mode)

    def _split(self, axis: int) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(*[None] * axis, AXIS))
