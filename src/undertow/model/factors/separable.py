"""Nearly full windows, for a model that is not robust and has one noise for all: w_ti = O_ti v_t, v_t = ω_t τ̄ / φ_t.

Without holes every sum over entries falls apart into sums over the rows of each axis,

    Σ_{entries of row i} w ⊛ B = (Σ_t v_t B_t) ⊛ (Σ_j B_j) …,

so that Gram matrices and the sums of Var x cost nothing to speak of. The few entries that are missing are gathered and
subtracted. What is left of a sweep is three products of the window with R columns, instead of some R(R+1)/2 · 4. It is
the same sweep as in `sweeps.swept`, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.factors import predict
from undertow.model.factors.rows import (
    all_covariances,
    all_means,
    collect,
    contract,
    plan,
    renewed,
    second_moment,
    solve_rows,
)
from undertow.model.linalg.symmetric import multiplicity, outer, pack
from undertow.model.noise import contaminated, mixture
from undertow.model.noise import pooled as noise
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Window, over_slice


@dataclass(frozen=True)
class Holes:
    """Entries of the window that were not observed, in slices of which something was."""

    indices: tuple[Array, ...]
    """By axis, time first, each (K,)."""
    real: Array
    """1, or 0 for what only fills up to K (K,)."""


def holes(window: Window, most: int) -> Holes:
    """Up to `most` of them; whoever asks knows that there are no more."""
    if most == 0:
        none = jnp.zeros(0, jnp.int32)
        return Holes((none,) * window.mask.ndim, none.astype(window.values.dtype))
    length = window.values.shape[0]
    written = (window.ages() < window.filled).reshape(length, *[1] * (window.mask.ndim - 1))
    missing = written & ~window.mask & _seen(window).reshape(written.shape)
    indices = jnp.nonzero(missing, size=most, fill_value=0)
    real = (jnp.arange(most) < missing.sum()).astype(window.values.dtype)
    return Holes(tuple(indices), real)


def sweep(
    factors: Factors, values: Array, slice_weights: Array, share: Array, gaps: Holes, beyond: Array | float = 0.0
) -> tuple[Factors, Array]:
    """Update every axis once, in the order of `factors.sweep`; `slice_weights` are v (W,), values 0 in holes."""
    means, covariances = all_means(factors), all_covariances(factors)
    biggest, second = plan(values.shape)
    others = [axis for axis in range(1, values.ndim) if axis != biggest]
    failed = jnp.zeros((), jnp.int32)
    for updated, over in (([biggest], second), ([*others, 0], biggest)):
        # v goes with the temporal rows, wherever they are summed over.
        weighted = [means[0] * slice_weights[:, None], *means[1:]]
        part = contract(values, weighted[over], over)
        axes = [axis for axis in range(values.ndim) if axis != over]
        for axis in updated:
            weighted = [means[0] * slice_weights[:, None], *means[1:]]
            projection = collect(part, axes, weighted, axis)
            moments = [second_moment(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]
            gram = _gram(moments, slice_weights, gaps, axis)
            if axis == 0:
                projection = projection * slice_weights[:, None]
            prior_share = share if axis == 0 else jnp.ones(values.shape[axis], values.dtype)
            solution = solve_rows(gram, projection, factors.precision, factors.active, prior_share)
            factors, unsolved = renewed(factors, axis, solution, beyond)
            means, covariances = all_means(factors), all_covariances(factors)
            failed += unsolved
    return factors, failed


def _gram(moments: list[Array], slice_weights: Array, gaps: Holes, axis: int) -> Array:
    """G of every row of an axis (rows, P): all entries, less the holes."""
    total = jnp.ones_like(moments[0][0])
    lost = gaps.real[:, None] * slice_weights[gaps.indices[0]][:, None]
    for other, moment in enumerate(moments):
        if other != axis:
            total = total * (slice_weights @ moment if other == 0 else moment.sum(axis=0))
            lost = lost * moment[gaps.indices[other]]
    per_row = slice_weights[:, None] if axis == 0 else jnp.ones((moments[axis].shape[0], 1), total.dtype)
    return (per_row * total).at[gaps.indices[axis]].add(-lost)


def variance_sums(factors: Factors, gaps: Holes) -> Array:
    """Σ of Var x over the observed entries of every slice (W,); see `predict.variance`."""
    squares = [outer(mean) for mean in all_means(factors)]
    spreads = [pack(covariance) for covariance in all_covariances(factors)]
    counts = multiplicity(factors.active.shape[0]).astype(squares[0].dtype)
    sums = [(square.sum(axis=0), spread.sum(axis=0)) for square, spread in zip(squares[1:], spreads[1:], strict=True)]
    whole = _telescoped((squares[0], spreads[0]), sums, counts)
    rows = [
        (square[index], spread[index]) for square, spread, index in zip(squares, spreads, gaps.indices, strict=True)
    ]
    lost = gaps.real * _telescoped(rows[0], rows[1:], counts)
    return jnp.maximum(whole.at[gaps.indices[0]].add(-lost), 0)


def _telescoped(first: tuple[Array, Array], others: list[tuple[Array, Array]], counts: Array) -> Array:
    square, varied = first
    for own_square, own_spread in others:
        square, varied = square * own_square, varied * (own_square + own_spread) + square * own_spread
    return jnp.matmul(varied, counts, precision=lax.Precision.HIGHEST)


def update(
    settings: Settings, state: Contaminated, window: Window, slice_weights: Array, square_sums: Array
) -> Contaminated:
    """`contaminated.update` for a model that takes nothing for an outlier; `square_sums` are Σ E r² (W,)."""
    counts = over_slice(window.mask.astype(square_sums.dtype))
    tau = 1 / contaminated.typical_noise(state)
    prior_a, prior_b = contaminated.rate_prior(settings)
    ratio = jnp.maximum(state.slice_scale.max(), settings.outlier_variance)
    prior = mixture.SLICE_PRIOR
    scale = jnp.minimum((prior + tau * square_sums) / (prior + counts), ratio)
    total = slice_weights @ (square_sums / scale)
    floor = noise.noise_floor(square_sums.dtype)
    shared = noise.shared_variance(1 / tau, slice_weights @ counts, total, floor)
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


def squares(factors: Factors, window: Window, gaps: Holes) -> Array:
    """Σ E r² over the observed entries of every slice (W,)."""
    residual = jnp.where(window.mask, window.values - predict.low_rank(factors), 0)
    return jnp.where(_seen(window), over_slice(residual**2) + variance_sums(factors, gaps), 0)


def weights(state: Contaminated, window: Window, slice_weights: Array) -> Array:
    """v = ω τ̄ / φ (W,), 0 for slices of which nothing was observed: they are no holes."""
    found = slice_weights / (contaminated.typical_noise(state) * state.slice_scale)
    return jnp.where(_seen(window), found, 0)


def _seen(window: Window) -> Array:
    """Slices of which something was observed (W,)."""
    return window.mask.any(axis=tuple(range(1, window.mask.ndim)))
