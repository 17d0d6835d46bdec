"""The functional core: ``state = init(config, shape)``, ``state, result = step(state, values, mask)``.

Between the door (slices.py) and the compiled step (model/step.py) stand the unit and the scale of the stream
(units.py); what the step reports is told in units of the data (telling.py).
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.engine.output import CrossPrediction, Output
from undertow.inputs import packing as placing
from undertow.inputs.dense import as_slice
from undertow.inputs.packing import Piece, room_for
from undertow.inputs.scaling import Given, Scaling, first_unit
from undertow.inputs.sparse import Entries, as_entries, bucket, checked_indices, is_sparse
from undertow.model.factors import rank
from undertow.model.level import WALK_RATIOS
from undertow.model.phases.infer import at as run_at
from undertow.model.phases.infer import cross_predict as run_cross_predict
from undertow.model.phases.infer import project, smooth
from undertow.model.settings import Settings
from undertow.model.step import advance, init_core
from undertow.model.types import Contaminated, Core
from undertow.results import Result

LARGE = 100_000
"""Entries of a window from which on it pays to have programs of its own for few places and for nearly full data."""
HUGE = 5_000_000
"""Entries of a window from which on they pay after a few slices: steps take long there."""
HOLES = (50, 500)
"""A window is nearly full if no more than one in so many of its entries is missing; with fewer holes a step costs less,
with none least."""
REVIEW = 5
"""Slices between looks at it."""
ROOM = 2
"""Places that are left free for newcomers."""
SMALLEST = 4
"""Fewest places."""

SMALL_WINDOW = 2_000_000
"""Up to so many entries of the whole window all of them are kept, observed or not: that is quick, and knows more."""
MOST_OBSERVED = 0.05
"""Share of observed entries up to which only these are kept."""


@dataclass(frozen=True)
class State:
    """All that is carried from slice to slice. Treat it as a value: `step` never changes it."""

    config: Config
    shape: tuple[int, ...]
    """(I_1, …, I_N)."""
    unit: float
    """Size of the data, fixed by the first that are not 0; 0 until then."""
    steps: int
    """Slices seen."""
    core: Core
    """The arrays, in units of the stream."""
    missing: tuple[int, ...] = ()
    """Entries missing in each slice of the window, oldest first; counted where it matters (`weighs_alike`)."""

    @property
    def entries(self) -> int | None:
        """Room for observed entries in a slice of the window, where only these are kept; else None."""
        return None if self.core.window.entry_index is None else int(self.core.window.values.shape[1])


def init(config: Config, shape: tuple[int, ...], entries: int | None = None) -> State:
    """A state that has seen nothing. Refuses shapes whose state would not fit into memory.

    With `entries`, only observed ones are kept, so many of a slice to begin with: then `step` wants sparse slices.
    """
    try:
        shape = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"shape must be a tuple of whole numbers, got {shape!r}.") from None
    if not shape or min(shape) < 1:
        raise ValueError(f"shape must name at least one mode, each of size 1 or more, got {shape}.")
    if entries is not None:
        placing.check_for_entries(config)
        entries = bucket(entries)
    check_memory([config], shape, entries)
    with scope(config):
        return State(config, shape, unit=0.0, steps=0, core=init_core(config.settings(), shape, entries))


def prefers_entries(window: int, piece: Entries) -> bool:
    """Whether a stream that starts with this slice is better off with observed entries only."""
    return window * math.prod(piece.shape) > SMALL_WINDOW and piece.share <= MOST_OBSERVED


def as_piece(shape: tuple[int, ...], sparse: bool, x: Any, mask: Any = None) -> Piece:
    """The next slice of a stream, checked, in the layout of its state; or one sentence that says why not.

    `sparse`: only observed entries are kept.
    """
    if is_sparse(x):
        entries = as_entries(x, mask, shape=shape)
        return entries if sparse else entries.to_slice()
    if sparse:
        raise TypeError(
            f"x must be sparse (undertow.Entries, scipy.sparse) like the stream before it, got {type(x).__name__}: "
            "list its observed entries, or start a new model"
        )
    return as_slice(x, mask, shape=shape)


def step(state: State, values: Any, mask: Any = None) -> tuple[State, Result]:
    """Learn from one slice. Bad input raises and leaves the state usable; numerical trouble is a `status`."""
    given = _given(state, values, mask)
    cross_predicted = None if state.config.robust else cross_predict(state, given)
    after, output = learn(copied(state), given, cross_predicted)
    return after, Result(output)


def working(state: State) -> Settings:
    """What the compiled programs get: on the device, with as many slots for components as the state has."""
    device = getattr(jax.config, "jax_default_device", None)
    return _on_device(state.config, state.core.factors.active.shape[0], device)


@lru_cache(maxsize=256)
def _on_device(config: Config, capacity: int, device: Any) -> Settings:
    """Made once: handed over number by number, settings take longer than a slice does."""
    with scope(config):
        there: Settings = jax.tree.map(jnp.asarray, config.settings(capacity))
    return there


def fitted(state: State) -> State:
    """The state with places for the components that live and a few more: a step costs what they cost.

    Looked at once in a while and for large slices only, since every number of places is a program of its own.
    """
    config, places = state.config, state.core.factors.active.shape[0]
    large = config.window * math.prod(state.shape) >= LARGE
    if config.start != "warm" or config.memory != "window" or not large or state.steps % REVIEW:
        return state
    with scope(config):
        active = int(np.count_nonzero(state.core.factors.active))
        if state.steps < 2 * config.window and not (active > 0 and _known_enough(state)):
            return state
        sizes = [size for size in sizes_of(config.max_rank) if size >= active + ROOM] or [config.max_rank]
        # Grown when full, shrunk when there is room to spare: nobody changes back and forth.
        if sizes[-1] < places or active == places < config.max_rank:
            factors = rank.resized(state.core.factors, sizes[-1])
            return replace(state, core=replace(state.core, factors=factors))
    return state


def _known_enough(state: State) -> bool:
    """Whether a huge window has seen some slices that were not empty."""
    mask = state.core.window.mask
    return mask.size >= HUGE and int(mask.reshape(mask.shape[0], -1).any(axis=1).sum()) >= REVIEW


def holes(state: State) -> int | None:
    """The most entries that may be missing for sums to fall apart over the axes; None where they do not."""
    if state.entries is not None:
        return None
    entries = state.config.window * math.prod(state.shape)
    if entries < LARGE or not weighs_alike(state.config):
        return None
    room = [0, *sorted(entries // share for share in HOLES)]
    return next((most for most in room if sum(state.missing) <= most), None)


def weighs_alike(config: Config) -> bool:
    """Whether all observed entries of a slice have the same weight, so that sums may fall apart over the axes."""
    plain = not (config.robust or config.level) and config.noise == "shared"
    return plain and config.outliers == "contaminated" and config.memory == "window"


def sizes_of(max_rank: int) -> list[int]:
    """The numbers of places that programs are compiled for, largest first."""
    sizes = [max_rank]
    while sizes[-1] // 2 >= SMALLEST:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def learn(state: State, given: Given, cross_predicted: CrossPrediction | None = None) -> tuple[State, Output]:
    """Learn from a slice without waiting for the device. The state handed in is used up: its memory is the new one's.

    `foretold` is what a model that is not robust tells outliers by.
    """
    state = fitted(_with_unit(_with_room(state, given.room), given.piece))
    scaling = Scaling.of(state.config, state.unit)
    if weighs_alike(state.config):
        state = replace(state, missing=(*state.missing, given.absent(scaling))[-state.config.window :])
    with scope(state.config):
        core, report = advance(
            state.core, given.values(scaling), given.mask(), working(state), holes(state), given.entry_index()
        )
    indices = given.piece.indices if isinstance(given.piece, Entries) else None
    hindsight = None if state.config.robust else cross_predicted
    output = Output(state.config, scaling, (report,), given, hindsight, indices)
    return replace(state, steps=state.steps + 1, core=core), output


def copied(state: State) -> State:
    """The same state in memory of its own."""
    with scope(state.config):
        return replace(state, core=jax.tree.map(lambda leaf: leaf.copy(), state.core))


def cross_predict(state: State, given: Given) -> CrossPrediction | None:
    """Foretell one half of a slice from the other, both ways; None as long as nothing has been learned."""
    if state.unit == 0 or state.steps == 0:
        return None
    state = _with_room(state, given.room)
    (half,) = placing.placed(given.piece, given.room, placing.half(given.piece, state.steps))
    with scope(state.config):
        values = given.values(Scaling.of(state.config, state.unit))
        told = run_cross_predict(state.core, values, given.mask(), half, working(state), given.entry_index())
        return CrossPrediction(*placing.as_given(told, given.piece))


def look(state: State, values: Any, mask: Any = None) -> Result:
    """What `step` would say with the factors held fixed: nothing is learned."""
    given = _given(state, values, mask)
    state = _with_unit(_with_room(state, given.room), given.piece)
    scaling = Scaling.of(state.config, state.unit)
    with scope(state.config):
        report = project(state.core, given.values(scaling), given.mask(), working(state), given.entry_index())
    indices = given.piece.indices if isinstance(given.piece, Entries) else None
    return Result(Output(state.config, scaling, (report,), given, indices=indices))


def smoothed(state: State, lag: int) -> Result:
    """What is known now about the slice `lag` steps before the newest; later slices have corrected it."""
    most = min(state.steps, state.config.window)
    if isinstance(lag, bool) or not hasattr(lag, "__index__"):
        raise TypeError(f"lag must be a whole number, got {lag!r}.")
    if not 0 <= lag < most:
        raise ValueError(f"lag must be at least 0 and below the {most} slices now in the window, got {lag!r}.")
    with scope(state.config):
        report = smooth(state.core, np.int32(lag), working(state))
    indices = None
    if state.core.window.entry_index is not None:
        places, slot = state.core.window.entry_index, (int(state.core.window.newest) - lag) % state.config.window
        count = int(places.lengths[slot])
        indices = tuple(np.asarray(index[slot, :count]) for index in places.indices)
        report = placing.shortened(jax.device_get(report), (count,))
    return Result(Output(state.config, Scaling.of(state.config, state.unit), (report,), indices=indices))


def at(state: State, indices: Sequence[Any]) -> Result:
    """What is known now about some entries of the newest slice, observed or not. Arrays are as the indices are."""
    wanted = checked_indices(tuple(np.broadcast_arrays(*indices)) if len(indices) else (), state.shape)
    with scope(state.config):
        if state.entries is None:
            report = jax.device_get(smooth(state.core, np.int32(0), working(state)))
            report = jax.tree.map(lambda array: array[wanted] if np.shape(array) == state.shape else array, report)
        else:
            report = jax.device_get(run_at(state.core, working(state), placing.bare_entry_index(wanted, state.shape)))
            report = placing.shortened(report, wanted[0].shape)
    return Result(Output(state.config, Scaling.of(state.config, state.unit), (report,), indices=wanted))


def living(state: State) -> NDArray[np.bool_]:
    """Which of the `max_rank` components count."""
    with scope(state.config):
        return np.asarray(rank.living(state.core.factors, state.config.start))


def outlier_share(state: State) -> float:
    """The share of outliers that the model expects; of the default outlier model."""
    outliers = state.core.outliers
    assert isinstance(outliers, Contaminated)
    return float(outliers.rate_a / (outliers.rate_a + outliers.rate_b))


def scope(config: Config) -> Any:
    """The precision of this model, whatever JAX's global setting; to be held around every compiled call."""
    return jax.enable_x64(config.dtype == "float64")


