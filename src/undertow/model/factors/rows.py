"""Gaussian rows of the mode factors A⁽ⁿ⁾ and of the temporal rows C: weighted Gram matrices, projections, solves.

Axes of the window are numbered as in its arrays: 0 is time, n + 1 is mode n. Every row is updated by

    V_i = (Λ + G_i / p_i)⁻¹,   ā_i = V_i g_i / p_i,
    G_i = Σ w ⊛_{k≠axis} B⁽ᵏ⁾,   g_i = Σ w y ⊛_{k≠axis} ā⁽ᵏ⁾     (sums over entries whose index on `axis` is i)

with w the weights and y the targets of the outlier model, B = āāᵀ + V (paper: eqs. updatevar to updatetimevariance2).
p_i is the weight of the row's own prior in the ELBO: 1 for mode factors; for a temporal row ω_t in the default model,
1 in the paper's. Rows with p_i = 0 (slots not written yet) get mean and covariance 0.

Over-relaxation: the ELBO is quadratic in the means of one axis, so a step that goes beyond the optimum by a fraction
β < 1 of the way there still raises it, by 1 − β² of what the step to the optimum gains. Where components overlap, that
converges sooner.

Cost of a sweep: two products of the window (W·ΠI) with R(R+1)/2 packed columns. All axes but the biggest share one
contraction over the biggest, so the cost does not grow with the number of modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.defaults import SMALL_PARTIAL, SMALL_SLICE, SMALL_WINDOW
from undertow.model.flow import inverse_of, shared, where
from undertow.model.linalg.symmetric import diagonal, inverse, pack, unpack
from undertow.model.platform import on_cpu, on_mesh
from undertow.model.settings import Settings
from undertow.model.types import Factors, KnownRows, put, taken

Columns = Sequence[Array] | Mapping[int, Array]
"""Columns by axis; those that are not used need not be there."""
Sums = Callable[[Factors, int], Any]
"""G (rows, P) and g (rows, R) of all rows of an axis, given the factors as they are now, in the form `solve` takes."""
Solution = tuple[Array, Array, Array]
"""Means (rows, R), covariances (rows, R, R), and which rows could be solved (rows,)."""


def second_moment(mean: Array, covariance: Array) -> Array:
    """B: packed E[aaᵀ] of every row, (rows, P)."""
    return pack(mean[..., :, None] * mean[..., None, :] + covariance)


def contract(tensor: Array, columns: Array, axis: int, times: Array | None = None) -> Array:
    """Σ over `axis` of tensor (× times) × columns (size, K); the K columns become the last axis.

    Full precision is asked for: GPUs would otherwise round the operands to TF32. On CPUs an axis in the middle is
    contracted slice by slice, in cache, instead of moving the whole window, if that is large.
    """

    def product(part: Array, position: int) -> Array:
        return jnp.tensordot(part, columns, axes=((position,), (0,)), precision=lax.Precision.HIGHEST)

    large = axis > 0 and tensor.size > SMALL_WINDOW and on_cpu()
    if times is not None and large:
        parts: Array = lax.map(lambda both: product(both[0] * both[1], axis - 1), (tensor, times))
        return parts
    tensor = tensor if times is None else tensor * times
    if large and axis < tensor.ndim - 1:
        parts = lax.map(lambda part: product(part, axis - 1), tensor)
        return parts
    return product(tensor, axis)


def collect(partial: Array, axes: list[int], columns: Columns, keep: int) -> Array:
    """Multiply by the columns of every remaining axis but `keep` and sum it away: (…, K) → (size of keep, K)."""
    remaining = list(axes)
    for axis in axes:
        if axis != keep:
            partial = weighted_sum(partial, columns[axis], remaining.index(axis))
            remaining.remove(axis)
    return partial


def weighted_sum(array: Array, columns: Array, axis: int) -> Array:
    """Σ over an axis of (…, K) times its columns (size, K).

    On CPUs the first axis of a large array is added up one by one, others slice by slice: one pass over memory as it
    lies, instead of a strided reduction.
    """
    if (
        axis > 0
        and array.ndim > 2
        and array.size > (SMALL_SLICE if array.shape[0] == 1 else SMALL_PARTIAL)
        and on_cpu()
    ):
        parts: Array = lax.map(lambda part: weighted_sum(part, columns, axis - 1), array)
        return parts
    if axis > 0 or array.size <= SMALL_PARTIAL or not on_cpu():
        shape = [1] * array.ndim
        shape[axis], shape[-1] = columns.shape
        return (array * columns.reshape(shape)).sum(axis=axis)
    total: Array = lax.scan(
        lambda total, here: (total + here[0] * here[1], None), jnp.zeros_like(array[0]), (array, columns)
    )[0]
    return total


def plan(shape: tuple[int, ...]) -> tuple[int, int]:
    """The biggest mode's axis, and the biggest of the other axes, of a window of this shape."""
    biggest = max(range(1, len(shape)), key=lambda axis: shape[axis])
    second = max((axis for axis in range(len(shape)) if axis != biggest), key=lambda axis: shape[axis])
    return biggest, second


