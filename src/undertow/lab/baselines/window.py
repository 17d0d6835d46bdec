"""The state of methods that refit a window from scratch at every slice: they remember nothing but data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from undertow.lab.baselines.baseline import Array, Mask
from undertow.lab.baselines.validation import check_shape, observe


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WindowState:
    """The last slices.

    Attributes:
        values: newest last, zeros where unobserved, (window, *shape).
        observed: their masks, (window, *shape).
        last: the last low-rank slice, shape.
        count: slices seen, ().
    """

    config: Any = field(metadata={"static": True})
    shape: tuple[int, ...] = field(metadata={"static": True})
    values: Array
    observed: Mask
    last: Array
    count: Array

    @property
    def known(self) -> int:
        """Slices in the window."""
        return min(int(self.count), len(self.values))

    @property
    def prediction(self) -> Array | None:
        """The last low-rank slice, where there is one."""
        return self.last.copy() if self.count > 0 else None


def empty(config: Any, shape: tuple[int, ...]) -> WindowState:
    """The state before the first slice."""
    sizes = check_shape(shape)
    every = (config.window, *sizes)
    return WindowState(config, sizes, np.zeros(every), np.zeros(every, dtype=bool), np.zeros(sizes), np.zeros(()))


def push(state: WindowState, values: Any, mask: Any) -> WindowState:
    """The window with one more slice at its end; `last` is still that of the slice before."""
    slice_values, slice_observed = observe(values, mask, state.shape)
    return WindowState(
        state.config,
        state.shape,
        np.concatenate([state.values[1:], slice_values[None]]),
        np.concatenate([state.observed[1:], slice_observed[None]]),
        state.last,
        state.count + 1,
    )
