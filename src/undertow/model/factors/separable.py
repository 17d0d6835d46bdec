"""Separable sums: nearly full windows of a model that is not robust and has one noise variance for all entries.

There w_ti = O_ti v_t, v_t = ω_t τ̄ / φ_t, and without missing entries every sum over entries is a product of sums over
the rows of each axis,

    Σ_{entries of row i} w ⊛ B = (Σ_t v_t B_t) ⊛ (Σ_j B_j) …,

so that Gram matrices and the sums of Var x cost next to nothing. The few entries that are missing are gathered and
subtracted. What is left of a sweep is three products of the window with R columns, instead of some R(R+1)/2 · 4. It is
the same sweep as `phases.sweep.sweep`, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import SLICE_PRIOR
from undertow.model.factors import predict
from undertow.model.factors.rows import all_covariances, all_means, collect, contract, coordinate_updates, moments, plan
from undertow.model.flow import where
from undertow.model.linalg.symmetric import multiplicity, outer, pack
from undertow.model.noise import contaminated, mixture, pooled
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Window, over_slice


@dataclass(frozen=True)
class Missing:
    """Entries of the window that were not observed, in slices of which something was.

    Attributes:
        indices: By axis, time first, each (K,).
        real: 1, or 0 for what only fills up to K (K,).
    """

    indices: tuple[Array, ...]
    real: Array


def missing_entries(window: Window, most: int) -> Missing:
    """Up to `most` of them; the caller knows that there are no more."""
    if most == 0:
        none = jnp.zeros(0, jnp.int32)
        return Missing((none,) * window.mask.ndim, none.astype(window.values.dtype))
    length = window.values.shape[0]
    written = (window.ages() < window.filled).reshape(length, *[1] * (window.mask.ndim - 1))
    missing = written & ~window.mask & _seen(window).reshape(written.shape)
    indices = jnp.nonzero(missing, size=most, fill_value=0)
    real = (jnp.arange(most) < missing.sum()).astype(window.values.dtype)
    return Missing(tuple(indices), real)


def sweep(
    factors: Factors,
    values: Array,
    slice_weights: Array,
    time_weights: Array,
    missing: Missing,
    relaxation: Array | float | None = None,
) -> tuple[Factors, Array]:
    """Update every axis once, in the order of `rows.sweep`; `slice_weights` are v (W,), values 0 where missing."""
    biggest, second = plan(values.shape)
    others = [axis for axis in range(1, values.ndim) if axis != biggest]
    failed = jnp.zeros((), jnp.int32)

    def weighted(factors: Factors) -> list[Array]:
        # v goes with the temporal rows, wherever they are summed over.
        return [factors.row_means * slice_weights[:, None], *factors.means]

    for updated, over in (([biggest], second), ([*others, 0], biggest)):
        part = contract(values, weighted(factors)[over], over)
        axes = [axis for axis in range(values.ndim) if axis != over]

        def sums(factors: Factors, axis: int, part: Array = part, axes: list[int] = axes) -> tuple[Array, Array]:
            projection = collect(part, axes, weighted(factors), axis)
            gram = _gram(moments(factors), slice_weights, missing, axis)
            return gram, projection * slice_weights[:, None] if axis == 0 else projection

        factors, failed = coordinate_updates(factors, updated, sums, time_weights, relaxation, failed)
    return factors, failed


def _gram(moments: list[Array], slice_weights: Array, missing: Missing, axis: int) -> Array:
    """G of every row of an axis (rows, P): all entries, less the missing ones."""
    total = jnp.ones_like(moments[0][0])
    lost = missing.real[:, None] * slice_weights[missing.indices[0]][:, None]
    for other, moment in enumerate(moments):
        if other != axis:
            total = total * (slice_weights @ moment if other == 0 else moment.sum(axis=0))
            lost = lost * moment[missing.indices[other]]
    per_row = slice_weights[:, None] if axis == 0 else jnp.ones((moments[axis].shape[0], 1), total.dtype)
    return (per_row * total).at[missing.indices[axis]].add(-lost)


def variance_sums(factors: Factors, missing: Missing) -> Array:
    """Σ of Var x over the observed entries of every slice (W,); see `predict.variance`."""
    squares = [outer(mean) for mean in all_means(factors)]
    variances = [pack(covariance) for covariance in all_covariances(factors)]
    counts = multiplicity(factors.active.shape[0]).astype(squares[0].dtype)
    sums = [
        (square.sum(axis=0), variance.sum(axis=0)) for square, variance in zip(squares[1:], variances[1:], strict=True)
    ]
    whole = _telescoped((squares[0], variances[0]), sums, counts)
    rows = [
        (square[index], variance[index])
        for square, variance, index in zip(squares, variances, missing.indices, strict=True)
    ]
    lost = missing.real * _telescoped(rows[0], rows[1:], counts)
    return jnp.maximum(whole.at[missing.indices[0]].add(-lost), 0)


def _telescoped(first: tuple[Array, Array], others: list[tuple[Array, Array]], counts: Array) -> Array:
    square, varied = first
    for own_square, own_variance in others:
        square, varied = square * own_square, varied * (own_square + own_variance) + square * own_variance
    return jnp.matmul(varied, counts, precision=lax.Precision.HIGHEST)


def update(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, square_sums: Array
) -> Contaminated:
    """`contaminated.update` for a model that takes nothing for an outlier; `square_sums` are Σ E r² (W,)."""
    counts = over_slice(window.mask.astype(square_sums.dtype))
    tau = 1 / contaminated.typical_noise(state)
    prior_a, prior_b = mixture.rate_prior(settings)
    ratio = jnp.maximum(state.slice_scale.max(), settings.outlier_variance)
    prior = SLICE_PRIOR
    scale = jnp.minimum((prior + tau * square_sums) / (prior + counts), ratio)
    total = slice_weights @ (square_sums / scale)
    floor = pooled.noise_floor(square_sums.dtype)
    shared = pooled.shared_variance(1 / tau, slice_weights @ counts, total, floor)
    rate = state.pool_shape * shared
    return replace(
        state,
        rate_a=jnp.full_like(state.rate_a, prior_a),
        rate_b=prior_b + slice_weights @ counts,
        ratio=jnp.asarray(ratio, state.ratio.dtype),
        slice_scale=scale,
        pool_rate=rate,
        noise_shape=jnp.full_like(state.noise_shape, state.pool_shape),
        noise_rate=jnp.full_like(state.noise_rate, rate),
    )


def squares(factors: Factors, window: Window, missing: Missing) -> Array:
    """Σ E r² over the observed entries of every slice (W,)."""
    residual = where(window.mask, window.values - predict.low_rank(factors), 0)
    return where(_seen(window), over_slice(residual**2) + variance_sums(factors, missing), 0)


def weights(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """v = ω τ̄ / φ (W,), 0 for slices of which nothing was observed."""
    found = slice_weights / (contaminated.typical_noise(state) * state.slice_scale)
    return where(_seen(window), found, 0)


def _seen(window: Window) -> Array:
    """Slices of which something was observed (W,)."""
    return window.mask.any(axis=tuple(range(1, window.mask.ndim)))