@shared
def solve_rows(gram: Array, projection: Array, precision: Array, active: Array, weight: Array) -> Solution:
    """The update of all rows together; `weight` is p (rows,). O(rows · R³).

    The matrices are scaled to unit diagonal before they are inverted, with a little added to it: float32 fails
    silently on ill-conditioned ones otherwise.
    """
    size = precision.shape[0]
    tiny = float(np.finfo(gram.dtype).eps)
    both = active[:, None] & active[None, :]
    used = weight > 0
    inverse_weight = inverse_of(weight)
    eye = np.eye(size, dtype=gram.dtype)
    matrices = where(both, unpack(gram) * inverse_weight[:, None, None], 0) + eye * where(active, precision, 1)
    scale = lax.rsqrt(diagonal(matrices))
    scales = scale[:, :, None] * scale[:, None, :]
    covariance, solved = inverse(matrices * scales + 4 * tiny * eye)
    covariance = where(both & used[:, None, None], covariance * scales, 0)
    scaled = projection * inverse_weight[:, None]
    mean = jnp.einsum("irk,ik->ir", covariance, scaled, precision=lax.Precision.HIGHEST)
    solved &= jnp.isfinite(mean).all(axis=-1)
    return mean, covariance, solved


def all_means(factors: Factors) -> list[Array]:
    """Means by axis: temporal rows first, then the modes."""
    return [factors.row_means, *factors.means]


def all_covariances(factors: Factors) -> list[Array]:
    """Covariances by axis."""
    return [factors.row_covariances, *factors.covariances]


