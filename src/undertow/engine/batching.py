"""The step of many streams of one shape at once: the same functions as `step.advance`, under `vmap`.

`vmap(advance)` would sweep every member until the slowest has settled, try to quench the noise of all because of one,
and select over whole states at every turn. Here the loops are run by the host instead: every member wants a sweep, a
move, to be thinned, a quench or nothing more; those that want the same are gathered into a smaller batch, worked on and
put back. Each gets exactly what `advance` would have given it. One small transfer per batch, the next wants, is all
that the host sees. Batches have a few fixed sizes, so that little is compiled; places that are left over in one are
computed in vain.

`undertow bench fleet` measures it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.model.phases.infer import Report, cross_predict
from undertow.model.phases.sweep import Progress, swept
from undertow.model.settings import Settings
from undertow.model.step import closed, crowded, due, init_core, moves, opened, quenched, sweeping, thinned, too_wide
from undertow.model.types import Core, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


Tree = TypeVar("Tree")

WORK: tuple[Callable[[Settings, Window, Progress], Progress], ...] = (swept, moves, thinned, quenched)
"""What a member can want, in order of number, from 1 on; 0 is nothing more."""
SHRINK = 8
"""Each size of batch over the next smaller one."""
SMALLEST = {"cpu": 8, "other": 64}
"""Smallest batch."""
FULL = {"cpu": 0.75, "other": 0.25}
"""How full a batch must be, or else smaller ones are used: starting one costs little on CPUs, and much on GPUs."""


def advance_all(
    core: Core, values: NDArray[Any], mask: NDArray[np.bool_], present: NDArray[np.bool_], settings: Settings
) -> tuple[Core, Report]:
    """One slice for every member that is present; all arguments but `settings` have members as their first axis.

    Members that are absent keep their state bit for bit.
    """
    window, progress, asked = open_all(core, values, mask, settings)
    wants = np.where(present, fetch(asked), 0)

    def work(want: int) -> None:
        nonlocal progress
        for places, size in batches(np.flatnonzero(wants == want), len(wants)):
            padded = np.full(size, len(wants), np.int32)
            padded[: len(places)] = places
            progress, asked = work_some(WORK[want - 1], settings, window, progress, padded)
            wants[places] = fetch(asked)[: len(places)]

    while (wants == 1).any() or (wants == 2).any():
        while (wants == 1).any():
            work(1)
        work(2)
    work(3)
    work(4)
    result: tuple[Core, Report] = close_all(core, window, progress, present, settings)
    return result


def fetch(wants: Array) -> NDArray[np.int8]:
    """From the device: the one thing that the host must know to go on."""
    return np.array(wants)


def batches(places: NDArray[np.intp], members: int) -> Iterator[tuple[NDArray[np.intp], int]]:
    """The places cut into batches: those in each, and its size with what is left over."""
    kind = "cpu" if jax.default_backend() == "cpu" else "other"
    while len(places):
        size = members
        while len(places) < FULL[kind] * size and size // SHRINK >= min(SMALLEST[kind], members):
            size //= SHRINK
        yield places[:size], size
        places = places[size:]


def wanted(settings: Settings, window: Window, progress: Progress) -> Array:
    """What a member wants next, as a number."""
    last = jnp.where(crowded(progress), 3, jnp.where(too_wide(settings, window, progress), 4, 0))
    return jnp.where(sweeping(progress), 1, jnp.where(due(settings, progress), 2, last)).astype(jnp.int8)


@jax.jit
def open_all(core: Core, values: Array, mask: Array, settings: Settings) -> tuple[Window, Progress, Array]:
    """`step.opened` for all, and what they want next."""
    window, progress = jax.vmap(opened, in_axes=(0, 0, 0, None))(core, values, mask, settings)
    return window, progress, jax.vmap(wanted, in_axes=(None, 0, 0))(settings, window, progress)


@partial(jax.jit, static_argnames="work", donate_argnames="progress")
def work_some(
    work: Callable[[Settings, Window, Progress], Progress],
    settings: Settings,
    window: Window,
    progress: Progress,
    places: Array,
) -> tuple[Progress, Array]:
    """Sweep, move or quench some members; places beyond the last are nobody's."""

    def taken(tree: Tree) -> Tree:
        part: Tree = jax.tree.map(lambda leaf: jnp.take(leaf, places, axis=0, mode="clip"), tree)
        return part

    own_window, own = taken(window), taken(progress)
    own = jax.vmap(work, in_axes=(None, 0, 0))(settings, own_window, own)
    asked = jax.vmap(wanted, in_axes=(None, 0, 0))(settings, own_window, own)
    progress = jax.tree.map(lambda whole, part: whole.at[places].set(part, mode="drop"), progress, own)
    return progress, asked


@jax.jit
def close_all(
    core: Core, window: Window, progress: Progress, present: Array, settings: Settings
) -> tuple[Core, Report]:
    """`step.closed` for those that were present; the others' states are as before."""
    after, report = jax.vmap(closed, in_axes=(None, 0, 0, 0))(settings, core, window, progress)
    return choose_all(present, after, core), report


@jax.jit
def cross_predict_all(core: Core, values: Array, mask: Array, half: Array, settings: Settings) -> tuple[Array, Array]:
    """`looks.foretell` for all."""
    means, variances = jax.vmap(cross_predict, in_axes=(0, 0, 0, 0, None))(core, values, mask, half, settings)
    return means, variances


@partial(jax.jit, static_argnames=("settings", "size", "shape"))
def fresh(settings: Settings, size: int, shape: tuple[int, ...]) -> Core:
    """A batch of members that have seen nothing."""
    core: Core = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), init_core(settings, shape))
    return core


@partial(jax.jit, static_argnames=("settings", "with_window"))
def restart(core: Core, which: Array, settings: Settings, with_window: bool) -> Core:
    """Some members begin anew, with or without the slices in their window."""
    blank: Core = fresh(settings, which.shape[0], core.window.values.shape[2:])
    if not with_window:
        blank = Core(core.window, blank.factors, blank.outliers, blank.level)
    chosen: Core = choose_all(which, blank, core)
    return chosen


def choose_all(condition: Array, yes: Tree, no: Tree) -> Tree:
    """By member: `yes` where the condition holds, else `no`."""

    def chosen(one: Array, other: Array) -> Array:
        return jnp.where(condition.reshape(-1, *([1] * (one.ndim - 1))), one, other)

    result: Tree = jax.tree.map(chosen, yes, no)
    return result
