"""Branches and loops of compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.platform import on_cpu, on_mesh

Tree = TypeVar("Tree")
Function = TypeVar("Function", bound=Callable[..., Any])


def shared(function: Function) -> Function:
    """A function that stands in a program once for each combination of shapes, however often it is called there."""
    once: Any = jax.jit(function)
    return cast(Function, once)


def where(condition: Array | bool, yes: Array | float, no: Array | float) -> Array:
    """`jnp.where` as one operation: JAX's own is a function in the program for each combination of shapes and types."""
    condition = jnp.asarray(condition)
    dtype, shape = jnp.result_type(yes, no), jnp.broadcast_shapes(condition.shape, jnp.shape(yes), jnp.shape(no))
    first, second = (jnp.broadcast_to(jnp.asarray(one, dtype), shape) for one in (yes, no))
    return lax.select(condition if condition.ndim == 0 else jnp.broadcast_to(condition, shape), first, second)


def starts(position: Array, axis: int, dimensions: int) -> list[Array | np.ndarray]:
    """Where a slice begins that lies at a position of one axis: 0 on the others."""
    zero = np.zeros((), jnp.result_type(position))
    return [position if other == axis else zero for other in range(dimensions)]


def inverse_of(weight: Array) -> Array:
    """1 / weight; 0 where there is none."""
    return where(weight > 0, 1 / jnp.maximum(weight, float(np.finfo(weight.dtype).tiny)), 0)


def choose(condition: Array | bool, yes: Tree, no: Tree) -> Tree:
    """`yes` where the condition holds, else `no`."""
    chosen: Tree = jax.tree.map(lambda one, other: where(condition, one, other), yes, no)
    return chosen


def only_if(condition: Array | bool, work: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """`work(tree)` where the condition holds, else the tree: as `lax.cond`, but in the memory of the tree. What is
    known while the program is traced is no branch; here and below."""
    if isinstance(condition, bool):
        return work(tree) if condition else tree

    def once(carry: tuple[Array, Tree]) -> tuple[Array, Tree]:
        return jnp.asarray(False), work(carry[1])

    result: Tree = lax.while_loop(lambda carry: carry[0], once, (condition, tree))[1]
    return result


def in_place(condition: Array, work: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """The same where the work is cheap: a GPU does it always, and chooses."""
    return only_if(condition, work, tree) if on_cpu() else choose(condition, work(tree), tree)


def either(condition: Array | bool, yes: Callable[[], Tree], no: Callable[[], Tree]) -> Tree:
    """`yes()` or `no()`, where both are cheap: a GPU computes both, since asking the host takes longer."""
    if isinstance(condition, bool):
        return yes() if condition else no()
    if on_cpu():
        made: Tree = lax.cond(condition, yes, no)
        return made
    return choose(condition, yes(), no())


def end_to_end(parts: list[Array]) -> list[Array]:
    """Rows of all axes as one array, to be worked on in one go; on a mesh as they are: one array would be gathered."""
    return parts if on_mesh() else [jnp.concatenate(parts)]


def each(work: Callable[[Any], Tree], items: Any) -> Tree:
    """The work for each of a few items: one after the other on a CPU, together where asking the host takes longer."""
    made: Tree = lax.map(work, items) if on_cpu() else jax.vmap(work)(items)
    return made


def times(count: int, turn: Callable[[Tree], Tree], start: Tree) -> Tree:
    """A turn made that often: a loop on a CPU. A GPU starts each turn of a loop anew, which takes longer than most of
    them, so there they are laid end to end."""
    if on_cpu():
        looped: Tree = lax.fori_loop(0, count, lambda _, now: turn(now), start)
        return looped
    for _ in range(count):
        start = turn(start)
    return start


def while_due(
    due: Callable[[Tree], Array],
    turn: Callable[[Tree], Tree],
    start: Tree,
    likely: int,
    most: int | None = None,
) -> Tree:
    """As `lax.while_loop`, the first turn of which is always due.

    A GPU makes the `likely` number of turns before it asks the host, those that are not due in vain, and asks nothing
    where there are `most` as many.
    """
    if not on_cpu():
        for number in range(likely):
            start = turn(start) if number == 0 else choose(due(start), turn(start), start)
        if most is not None and most <= likely:
            return start
    end: Tree = lax.while_loop(due, turn, start)
    return end


def repeat(move: Callable[[Tree], tuple[Tree, Array]], start: Tree, most: int | Array) -> tuple[Tree, Array]:
    """Repeat a move until it is refused, `most` times at most. Returns how often it was made, too."""

    def again(carry: tuple[Tree, Array, Array]) -> tuple[Tree, Array, Array]:
        result, made = move(carry[0])
        return result, made, carry[2] + made

    first = (start, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    result, _, count = lax.while_loop(lambda carry: carry[1] & (carry[2] < most), again, first)
    return result, count