def row_by_row(work: Callable[[Array], Array], axes: list[Array]) -> list[Array]:
    """Work on the rows of every axis: in one go, and then apart; on a mesh one axis after the other."""
    if on_mesh():
        return [work(rows) for rows in axes]
    made, ends = work(jnp.concatenate(axes)), np.cumsum([rows.shape[0] for rows in axes])
    return [made[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def moments(factors: Factors) -> list[Array]:
    """B by axis."""
    return [moment(factors, axis) for axis in range(len(factors.means) + 1)]


def moment(factors: Factors, axis: int) -> Array:
    """B of one axis."""
    return second_moment(all_means(factors)[axis], all_covariances(factors)[axis])


def table(factors: Factors, axis: int) -> Array:
    """B and ā of all rows of an axis, side by side (rows, P + R)."""
    return jnp.concatenate([moment(factors, axis), all_means(factors)[axis]], axis=1)


def only_row(factors: Factors, slot: Array) -> Factors:
    """The factors with the temporal row of one slot as their only one."""
    return replace(
        factors,
        row_means=taken(factors.row_means, slot)[None],
        row_covariances=taken(factors.row_covariances, slot)[None],
    )


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
        row_means=put(factors.row_means, slot, mean),
        row_covariances=put(factors.row_covariances, slot, covariance),
    )


def solved(sums: tuple[Array, Array], factors: Factors, weight: Array) -> Solution:
    """The update of all rows of an axis, given (G, g)."""
    return solve_rows(*sums, factors.precision, factors.active, weight)


def renewed(factors: Factors, axis: int, solution: Solution, relaxation: Array | float | None) -> tuple[Factors, Array]:
    """The factors with the rows of one axis as `solve_rows` has them, and how many failed.

    A row that cannot be solved keeps its last posterior: failures are reported, not passed on.
    """
    mean, covariance, solved = solution
    old_mean, old_covariance = all_means(factors)[axis], all_covariances(factors)[axis]
    if relaxation is not None:
        mean = mean + where(mean == 0, 0, relaxation * (mean - old_mean))  # without data, or inactive: 0
    mean = where(solved[:, None], mean, old_mean)
    covariance = where(solved[:, None, None], covariance, old_covariance)
    return with_axis(factors, axis, mean, covariance), (~solved).sum(dtype=jnp.int32)


def row_weights(factors: Factors, time_weights: Array, known: KnownRows | None = None) -> list[Array]:
    """p of every row, by axis; 0 where nothing was observed in it, if that is given."""
    if known is None:
        return [time_weights, *(jnp.ones(mean.shape[0], mean.dtype) for mean in factors.means)]
    return [time_weights, *(rows.astype(time_weights.dtype) for rows in known)]


def temporal_weights(settings: Settings, slice_weights: Array) -> Array:
    """p_t of the temporal rows: ω_t; the paper has 1 for every slice in the window."""
    if settings.outliers == "contaminated":
        return slice_weights
    return (slice_weights > 0).astype(slice_weights.dtype)


def coordinate_updates(
    factors: Factors,
    axes: list[int],
    sums: Sums,
    time_weights: Array,
    relaxation: Array | float | None,
    failed: Array,
    solve: Callable[[Any, Factors, Array], Solution] = solved,
    then: Callable[[Factors, int], None] | None = None,
) -> tuple[Factors, Array]:
    """Coordinate-ascent updates of axes in turn: THE loop, however the sums are made.

    Args:
        factors: The factors before.
        axes: In this order; 0 is time.
        sums: G and g of all rows of an axis.
        time_weights: p_t (W,).
        relaxation: β; None for none.
        failed: Rows that could not be solved so far.
        solve: Their update by these sums.
        then: Called after every axis, with the new factors.

    Returns:
        The factors after, and how many rows have failed.
    """
    for axis in axes:
        found = sums(factors, axis)
        mean = all_means(factors)[axis]
        weight = time_weights if axis == 0 else jnp.ones(mean.shape[0], mean.dtype)
        solution = solve(found, factors, weight)
        factors, unsolved = renewed(factors, axis, solution, relaxation)
        if then is not None:
            then(factors, axis)
        failed += unsolved
    return factors, failed


def update_axes(
    factors: Factors,
    weights: Array,
    targets: Array,
    time_weights: Array,
    updated: list[int],
    over: int,
    relaxation: Array | float | None = None,
) -> tuple[Factors, Array]:
    """Updates of axes in turn that share the contraction over `over`."""
    axes = [axis for axis in range(weights.ndim) if axis != over]
    gram_part = contract(weights, moment(factors, over), over)
    projection_part = contract(weights, all_means(factors)[over], over, targets)

    def sums(factors: Factors, axis: int) -> tuple[Array, Array]:
        # Apart: side by side they would be copied, some two of 29 ms for 144×176.
        gram = collect(gram_part, axes, {other: moment(factors, other) for other in axes if other != axis}, axis)
        projection = collect(projection_part, axes, all_means(factors), axis)
        if factors.discounted is not None and axis > 0:
            retention = factors.discounted.retention[axis - 1][:, None]
            gram = gram + retention * factors.discounted.gram[axis - 1]
            projection = projection + retention * factors.discounted.projection[axis - 1]
        return gram, projection

    failed = jnp.zeros((), jnp.int32)
    return coordinate_updates(factors, updated, sums, time_weights, relaxation, failed)


def sweep(
    factors: Factors, weights: Array, targets: Array, time_weights: Array, relaxation: Array | float | None = None
) -> tuple[Factors, Array]:
    """Update every axis once: the biggest mode, the other modes, the temporal rows."""
    biggest, second = plan(weights.shape)
    factors, failed = update_axes(factors, weights, targets, time_weights, [biggest], second, relaxation)
    others = [axis for axis in range(1, weights.ndim) if axis != biggest]
    factors, failed_others = update_axes(factors, weights, targets, time_weights, [*others, 0], biggest, relaxation)
    return factors, failed + failed_others
