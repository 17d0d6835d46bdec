"""Gaussian rows of the mode factors A⁽ⁿ⁾ and of the temporal rows C: weighted Gram matrices, projections, solves.

Axes of the window are numbered as in its arrays: 0 is time, n + 1 is mode n. Every row is updated by

    V_i = (Λ + G_i / p_i)⁻¹,   ā_i = V_i g_i / p_i,
    G_i = Σ w ⊛_{k≠axis} B⁽ᵏ⁾,   g_i = Σ w y ⊛_{k≠axis} ā⁽ᵏ⁾     (sums over entries whose index on `axis` is i)

with w the weights and y the targets of the outlier model, B = āāᵀ + V (paper: eqs. updatevar to updatetimevariance2).
p_i is 1 for mode factors; for a temporal row it is how much the row's own prior counts in the objective: ω_t in the
default model, 1 in the paper's. Rows with p_i = 0 (slots not written yet) get mean and covariance 0.

The bound is quadratic in the means of one axis, so a step that goes beyond the optimum by a share β < 1 of the way
there still raises it, by 1 − β² of what the step to the optimum gains. Where components overlap, that gets there
sooner: successive over-relaxation.

Cost of a sweep: two products of the window (W·ΠI) with R(R+1)/2 packed columns. All axes but the biggest share one
contraction over the biggest, so the cost does not grow with the number of modes.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.linalg.symmetric import inverse, outer, pack, unpack
from undertow.model.types import SMALL_WINDOW, Factors

MOST_TERMS = 32
"""Up to so many, terms of a sum are written out: one pass over all of them instead of a strided reduction."""


def second_moment(mean: Array, covariance: Array) -> Array:
    """B: packed E[aaᵀ] of every row, (rows, P)."""
    return outer(mean) + pack(covariance)


def contract(tensor: Array, columns: Array, axis: int) -> Array:
    """Σ over `axis` of tensor × columns (size, K); the K columns become the last axis.

    Full precision is asked for: GPUs would otherwise round the operands to TF32. On CPUs an axis in the middle is
    contracted slice by slice, in cache, instead of moving the whole window, if that is large.
    """

    def product(part: Array, place: int) -> Array:
        return jnp.tensordot(part, columns, axes=((place,), (0,)), precision=lax.Precision.HIGHEST)

    if 0 < axis < tensor.ndim - 1 and tensor.size > SMALL_WINDOW and jax.default_backend() == "cpu":
        parts: Array = lax.map(lambda part: product(part, axis - 1), tensor)
        return parts
    return product(tensor, axis)


def collect(partial: Array, axes: list[int], columns: list[Array], keep: int) -> Array:
    """Multiply by the columns of every remaining axis but `keep` and sum it away: (…, K) → (size of keep, K)."""
    remaining = list(axes)
    for axis in axes:
        if axis != keep:
            place = remaining.index(axis)
            shape = [1] * partial.ndim
            shape[place], shape[-1] = columns[axis].shape
            partial = total(partial * columns[axis].reshape(shape), place)
            remaining.remove(axis)
    return partial


def total(array: Array, axis: int) -> Array:
    """The sum over an axis."""
    if axis == 0 and array.shape[0] <= MOST_TERMS:
        return sum((array[place] for place in range(1, array.shape[0])), start=array[0])
    return array.sum(axis=axis)


def plan(shape: tuple[int, ...]) -> tuple[int, int]:
    """The biggest mode's axis, and the biggest of the other axes, of a window of this shape."""
    biggest = max(range(1, len(shape)), key=lambda axis: shape[axis])
    second = max((axis for axis in range(len(shape)) if axis != biggest), key=lambda axis: shape[axis])
    return biggest, second


def solve_rows(
    gram: Array, projection: Array, precision: Array, active: Array, share: Array
) -> tuple[Array, Array, Array]:
    """Means, covariances and "the system was solvable" of all rows at once; O(rows · R³).

    The matrices are scaled to unit diagonal before they are inverted, with a little added to it: float32 fails
    silently on ill-conditioned ones otherwise.
    """
    size = precision.shape[0]
    tiny = float(np.finfo(gram.dtype).eps)
    both = active[:, None] & active[None, :]
    used = share > 0
    inverse_share = jnp.where(used, 1 / jnp.where(used, share, 1), 0)
    eye = jnp.eye(size, dtype=gram.dtype)
    matrices = jnp.where(both, unpack(gram) * inverse_share[:, None, None], 0) + eye * jnp.where(active, precision, 1)
    scale = 1 / jnp.sqrt(jnp.diagonal(matrices, axis1=-2, axis2=-1))
    covariance, solved = inverse(matrices * scale[:, :, None] * scale[:, None, :] + 4 * tiny * eye)
    covariance = covariance * scale[:, :, None] * scale[:, None, :]
    scaled = projection * inverse_share[:, None]
    mean = jnp.einsum("irk,ik->ir", covariance, scaled, precision=lax.Precision.HIGHEST)
    mean = jnp.where(active & used[:, None], mean, 0)
    covariance = jnp.where(both & used[:, None, None], covariance, 0)
    solved &= jnp.isfinite(mean).all(axis=-1)
    return mean, covariance, solved