def check_memory(configs: Sequence[Config], shape: tuple[int, ...], entries: int | None = None) -> None:
    """Refuse, before anything is allocated, what cannot fit into the memory now free. All configurations together.

    With `entries`, only so many of a slice are kept.
    """
    config = configs[0]
    kept, worked = memory(config, shape) if entries is None else placing.memory(config, shape, entries)
    needed, free = len(configs) * kept + worked, free_memory()
    if needed > free:
        raise ValueError(
            f"x of shape {shape} with window={config.window} and max_rank={config.max_rank} needs about "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free: "
            "use a smaller window or max_rank, preset='fixed', or cut the slices into smaller ones."
        )


def memory(config: Config, shape: tuple[int, ...]) -> tuple[int, int]:
    """Bytes that one state keeps, about, and that a step works in."""
    size = 8 if config.dtype == "float64" else 4
    entries, packed = math.prod(shape), config.max_rank * (config.max_rank + 1) // 2
    kept = (config.window * (5 * size + 1) + 5 * len(WALK_RATIOS) * size) * entries
    rows = 8 * (sum(shape) + config.window) * config.max_rank**2 * size
    worked = config.window * entries * 11 * size
    contracted = sorted((config.window, *shape))[-2]  # the sweeps sum over the two biggest axes first
    worked += 4 * config.window * entries // contracted * packed * size
    worked += 3 * max(shape) ** 2 * size if config.start == "svd" else 0
    return kept + rows, worked


def free_memory() -> int:
    """Bytes of main memory that can be had now."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux: all there is, since what is free cannot be told
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62


def _given(state: State, values: Any, mask: Any) -> Given:
    piece = as_piece(state.shape, state.entries is not None, values, mask)
    return Given(piece, room_for(piece, state.entries))


def _with_room(state: State, room: int | None) -> State:
    """A slice with more entries than any before makes the window wider."""
    if room is None or room == state.entries:
        return state
    check_memory([state.config], state.shape, room)
    with scope(state.config):
        return replace(state, core=placing.widened(state.core, room))


def _with_unit(state: State, piece: Piece) -> State:
    """Fix the unit when the first data other than 0 arrive; what was learned from zeros alone is dropped."""
    if state.unit > 0:
        return state
    unit = first_unit(piece)
    if unit == 0:
        return state
    with scope(state.config):
        core = replace(init_core(state.config.settings(), state.shape, state.entries), window=state.core.window)
    return replace(state, unit=unit, core=core)
