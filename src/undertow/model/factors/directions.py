"""Leading directions of a tensor, one unit vector per axis: the spectral start of a candidate component."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.defaults import POWER_ITERATIONS
from undertow.model.factors.observed import Work, by_chunk, by_size, row_sums, rows_of
from undertow.model.flow import times
from undertow.model.platform import on_mesh
from undertow.model.types import EntryIndex


def leading_directions(gradient: Array, entry_index: EntryIndex | None = None) -> list[Array]:
    """A rank-one start for `gradient` (W, I_1, …, I_N), one unit vector per axis.

    For each mode in turn (biggest first): the leading left singular vector of its unfolding, by power iteration from
    the row of largest norm (so neither chance nor the order of rows matters), then project onto it and go on.
    """
    if entry_index is not None:
        found, smallest, left = _sparse_directions(gradient, entry_index)
        found[0], found[smallest + 1] = leading_directions(left)
        return [found[axis] for axis in sorted(found)]
    axes = list(range(gradient.ndim))
    vectors: dict[int, Array] = {}
    for axis in sorted(axes[1:], key=lambda axis: -gradient.shape[axis]):
        position = axes.index(axis)
        rest = tuple(size for other, size in enumerate(gradient.shape) if other != position)
        columns = position == gradient.ndim - 1  # rows as they lie in memory: turning them would copy the window
        matrix = gradient if columns else jnp.moveaxis(gradient, position, 0)
        matrix = matrix.reshape((-1, gradient.shape[position]) if columns else (gradient.shape[position], -1))

        def onto_rows(direction: Array, matrix: Array = matrix, columns: bool = columns) -> Array:
            return unit(_product(direction, matrix) if columns else _product(matrix, direction))

        def turn(direction: Array, matrix: Array = matrix, columns: bool = columns) -> Array:
            vector = onto_rows(direction, matrix, columns)
            return _product(matrix, vector) if columns else _product(vector, matrix)

        direction = times(POWER_ITERATIONS, turn, _longest_row(matrix, columns))
        vectors[axis] = onto_rows(direction)
        gradient = direction.reshape(rest)
        axes.remove(axis)
    vectors[0] = unit(gradient)
    return [vectors[axis] for axis in sorted(vectors)]


def _product(one: Array, other: Array) -> Array:
    return jnp.matmul(one, other, precision=lax.Precision.HIGHEST)


def _longest_row(matrix: Array, columns: bool) -> Array:
    """The first of the rows, or columns, of largest norm; on a mesh summed out, since picking it would gather all."""
    squares = (matrix**2).sum(axis=0 if columns else 1)
    if not on_mesh():
        return jnp.take(matrix, jnp.argmax(squares), axis=1 if columns else 0)
    positions = jnp.arange(squares.size)
    first = positions == jnp.where(squares == squares.max(), positions, squares.size).min()
    return jnp.where(first if columns else first[:, None], matrix, 0).sum(axis=1 if columns else 0)


def _sparse_directions(gradient: Array, entry_index: EntryIndex) -> tuple[dict[int, Array], int, Array]:
    """Directions of all modes but the smallest, by axis; that mode; and what is left for it and for time, (W, I)."""
    *bigger, smallest = by_size(entry_index.sizes)
    vectors: dict[int, Array] = {}
    for level, mode in enumerate(bigger):
        last = mode == bigger[-1]
        rest = entry_index.indices[smallest] if last else entry_index.fibres[level]
        size = entry_index.sizes[smallest] if last else gradient.shape[1]
        vectors[mode + 1], gradient = _leading_direction(gradient, mode, rest, size, entry_index)
    if not bigger:
        empty = jnp.zeros((gradient.shape[0], entry_index.sizes[0]), gradient.dtype)
        slots = jnp.arange(gradient.shape[0])[:, None]
        gradient = empty.at[slots, entry_index.indices[0]].add(gradient, mode="promise_in_bounds")
    return vectors, smallest, gradient


def _leading_direction(
    gradient: Array, mode: int, rest: Array, size: int, entry_index: EntryIndex
) -> tuple[Array, Array]:
    """The leading left singular vector of the unfolding along a mode (I_mode,), and what is left: (W, size).

    `rest` (W, E) says in which of `size` columns of its slice an entry lies: the
    index of the only other mode, or a position that represents all entries with the same indices on the other modes.
    """
    no_rows = jnp.zeros(entry_index.sizes[mode], gradient.dtype)
    no_rest = jnp.zeros((gradient.shape[0], size), gradient.dtype)

    def onto_rows(direction: Array) -> Array:
        def begin(slot: Array) -> Work:
            def work(number: Array, here: list[Array], total: Array) -> Array:
                *indices, values, column = here
                return total.at[indices[mode]].add(values * rows_of(direction[slot], column), mode="promise_in_bounds")

            return work

        return unit(by_chunk(entry_index, 1, no_rows, begin, gradient, rest))

    def onto_rest(vector: Array) -> Array:
        def begin(slot: Array) -> Work:
            def work(number: Array, here: list[Array], total: Array) -> Array:
                *indices, values, column = here
                return total.at[slot, column].add(values * rows_of(vector, indices[mode]), mode="promise_in_bounds")

            return work

        return by_chunk(entry_index, 1, no_rest, begin, gradient, rest)

    longest = jnp.argmax(row_sums(gradient**2, mode, entry_index))
    start = onto_rest(jnp.zeros_like(no_rows).at[longest].set(1))
    direction = lax.fori_loop(0, POWER_ITERATIONS, lambda _, direction: onto_rest(onto_rows(direction)), start)
    return onto_rows(direction), direction


def unit(vector: Array) -> Array:
    """The vector at length 1; 0 stays 0."""
    return vector * lax.rsqrt(jnp.maximum((vector**2).sum(), float(np.finfo(vector.dtype).tiny)))
