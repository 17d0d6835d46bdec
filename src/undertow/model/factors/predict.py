"""Mean and variance of the low-rank part, for one slice or for every slice of the window."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import SLICES_TOGETHER, SMALL_WINDOW
from undertow.model.factors.rows import all_covariances, all_means, plan, row_by_row
from undertow.model.flow import starts, where
from undertow.model.linalg.symmetric import multiplicity, outer, pack
from undertow.model.platform import on_cpu
from undertow.model.types import Factors


def low_rank(factors: Factors) -> Array:
    """x̄ = Σ_r c̄ Π_n ā for the whole window (W, I_1, …, I_N)."""
    means = all_means(factors)
    biggest, _ = plan(_shape(means))
    return _expand(_product(means, biggest), means[biggest], biggest)


def variance(factors: Factors) -> Array:
    """Var[x] of every entry of the window (W, I_1, …, I_N), by the telescoped sum

        Var[x] = 1ᵀ Σ_n (Π_{k<n} āāᵀ) ∘ V⁽ⁿ⁾ ∘ (Π_{k>n} B⁽ᵏ⁾) 1.

    Every term is ≥ 0, so nothing cancels (E[x²] − x̄² loses all digits in float32 at high signal-to-noise).
    Cost: two products of (W·ΠI / biggest) × P by P × biggest.
    """
    squares, variances = row_by_row(outer, all_means(factors)), row_by_row(pack, all_covariances(factors))
    return jnp.maximum(_telescoped(squares, variances, multiplicity(factors.active.shape[0])), 0)


def component(factors: Factors, slot: Array) -> tuple[Array, Array]:
    """What one component adds to x̄ and to Var[x] (W, I_1, …, I_N); the others' variances with it are counted in.

    Cost: as `variance`, with R columns instead of R(R+1)/2.
    """
    size = factors.active.shape[0]

    def own(rows: Array) -> Array:
        """The entries of this component (rows, 1 or R)."""
        start, sizes = starts(slot, 1, rows.ndim), (rows.shape[0], 1, *rows.shape[2:])
        return lax.dynamic_slice(rows, start, sizes, allow_negative_indices=False).reshape(rows.shape[0], -1)

    squares = row_by_row(lambda means: own(means) * means, all_means(factors))
    variances = row_by_row(own, all_covariances(factors))
    twice = where(jnp.arange(size) == slot, 1, 2)
    columns = [column[:, 0] for column in row_by_row(own, all_means(factors))]
    return outer_product(columns), _telescoped(squares, variances, twice)


def outer_product(columns: list[Array]) -> Array:
    """Π over axes of one column each (W, I_1, …, I_N)."""
    product = columns[0]
    for column in columns[1:]:
        product = product[..., None] * column
    return product


def _telescoped(squares: list[Array], variances: list[Array], counts: Array) -> Array:
    """The sum in `variance` over K pairs of components: āāᵀ and V of every axis, each (rows, K).

    On a CPU large windows are worked on a few slices at a time: what is multiplied stays in cache.
    """
    shape = _shape(squares)
    if shape[0] > SLICES_TOGETHER and math.prod(shape) > SMALL_WINDOW and on_cpu():
        few = math.gcd(shape[0], SLICES_TOGETHER)

        def of_few(rows: tuple[Array, Array]) -> Array:
            return _telescoped([rows[0], *squares[1:]], [rows[1], *variances[1:]], counts)

        rows = (part[0].reshape(-1, few, counts.size) for part in (squares, variances))
        made: Array = lax.map(of_few, tuple(rows))
        return made.reshape(shape)
    biggest, _ = plan(shape)
    square = varied = None
    for axis in range(len(shape)):
        if axis == biggest:
            continue
        own_square, own_variance = (_along(part[axis], axis, len(shape), biggest) for part in (squares, variances))
        if square is None or varied is None:
            square, varied = own_square, own_variance
        else:
            square, varied = square * own_square, varied * (own_square + own_variance) + square * own_variance
    assert square is not None
    assert varied is not None
    counts = counts.astype(square.dtype)
    left = jnp.concatenate([varied * counts, square * counts], axis=-1)
    right = jnp.concatenate([squares[biggest] + variances[biggest], variances[biggest]], axis=-1)
    return _expand(left, right, biggest)


def _shape(matrices: list[Array]) -> tuple[int, ...]:
    return tuple(matrix.shape[0] for matrix in matrices)


def _along(columns: Array, axis: int, dimensions: int, left_out: int) -> Array:
    """(size, K) along `axis` of a (…, K) array that has every axis but `left_out`."""
    position = axis - (axis > left_out)
    shape = [1] * dimensions
    shape[position], shape[-1] = columns.shape
    return columns.reshape(shape)


def _product(columns: list[Array], left_out: int) -> Array:
    """Product over all axes but one, by broadcasting: (every other axis …, K)."""
    dimensions = len(columns)
    product = None
    for axis in range(dimensions):
        if axis != left_out:
            part = _along(columns[axis], axis, dimensions, left_out)
            product = part if product is None else product * part
    assert product is not None
    return product


def _expand(left: Array, right: Array, axis: int) -> Array:
    """Σ_k left[…, k] right[i, k], with the new axis i put back where it belongs."""
    result = jnp.tensordot(left, right, axes=((left.ndim - 1,), (1,)), precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(result, -1, axis)
