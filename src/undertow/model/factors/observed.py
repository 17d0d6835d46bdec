"""The operations of rows and predict over the observed entries of a sparse window only.

Every slice has E positions for entries (`types.EntryIndex`). Every operation is a sum over entries of products of rows
that their indices point to:

    G_i = Σ_{e: i_e = i} w_e ⊛_{k≠axis} B⁽ᵏ⁾[i_e],   g likewise,   x̄_e = Σ_r c̄_tr Π_n ā⁽ⁿ⁾[i_e]_r,   Var x_e likewise

Rows are gathered, multiplied and added up in chunks of entries, so that no temporary is larger than a chunk times P, a
table of P columns for the rows of a mode, or a number per position. Chunks without entries are skipped: cost of a sweep
O(entries · N² · P), with P = R(R+1)/2.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import CHUNK_NUMBERS, SOLVE_BLOCK
from undertow.model.factors.rows import (
    Solution,
    all_covariances,
    all_means,
    coordinate_updates,
    plan,
    solved,
    table,
)
from undertow.model.flow import where
from undertow.model.linalg.symmetric import multiplicity, outer, pack
from undertow.model.platform import on_cpu
from undertow.model.types import EntryIndex, Factors

Formula = Callable[[list[Array]], Array]
Work = Callable[[Array, list[Array], Array], Array]
Begin = Callable[[Array], Work]


def chunk_size(positions: int, columns: int) -> int:
    """Entries per chunk, with rows of this many columns."""
    numbers = CHUNK_NUMBERS["cpu" if on_cpu() else "other"]
    most: int = 1 << (max(numbers // columns, 1).bit_length() - 1)
    return min(positions & -positions, most)


def rows_of(table: Array, index: Array) -> Array:
    """The rows that indices point to. They have been validated."""
    return table.at[index].get(mode="promise_in_bounds")


def by_chunk(entry_index: EntryIndex, columns: int, carry: Array, begin: Begin, *arrays: Array) -> Array:
    """Hand all entries, chunk by chunk, to what `begin` makes of their slot: a function of the chunk and the carry.

    A chunk is its number, and of it the indices of all modes and every one of `arrays` (W, E).
    """
    length, width = entry_index.indices[0].shape
    size = chunk_size(width, columns)
    parts = [array.reshape(-1, size) for array in (*entry_index.indices, *arrays)]

    def one_slice(slot: Array, carry: Array) -> Array:
        work = begin(slot)

        def one_chunk(step: Array, carry: Array) -> Array:
            number = slot * (width // size) + step
            here = [lax.dynamic_index_in_dim(part, number, keepdims=False) for part in parts]
            return work(number, here, carry)

        done: Array = lax.fori_loop(0, -(-entry_index.lengths[slot] // size), one_chunk, carry)
        return done

    done: Array = lax.fori_loop(0, length, one_slice, carry)
    return done


def at_entries(entry_index: EntryIndex, columns: int, dtype: jnp.dtype, begin: Callable[[Array], Formula]) -> Array:
    """The formula that `begin` makes of a slot, of the indices of all its entries: (W, E), 0 in unused positions."""
    length, width = entry_index.indices[0].shape
    size = chunk_size(width, columns)

    def begin_work(slot: Array) -> Work:
        formula = begin(slot)

        def work(number: Array, here: list[Array], done: Array) -> Array:
            updated: Array = lax.dynamic_update_index_in_dim(done, formula(here), number, 0)
            return updated

        return work

    empty = jnp.zeros((length * width // size, size), dtype)
    return by_chunk(entry_index, columns, empty, begin_work).reshape(length, width)


def across(products: Array, columns: Array) -> Array:
    """Σ_k products[:, k] columns_k. As a product of matrices, which processors are much better at than at sums."""
    return jnp.matmul(_kept(products), columns, precision=lax.Precision.HIGHEST)


def down(products: Array) -> Array:
    """Σ_e products[e], likewise."""
    ones = jnp.ones((1, products.shape[0]), products.dtype)
    return jnp.matmul(ones, _kept(products), precision=lax.Precision.HIGHEST)[0]


def _kept(array: Array) -> Array:
    """The array, computed once: fused into what follows, it would be computed again and again."""
    kept: Array = lax.optimization_barrier(array)  # type: ignore[no-untyped-call]
    return kept


def low_rank(factors: Factors, entry_index: EntryIndex) -> Array:
    """x̄ of every entry (W, E)."""
    ones = jnp.ones(factors.active.shape, factors.row_means.dtype)

    def begin(slot: Array) -> Formula:
        def formula(here: list[Array]) -> Array:
            product = factors.row_means[slot]
            for mean, index in zip(factors.means, here, strict=True):
                product = product * rows_of(mean, index)
            return across(product, ones)

        return formula

    return at_entries(entry_index, ones.shape[0], ones.dtype, begin)


def variance(factors: Factors, entry_index: EntryIndex) -> Array:
    """Var[x] of every entry (W, E), by the telescoped sum of `predict.variance`."""
    squares = [outer(mean) for mean in all_means(factors)]
    variances = [pack(covariance) for covariance in all_covariances(factors)]
    return jnp.maximum(_telescoped(squares, variances, multiplicity(factors.active.shape[0]), entry_index), 0)


def component(factors: Factors, slot: Array, entry_index: EntryIndex) -> tuple[Array, Array]:
    """What one component adds to x̄ and to Var[x] of every entry (W, E)."""
    means, covariances = all_means(factors), all_covariances(factors)
    columns = [mean[:, slot] for mean in means]
    squares = [column[:, None] * mean for column, mean in zip(columns, means, strict=True)]
    variances = [covariance[:, slot] for covariance in covariances]
    twice = where(jnp.arange(means[0].shape[1]) == slot, 1, 2)
    return outer_product(columns, entry_index), _telescoped(squares, variances, twice, entry_index)


def _telescoped(squares: list[Array], variances: list[Array], counts: Array, entry_index: EntryIndex) -> Array:
    """The sum in `predict.variance`. Time and the biggest mode make one table per slice, so that of most entries only
    one row of it and one of each other mode are needed."""
    order = by_size(entry_index.sizes)
    (biggest, *middle), last = [mode + 1 for mode in order[:-1]] or [order[0] + 1], order[-1] + 1
    counts = counts.astype(squares[0].dtype)
    alone = len(order) == 1
    right = jnp.concatenate([squares[last] + variances[last], variances[last]], axis=1)
    tables = {mode: jnp.concatenate([squares[mode], variances[mode]], axis=1) for mode in middle}
    width = counts.shape[0]

    def begin(slot: Array) -> Formula:
        square = squares[0][slot] * squares[biggest]
        moment = squares[biggest] + variances[biggest]
        varied = variances[0][slot] * moment + squares[0][slot] * variances[biggest]
        if alone:
            total = jnp.matmul(varied, counts, precision=lax.Precision.HIGHEST)
            return lambda here: rows_of(total, here[0])
        left = _kept(jnp.concatenate([varied * counts, square * counts], axis=1))

        def formula(here: list[Array]) -> Array:
            product = rows_of(left, here[biggest - 1])
            for mode in middle:
                own = rows_of(tables[mode], here[mode - 1])
                varied, square = product[:, :width], product[:, width:]
                own_square, own_variance = own[:, :width], own[:, width:]
                varied = varied * (own_square + own_variance) + square * own_variance
                product = jnp.concatenate([varied, square * own_square], axis=1)
            return across(product * rows_of(right, here[last - 1]), jnp.ones(2 * width, counts.dtype))

        return formula

    return at_entries(entry_index, 2 * width, counts.dtype, begin)


def axis_sums(
    tables: list[Array], weights: Array, weighted: Array, axis: int, packed: int, entry_index: EntryIndex
) -> Array:
    """G and g, side by side, of all rows of one axis (rows, P + R); a table holds B and ā of an axis side by side."""
    is_gram = jnp.arange(tables[0].shape[1]) < packed

    def begin(slot: Array) -> Work:
        def work(number: Array, here: list[Array], total: Array) -> Array:
            *indices, weight, target = here
            product = jnp.ones_like(is_gram, weights.dtype) if axis == 0 else tables[0][slot]
            for mode, index in enumerate(indices, start=1):
                if mode != axis:
                    product = product * rows_of(tables[mode], index)
            product = product * where(is_gram, weight[:, None], target[:, None])
            if axis == 0:
                return total.at[slot].add(down(product))
            return total.at[indices[axis - 1]].add(product, mode="promise_in_bounds")

        return work

    return by_chunk(entry_index, is_gram.shape[0], jnp.zeros_like(tables[axis]), begin, weights, weighted)


def column_sums(
    squares: list[Array], means: list[Array], weights: Array, weighted: Array, axis: int, entry_index: EntryIndex
) -> tuple[Array, Array]:
    """G and g of one component alone, each (rows,); `squares` are its E a²."""
    tables = [jnp.stack(pair, axis=1) for pair in zip(squares, means, strict=True)]
    sums = axis_sums(tables, weights, weighted, axis, 1, entry_index)
    return sums[:, 0], sums[:, 1]


def update_axes(
    factors: Factors,
    weights: Array,
    weighted: Array,
    time_weights: Array,
    updated: list[int],
    entry_index: EntryIndex,
    relaxation: Array | float | None = None,
) -> tuple[Factors, Array]:
    """Updates of axes in turn; see `rows.update_axes`."""
    packed = factors.row_means.shape[1] * (factors.row_means.shape[1] + 1) // 2
    tables = [table(factors, axis) for axis in range(len(factors.means) + 1)]

    def sums(_: Factors, axis: int) -> Array:
        return axis_sums(tables, weights, weighted, axis, packed, entry_index)

    def refresh(factors: Factors, axis: int) -> None:
        tables[axis] = table(factors, axis)

    failed = jnp.zeros((), jnp.int32)
    return coordinate_updates(factors, updated, sums, time_weights, relaxation, failed, _solve_blocks, refresh)


def _solve_blocks(sums: Array, factors: Factors, weight: Array) -> Solution:
    """The update by G and g side by side, a block of rows at a time, so that temporaries stay small."""
    count, packed = weight.shape[0], sums.shape[1] - factors.active.shape[0]
    gram, projection = sums[:, :packed], sums[:, packed:]
    if count <= SOLVE_BLOCK:
        return solved((gram, projection), factors, weight)

    def blocks(array: Array) -> Array:
        padded = jnp.pad(array, [(0, -count % SOLVE_BLOCK), *[(0, 0)] * (array.ndim - 1)])
        return padded.reshape(-1, SOLVE_BLOCK, *array.shape[1:])

    def solve(block: tuple[Array, Array, Array]) -> Solution:
        return solved(block[:2], factors, block[2])

    parts = lax.map(solve, (blocks(gram), blocks(projection), blocks(weight)))
    mean, covariance, found = (part.reshape(-1, *part.shape[2:])[:count] for part in parts)
    return mean, covariance, found


def sweep(
    factors: Factors,
    weights: Array,
    targets: Array,
    time_weights: Array,
    entry_index: EntryIndex,
    relaxation: Array | float | None = None,
) -> tuple[Factors, Array]:
    """Update every axis once: the biggest mode, the other modes, the temporal rows."""
    biggest, _ = plan((weights.shape[0], *entry_index.sizes))
    others = [axis for axis in range(1, len(entry_index.sizes) + 1) if axis != biggest]
    return update_axes(
        factors, weights, weights * targets, time_weights, [biggest, *others, 0], entry_index, relaxation
    )


def outer_product(columns: list[Array], entry_index: EntryIndex) -> Array:
    """Π over axes of one column each, at every entry (W, E)."""

    def begin(slot: Array) -> Formula:
        def formula(here: list[Array]) -> Array:
            product = columns[0][slot]
            for column, index in zip(columns[1:], here, strict=True):
                product = product * rows_of(column, index)
            return product

        return formula

    return at_entries(entry_index, 1, columns[0].dtype, begin)


def row_sums(values: Array, mode: int, entry_index: EntryIndex) -> Array:
    """Σ of (W, E) over all entries of each row of a mode (I_mode,)."""

    def work(number: Array, here: list[Array], total: Array) -> Array:
        return total.at[here[mode]].add(here[-1], mode="promise_in_bounds")

    return by_chunk(entry_index, 1, jnp.zeros(entry_index.sizes[mode], values.dtype), lambda slot: work, values)


def by_size(sizes: tuple[int, ...]) -> list[int]:
    """The modes, biggest first."""
    return sorted(range(len(sizes)), key=lambda mode: -sizes[mode])


def sample(values: Array, entry_index: EntryIndex, most: int) -> Array:
    """About `most` of the values, evenly spread over the entries of the window; all positions where they are few."""
    if values.size < 2 * most:
        return values.reshape(-1)
    ends = jnp.cumsum(entry_index.lengths)
    ranks = (jnp.arange(most) * (ends[-1] / most)).astype(jnp.int32)
    slots = jnp.minimum(jnp.searchsorted(ends, ranks, side="right"), ends.shape[0] - 1)
    return values[slots, jnp.clip(ranks - ends[slots] + entry_index.lengths[slots], 0, values.shape[1] - 1)]


Summary = tuple[Array, ...]
"""A slice, all entries of it, as its factors have it: its temporal row (R,), and the mode factors."""


def size_of(slice_: Summary) -> Array:
    """Root mean square of all entries of a slice, by R × R matrices: O(ΣI · R²)."""
    gram = jnp.outer(slice_[0], slice_[0])
    for mean in slice_[1:]:
        gram = gram * (jnp.matmul(mean.T, mean, precision=lax.Precision.HIGHEST) / mean.shape[0])
    return jnp.sqrt(jnp.maximum(gram.sum(), 0))


def distance(one: Summary, other: Summary) -> Array:
    """Root mean square difference of two slices, all entries of them.

    As a sum of terms in which one factor is a difference, so that nothing large is subtracted:
    Σ_k (Π_{n<k} one_n) (one_k − other_k) (Π_{n>k} other_n).
    """
    terms = range(len(one))
    mixed = []
    for axis, (ours, theirs) in enumerate(zip(one, other, strict=True)):
        parts = [ours if axis < k else ours - theirs if axis == k else theirs for k in terms]
        mixed.append(jnp.concatenate(parts, axis=-1))
    return size_of(tuple(mixed))
