"""The state of one model: all that is carried from slice to slice."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.config import Config
from undertow.engine.memory import check_memory
from undertow.engine.output import CrossPrediction
from undertow.engine.slots import slots
from undertow.inputs.packing import entry_capacity
from undertow.model.factors import rank
from undertow.model.settings import Settings, Slots
from undertow.model.step import init_core
from undertow.model.types import Core
from undertow.programs.program import program

SPARSE_SETTINGS = {
    "level": False,
    "noise": "shared",
    "memory": "window",
    "outliers": "contaminated",
    "start": "warm",
}
"""What the settings of a model must be where only observed entries are kept."""

new_core = program(static=["shape", "entries", "slots"])(init_core)
"""`undertow.model.step.init_core` as one program; operation by operation it takes longer than the first step."""


@program()
def copied(core: Core) -> Core:
    """The same arrays in memory of their own."""
    copies: Core = jax.tree.map(jnp.copy, core)
    return copies


def negative(config: Config, chunks: Sequence[Core], members: bool = False) -> tuple[Array, ...] | None:
    """Whether anything in these windows is below 0, where that matters: on the logarithmic scale."""
    if config.scale != "log":
        return None
    return tuple(_below_zero(core.window.values, core.window.mask, int(members)) for core in chunks)


@program(static=["axis"])
def _below_zero(values: Array, mask: Array, axis: int) -> Array:
    found: Array = ((values < 0) & mask).any(axis=tuple(range(axis, values.ndim)))
    return found


@dataclass(frozen=True)
class State:
    """All that is carried from slice to slice. Treat it as a value: `undertow.step` never changes it.

    Attributes:
        config: Settings of the model, with a `max_rank`.
        shape: (I_1, …, I_N), the shape of a slice.
        unit: Size of the data, fixed by the first that are not 0; 0 until then.
        steps: Number of slices seen.
        core: The arrays, in units of the stream.
        missing: Number of entries missing in each slice of the window, oldest first; counted where the sums over
            entries can be separable (`undertow.engine.capacity`).
        cross_predicted: What a model that is not robust finds the outliers of the newest slice by; None before its
            second slice, and of a model taken from a fleet or a file of an earlier version until its next.

    Examples:
        >>> import undertow as ut
        >>> state = ut.init(ut.make_config(max_rank=3, window=4), (6, 5))
        >>> state.shape, state.steps, state.capacity
        ((6, 5), 0, 3)
    """

    config: Config
    shape: tuple[int, ...]
    unit: float
    steps: int
    core: Core
    missing: tuple[int, ...] = ()
    cross_predicted: CrossPrediction | None = None

    @property
    def entry_capacity(self) -> int | None:
        """Capacity for observed entries of a slice, where only these are kept; else None."""
        return None if self.core.window.entry_index is None else int(self.core.window.values.shape[1])

    @property
    def capacity(self) -> int:
        """The most components there can be: `max_rank`, or fewer where few are active in a large window."""
        return min(self.slots.rank, self.config.max_rank or self.config.rank_limit(self.shape))

    @property
    def slots(self) -> Slots:
        """For how many slices and components there is room."""
        return Slots(len(self.core.window.values), len(self.core.factors.active))

    @property
    def settings(self) -> Settings:
        """What the compiled programs get, on the device."""
        return _on_device(self.config, self.capacity, getattr(jax.config, "jax_default_device", None))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which slots hold an active component."""
        with precision(self.config):
            return np.asarray(rank.effective(self.core.factors, self.config.start))

    def copy(self) -> State:
        """The same state in memory of its own."""
        with precision(self.config):
            return replace(self, core=copied(self.core))


def init(config: Config, shape: tuple[int, ...], entries: int | None = None) -> State:
    """Make a state that has seen nothing.

    Args:
        config: Settings of the model, from `undertow.make_config`.
        shape: (I_1, …, I_N), the shape of a slice.
        entries: If given, only observed entries are kept, with capacity for this many of a slice to begin with: then
            `step` takes sparse slices.

    Returns:
        The state.

    Raises:
        TypeError: `shape` is not a tuple of integers.
        ValueError: `shape` has no modes, the state would not fit into memory, or a setting needs all entries.

    Examples:
        >>> import undertow as ut
        >>> state = ut.init(ut.make_config(max_rank=3, window=4), (6, 5))
        >>> state.steps, state.capacity
        (0, 3)
    """
    try:
        shape = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be a tuple of integers, got {shape!r}: name the size of every mode.") from None
    if not shape or min(shape) < 1:
        raise ValueError(f"shape must name at least one mode, each of size 1 or more, got {shape}.")
    if entries is not None:
        _validate_sparse_settings(config)
        entries = entry_capacity(entries)
    config = config.sized(shape, sparse=entries is not None)
    check_memory(config, shape, entries)
    with precision(config):
        return State(config, shape, unit=0.0, steps=0, core=blank(config, shape, entries))


def blank(config: Config, shape: tuple[int, ...], entries: int | None = None, room: Slots | None = None) -> Core:
    """Arrays that have seen nothing, with the usual slots or as many as are named; in the precision of the caller."""
    core: Core = new_core(config.settings(), shape, entries, room or slots(config, shape, entries))
    return core


def precision(config: Config) -> Any:
    """The precision of a model, whatever JAX's global setting; a context to be held around every compiled call."""
    return jax.enable_x64(config.dtype == "float64")


@lru_cache(maxsize=256)
def _on_device(config: Config, capacity: int, device: Any) -> Settings:
    """Made once: handed over number by number, settings take longer than a slice does."""
    with precision(config):
        there: Settings = jax.device_put(config.settings(capacity))
    return there


def _validate_sparse_settings(config: Config) -> None:
    for name, needed in SPARSE_SETTINGS.items():
        if getattr(config, name) != needed:
            raise ValueError(
                f"{name} must be {needed!r} where only observed entries are kept, got {getattr(config, name)!r}: "
                "leave it out, or use smaller slices or a shorter window, so that all entries can be kept."
            )
