"""Which program suits a stream: slots for components, capacity for observed and for missing entries.

Every capacity is a compiled program of its own, so there are few of them, and they change seldom.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from undertow.config import Config
from undertow.engine.memory import check_memory
from undertow.engine.slots import LARGE_WINDOW
from undertow.engine.state import State, precision
from undertow.inputs.sparse import Entries
from undertow.model.factors import rank
from undertow.model.types import Contaminated, Core
from undertow.programs.program import program

SMALL_WINDOW = 2_000_000
"""Up to this many entries of the whole window, all are kept, observed or not: that is quick, and knows more."""
SPARSE_FRACTION = 0.05
"""Fraction of observed entries up to which only these are kept: there both take as long (bench layouts)."""
HUGE_WINDOW = 5_000_000
"""Entries of a window from which on they are worth it after a few slices: steps take long there."""
REVIEW_INTERVAL = 5
"""Slices between reviews of the slots."""
FREE_SLOTS = 2
"""Slots that are left free for new components."""
FEWEST_SLOTS = 4
MISSING_FRACTIONS = (50, 500)
"""A window is nearly full if no more than one in 50 (or 500) of its entries is missing; with fewer missing a step costs
less, with none least."""


resized = program(static=["capacity"])(rank.resized)
"""`undertow.model.factors.rank.resized` as one program."""


def prefers_entries(window: int, first: Entries) -> bool:
    """Whether a stream that starts with this sparse slice should keep observed entries only."""
    return window * math.prod(first.shape) > SMALL_WINDOW and first.observed_fraction <= SPARSE_FRACTION


def slot_ladder(max_rank: int) -> list[int]:
    """The numbers of slots that programs are compiled for, largest first: each about half the one before."""
    slots = [max_rank]
    while slots[-1] // 2 >= FEWEST_SLOTS:
        slots.append((slots[-1] + 1) // 2)
    return slots


def with_fitting_slots(state: State) -> State:
    """The state with slots for the active components and a few more: a step costs what the slots cost.

    Reviewed once in a while, and for large windows only.
    """
    config = state.config
    large = config.window * math.prod(state.shape) >= LARGE_WINDOW
    if config.start != "warm" or config.memory != "window" or not large or state.steps % REVIEW_INTERVAL:
        return state
    with precision(config):
        active = int(np.count_nonzero(state.core.factors.active))
        if state.steps < 2 * config.window and not (active > 0 and _huge_and_known(state)):
            return state
        largest = config.rank_limit(state.shape)
        fitting = [slots for slots in slot_ladder(largest) if slots >= active + FREE_SLOTS]
        slots = fitting[-1] if fitting else largest
        # More when all are in use, fewer when that leaves some free: no state changes back and forth.
        if slots < state.capacity or active == state.capacity < largest:
            return replace(state, core=replace(state.core, factors=resized(state.core.factors, slots)))
    return state


def _huge_and_known(state: State) -> bool:
    """Whether a huge window has seen some slices that were not empty."""
    mask = state.core.window.mask
    return mask.size >= HUGE_WINDOW and int(mask.reshape(mask.shape[0], -1).any(axis=1).sum()) >= REVIEW_INTERVAL


def separable(config: Config) -> bool:
    """Whether all observed entries of a slice have the same weight, so that sums over entries are separable."""
    plain = not (config.robust or config.level) and config.noise == "shared"
    return plain and config.outliers == "contaminated" and config.memory == "window"


def missing_capacity(state: State) -> int | None:
    """The most entries that may be missing in the window for separable sums; None where these are not used."""
    if state.entry_capacity is not None:
        return None
    entries = state.config.window * math.prod(state.shape)
    if entries < LARGE_WINDOW or not separable(state.config):
        return None
    capacities = [0, *sorted(entries // fraction for fraction in MISSING_FRACTIONS)]
    return next((capacity for capacity in capacities if sum(state.missing) <= capacity), None)


def with_entry_capacity(state: State, capacity: int | None) -> State:
    """The state with a wider window, where a slice has more entries than any before."""
    if capacity is None or capacity == state.entry_capacity:
        return state
    check_memory(state.config, state.shape, capacity)
    with precision(state.config):
        return replace(state, core=widened(state.core, capacity))


@program(static=["capacity"])
def widened(core: Core, capacity: int) -> Core:
    """The window with positions for more entries of a slice."""

    def wide(array: Any) -> Any:
        return jax.numpy.pad(array, ((0, 0), (0, capacity - array.shape[1]))) if array.ndim == 2 else array

    window = replace(core.window, values=wide(core.window.values), mask=wide(core.window.mask))
    window = replace(window, entry_index=jax.tree.map(wide, window.entry_index))
    assert isinstance(core.outliers, Contaminated)
    outliers = replace(core.outliers, probability=wide(core.outliers.probability))
    return replace(core, window=window, outliers=outliers)
