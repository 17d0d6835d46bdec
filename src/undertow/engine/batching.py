"""The step of many streams of one shape: the functions of `undertow.model.step`, under `vmap`.

`vmap(step)` would sweep every member until the slowest has converged, and select over whole states at every turn. Here
the host runs the loops instead: every member needs a sweep, a judged move or nothing more; those that need the same
are gathered into a smaller batch, worked on and put back. Each gets exactly what `step` would have given it. One small
transfer per batch, what is needed next, is all that the host sees. Batches have a few fixed sizes, so that little is
compiled; rows that are left over in one are computed in vain.

`undertow bench fleet` measures it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.model import platform
from undertow.model.control import Progress, judge_due, sweep_due
from undertow.model.phases.begin import begin
from undertow.model.phases.finish import closed, finish
from undertow.model.phases.infer import cross_predict, latest
from undertow.model.phases.judge import judge
from undertow.model.phases.sweep import sweep
from undertow.model.report import Report
from undertow.model.settings import Settings, Slots
from undertow.model.step import init_core
from undertow.model.types import Core, Window
from undertow.programs.program import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


Tree = TypeVar("Tree")

NOTHING, SWEEP, JUDGE = range(3)
"""What a member can need next."""
WORK: dict[int, Callable[[Settings, Window, Progress], Progress]] = {SWEEP: sweep, JUDGE: judge}
BATCH_RATIO = 8
"""Each size of batch over the next smaller one."""


def advance_all(
    core: Core, values: NDArray[Any], mask: NDArray[np.bool_], present: NDArray[np.bool_], settings: Settings
) -> tuple[Core, Report]:
    """One slice for every member that is present.

    Args:
        core: States of all members, members first, as in all arrays here.
        values: Scaled slices.
        mask: True where observed.
        present: Which members have a slice. The others keep their state bit for bit.
        settings: The same for all.

    Returns:
        The states after the slices, and the reports, of which those of absent members mean nothing.
    """
    window, progress, asked = open_all(core, values, mask, settings)
    needs = np.where(present, fetch(asked), NOTHING)

    def work(need: int) -> None:
        nonlocal progress
        for rows, size in batches(np.flatnonzero(needs == need), len(needs)):
            padded = np.full(size, len(needs), np.int32)
            padded[: len(rows)] = rows
            progress, asked = work_some(WORK[need], settings, window, progress, padded)
            needs[rows] = fetch(asked)[: len(rows)]

    while (needs == SWEEP).any() or (needs == JUDGE).any():
        while (needs == SWEEP).any():
            work(SWEEP)
        work(JUDGE)
    result: tuple[Core, Report] = close_all(core, window, progress, present, settings)
    return result


def in_threads(work: Callable[[int], Any], count: int) -> list[Any]:
    """The work of all chunks, several at a time."""
    if count == 1:
        return [work(0)]
    with ThreadPoolExecutor(platform.current().chunk_threads) as pool:
        return list(pool.map(work, range(count)))


def fetch(needs: Array) -> NDArray[np.int8]:
    """From the device: the one thing that the host must know to go on."""
    return np.array(needs)


def batches(rows: NDArray[np.intp], members: int) -> Iterator[tuple[NDArray[np.intp], int]]:
    """The rows cut into batches: those in each, and its size with what is left over."""
    here = platform.current()
    while len(rows):
        size = members
        while len(rows) < here.batch_fill * size and size // BATCH_RATIO >= min(here.smallest_batch, members):
            size //= BATCH_RATIO
        yield rows[:size], size
        rows = rows[size:]


def needed(settings: Settings, window: Window, progress: Progress) -> Array:
    """What a member needs next, as a number."""
    later = jnp.where(judge_due(settings, window, progress), JUDGE, NOTHING)
    return jnp.where(sweep_due(progress), SWEEP, later).astype(jnp.int8)


@program()
def open_all(core: Core, values: Array, mask: Array, settings: Settings) -> tuple[Window, Progress, Array]:
    """`phases.begin` for all, and what they need next."""
    window, progress = jax.vmap(begin, in_axes=(0, 0, 0, None))(core, values, mask, settings)
    return window, progress, jax.vmap(needed, in_axes=(None, 0, 0))(settings, window, progress)


@program(static=["work"], donate=["progress"])
def work_some(
    work: Callable[[Settings, Window, Progress], Progress],
    settings: Settings,
    window: Window,
    progress: Progress,
    rows: Array,
) -> tuple[Progress, Array]:
    """One kind of work for some members; rows beyond the last have no member."""

    def taken(tree: Tree) -> Tree:
        part: Tree = jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=0, mode="clip"), tree)
        return part

    own_window, own = taken(window), taken(progress)
    own = jax.vmap(work, in_axes=(None, 0, 0))(settings, own_window, own)
    asked = jax.vmap(needed, in_axes=(None, 0, 0))(settings, own_window, own)
    progress = jax.tree.map(lambda whole, part: whole.at[rows].set(part, mode="drop"), progress, own)
    return progress, asked


@program()
def close_all(
    core: Core, window: Window, progress: Progress, present: Array, settings: Settings
) -> tuple[Core, Report]:
    """`phases.finish` for those that were present; the others' states are as before."""
    progress = jax.vmap(closed, in_axes=(None, 0, 0))(settings, window, progress)
    after, report = jax.vmap(finish, in_axes=(None, 0, 0, 0))(settings, core, window, progress)
    return choose_all(present, after, core), report


@program()
def latest_all(core: Core, which: Array, report: Report, settings: Settings) -> Report:
    """`infer.latest` for some members; the others' reports as they are."""
    chosen: Report = choose_all(which, jax.vmap(latest, in_axes=(0, None))(core, settings), report)
    return chosen


@program()
def cross_predict_all(core: Core, values: Array, mask: Array, half: Array, settings: Settings) -> tuple[Array, Array]:
    """`infer.cross_predict` for all."""
    means, variances = jax.vmap(cross_predict, in_axes=(0, 0, 0, 0, None))(core, values, mask, half, settings)
    return means, variances


@program(static=["settings", "size", "shape", "slots"])
def fresh(settings: Settings, size: int, shape: tuple[int, ...], slots: Slots) -> Core:
    """A batch of members that have seen nothing."""
    one = init_core(settings, shape, None, slots)
    core: Core = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), one)
    return core


@program(static=["settings", "with_window"])
def restart(core: Core, which: Array, settings: Settings, with_window: bool) -> Core:
    """Some members begin anew, with or without the slices in their window."""
    slots = Slots(core.window.values.shape[1], core.factors.active.shape[1])
    blank: Core = fresh(settings, which.shape[0], core.window.values.shape[2:], slots)
    if not with_window:
        blank = Core(core.window, blank.factors, blank.outliers, blank.level)
    chosen: Core = choose_all(which, blank, core)
    return chosen


@program()
def joined(core: Tree, more: Tree) -> Tree:
    """One batch of the members of two."""
    both: Tree = jax.tree.map(lambda *parts: jnp.concatenate(parts), core, more)
    return both


def choose_all(condition: Array, yes: Tree, no: Tree) -> Tree:
    """By member: `yes` where the condition holds, else `no`."""

    def chosen(one: Array, other: Array) -> Array:
        return jnp.where(condition.reshape(-1, *([1] * (one.ndim - 1))), one, other)

    result: Tree = jax.tree.map(chosen, yes, no)
    return result