def all_means(factors: Factors) -> list[Array]:
    """Means by axis: temporal rows first, then the modes."""
    return [factors.row_means, *factors.means]


def all_covariances(factors: Factors) -> list[Array]:
    """Covariances by axis."""
    return [factors.row_covariances, *factors.covariances]


def with_axis(factors: Factors, axis: int, mean: Array, covariance: Array) -> Factors:
    """The factors with the rows of one axis replaced."""
    if axis == 0:
        return replace(factors, row_means=mean, row_covariances=covariance)
    means, covariances = list(factors.means), list(factors.covariances)
    means[axis - 1], covariances[axis - 1] = mean, covariance
    return replace(factors, means=tuple(means), covariances=tuple(covariances))


def single_row(factors: Factors) -> Factors:
    """The same modes with a window of one slice, its temporal row at 0."""
    return replace(
        factors,
        row_means=jnp.zeros_like(factors.row_means[:1]),
        row_covariances=jnp.zeros_like(factors.row_covariances[:1]),
    )


def with_row(factors: Factors, slot: Array, mean: Array, covariance: Array) -> Factors:
    """The factors with the temporal row of one slot replaced."""
    return replace(
        factors,
        row_means=factors.row_means.at[slot].set(mean),
        row_covariances=factors.row_covariances.at[slot].set(covariance),
    )


def renewed(
    factors: Factors, axis: int, solution: tuple[Array, Array, Array], beyond: Array | float
) -> tuple[Factors, Array]:
    """The factors with the rows of one axis as `solve_rows` has them, and how many failed.

    A row that cannot be solved keeps its last posterior: trouble is reported, not spread.
    """
    mean, covariance, solved = solution
    old_mean, old_covariance = all_means(factors)[axis], all_covariances(factors)[axis]
    further = jnp.where(mean == 0, 0, beyond * (mean - old_mean))  # what has no data, or is dead, is 0
    mean = jnp.where(solved[:, None], mean + further, old_mean)
    covariance = jnp.where(solved[:, None, None], covariance, old_covariance)
    return with_axis(factors, axis, mean, covariance), (~solved).sum(dtype=jnp.int32)


def update_axes(
    factors: Factors,
    weights: Array,
    weighted: Array,
    share: Array,
    updated: list[int],
    over: int,
    beyond: Array | float = 0.0,
) -> tuple[Factors, Array]:
    """Coordinate updates of axes in turn that share the contraction over `over`. Returns how many rows failed too.

    `weighted` is w y; `beyond` is β.
    """
    means, covariances = all_means(factors), all_covariances(factors)
    axes = [axis for axis in range(weights.ndim) if axis != over]
    gram_part = contract(weights, second_moment(means[over], covariances[over]), over)
    projection_part = contract(weighted, means[over], over)
    failed = jnp.zeros((), jnp.int32)
    for axis in updated:
        moments = [second_moment(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]
        gram = collect(gram_part, axes, moments, axis)
        projection = collect(projection_part, axes, means, axis)
        if factors.discounted is not None and axis > 0:
            retention = factors.discounted.retention[axis - 1][:, None]
            gram = gram + retention * factors.discounted.gram[axis - 1]
            projection = projection + retention * factors.discounted.projection[axis - 1]
        prior_share = share if axis == 0 else jnp.ones(weights.shape[axis], weights.dtype)
        solution = solve_rows(gram, projection, factors.precision, factors.active, prior_share)
        factors, unsolved = renewed(factors, axis, solution, beyond)
        means, covariances = all_means(factors), all_covariances(factors)
        failed += unsolved
    return factors, failed


def sweep(
    factors: Factors, weights: Array, targets: Array, share: Array, beyond: Array | float = 0.0
) -> tuple[Factors, Array]:
    """Update every axis once: the biggest mode, the other modes, the temporal rows."""
    weighted = weights * targets
    biggest, second = plan(weights.shape)
    factors, failed = update_axes(factors, weights, weighted, share, [biggest], second, beyond)
    others = [axis for axis in range(1, weights.ndim) if axis != biggest]
    factors, failed_others = update_axes(factors, weights, weighted, share, [*others, 0], biggest, beyond)
    return factors, failed + failed_others
