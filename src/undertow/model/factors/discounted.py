"""Exponentially discounted statistics of evicted slices, so that a short window has a long memory.

An evicted slice gives, with its weights, its temporal row and the other factors as they are then,

    Γ_i ← μ δ_i Γ_i + μ^W Σ w ⊛_{k≠n} B⁽ᵏ⁾,   h_i ← μ δ_i h_i + μ^W Σ w y ⊛_{k≠n} ā⁽ᵏ⁾     (row i of mode n)

and a row's update becomes V = (Λ + δ_i Γ_i + G_i)⁻¹, ā = V (δ_i h_i + g_i). The retention δ_i ≤ 1 is what a row's
statistics still weigh: they would hold a drifting row back. They are a Gaussian prior N(Γ⁻¹h, (δΓ)⁻¹), and δ maximises
the ELBO, given how far the row has moved. (Without it the error on drifting streams is up to eight times as large.)

The noise of evicted slices says how entries differ, not how large it is now: early residuals hold structure that has
been found since. With n_i, s_i its sums, s_i in units of the typical noise at eviction,

    τ_i ~ Ga(α + n_i/2, b (1 + s_i/2α)),   b by the window alone.

If the other factors and the outliers did not change after a slice is evicted, the statistics would be sufficient.
Cost: one slice's Gram matrices and ΣI solves per step, memory of ΣI (P + 2R) and two slices, however long the stream.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model.defaults import RETENTION_PRIOR, RIDGE
from undertow.model.factors.rows import all_means, collect, contract, moments, plan, second_moment, solve_rows
from undertow.model.flow import where
from undertow.model.linalg.symmetric import diagonal, multiplicity, pack
from undertow.model.noise import pooled as noise
from undertow.model.noise.pooled import expected_log, noise_floor
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, DiscountedNoise, DiscountedRows, Factors


def init_rows(
    settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype, slots: int | None = None
) -> DiscountedRows | None:
    """Nothing is evicted yet; None where evicted slices are forgotten. `slots` for components, or `max_rank`."""
    if settings.memory == "window":
        return None
    size = settings.max_rank if slots is None else slots
    none = jnp.zeros(size, dtype)
    return DiscountedRows(
        gram=tuple(jnp.zeros((rows, size * (size + 1) // 2), dtype) for rows in shape),
        projection=tuple(jnp.zeros((rows, size), dtype) for rows in shape),
        centre=tuple(jnp.zeros((rows, size), dtype) for rows in shape),
        retention=tuple(jnp.ones(rows, dtype) for rows in shape),
        row_count=none,
        row_square=none,
        row_entropy=none,
    )


def init_noise(settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype) -> DiscountedNoise | None:
    """Nothing is evicted yet; None where evicted slices are forgotten."""
    if settings.memory == "window":
        return None
    zeros, zero = jnp.zeros(shape, dtype), jnp.zeros((), dtype)
    return DiscountedNoise(counts=zeros, sums=zeros, flagged=zero, clean=zero, energy=zero)


def mode_statistics(factors: Factors, weights: Array, targets: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Σ w ⊛B and Σ w y ⊛ā for the rows of every mode, over all slices given."""
    means, squares = all_means(factors), moments(factors)
    biggest, second = plan(weights.shape)
    grams, projections = [], []
    for mode in range(1, weights.ndim):
        over = second if mode == biggest else biggest
        left = [axis for axis in range(weights.ndim) if axis != over]
        grams.append(collect(contract(weights, squares[over], over), left, squares, mode))
        projections.append(collect(contract(weights * targets, means[over], over), left, means, mode))
    return tuple(grams), tuple(projections)


def absorb_rows(
    discounted: DiscountedRows, factors: Factors, weights: Array, targets: Array, forgetting: float, weight: Array
) -> DiscountedRows:
    """The statistics with an evicted slice: `factors` with its temporal row only, weights and targets (1, I_1, …, I_N).

    `weight` is that of the slice from now on, μ^W; 0 if none is evicted.
    """
    grams, projections = mode_statistics(factors, weights, targets)
    variance = diagonal(factors.row_covariances[0])
    used = factors.active & (variance > 0)
    entropy = where(used, 1 + jnp.log(where(used, variance, 1)), 0)

    def forget(kept: Array, new: Array, retention: Array | float = 1.0) -> Array:
        return forgetting * retention * kept + weight * new

    retention = [one[:, None] for one in discounted.retention]
    gram = tuple(map(forget, discounted.gram, grams, retention))
    projection = tuple(map(forget, discounted.projection, projections, retention))
    weak = where(factors.active, RIDGE * factors.precision, 1)
    centre = []
    for mean, one, other in zip(factors.means, gram, projection, strict=True):
        found, _, solved = solve_rows(one, other, weak, factors.active, jnp.ones(mean.shape[0], mean.dtype))
        centre.append(where(solved[:, None], found, mean))
    return replace(
        discounted,
        gram=gram,
        projection=projection,
        centre=tuple(centre),
        row_count=forget(discounted.row_count, used.astype(variance.dtype)),
        row_square=forget(discounted.row_square, factors.row_means[0] ** 2 + variance),
        row_entropy=forget(discounted.row_entropy, entropy),
    )


def absorb_noise(
    discounted: DiscountedNoise,
    mask: Array,
    probability: Array,
    weighted: Array,
    scaled: Array,
    forgetting: float,
    weight: Array,
) -> DiscountedNoise:
    """The statistics with an evicted slice.

    All (I_1, …, I_N): its mask, ρ, its squared residuals times their robustness weights, in units of the typical noise
    (`weighted`), and in units of their own noise (`scaled`).
    """

    def forget(kept: Array, new: Array) -> Array:
        return forgetting * kept + weight * new

    return DiscountedNoise(
        counts=forget(discounted.counts, mask.astype(weighted.dtype)),
        sums=forget(discounted.sums, where(mask, weighted, 0)),
        flagged=forget(discounted.flagged, probability.sum()),
        clean=forget(discounted.clean, where(mask, 1 - probability, 0).sum()),
        energy=forget(discounted.energy, (probability * scaled).sum()),
    )


def update_retention(factors: Factors) -> Factors:
    """δ_i = min(1, εR' / E (a − Γ⁻¹h)ᵀ Γ (a − Γ⁻¹h)) of every row of the modes; R' components are active."""
    if factors.discounted is None:
        return factors
    size = RETENTION_PRIOR * factors.active.sum().astype(factors.precision_rate.dtype)
    retention = tuple(
        where(moved > size, size / where(moved > size, moved, 1), 1) for moved in distances(factors, factors.discounted)
    )
    return replace(factors, discounted=replace(factors.discounted, retention=retention))


def distances(factors: Factors, discounted: DiscountedRows) -> list[Array]:
    """E (a − Γ⁻¹h)ᵀ Γ (a − Γ⁻¹h) by row, for every mode."""
    twice = multiplicity(factors.active.shape[0]).astype(discounted.row_count.dtype)
    rows = zip(discounted.gram, discounted.centre, factors.means, factors.covariances, strict=True)
    return [
        (gram * twice * second_moment(mean - centre, covariance)).sum(axis=1) for gram, centre, mean, covariance in rows
    ]


def without(discounted: DiscountedRows | None, keep: Array) -> DiscountedRows | None:
    """The statistics of the components that are kept (R,): a candidate that is added starts with none."""
    if discounted is None:
        return None
    both = pack(keep[:, None] & keep[None, :])
    return replace(
        discounted,
        gram=tuple(where(both, gram, 0) for gram in discounted.gram),
        projection=tuple(where(keep, projection, 0) for projection in discounted.projection),
        centre=tuple(where(keep, centre, 0) for centre in discounted.centre),
        row_count=where(keep, discounted.row_count, 0),
        row_square=where(keep, discounted.row_square, 0),
        row_entropy=where(keep, discounted.row_entropy, 0),
    )


def elbo(factors: Factors, discounted: DiscountedRows) -> Array:
    """Σ ½ (εR' ln δ_i − δ_i E (a − Γ⁻¹h)ᵀ Γ (a − Γ⁻¹h)): what the statistics say about the rows of all modes."""
    size = RETENTION_PRIOR * factors.active.sum()
    total = jnp.zeros((), discounted.row_count.dtype)
    for retention, moved in zip(discounted.retention, distances(factors, discounted), strict=True):
        total += (size * jnp.log(retention) - retention * moved).sum() / 2
    return total


def change(factors: Factors, smaller: Factors, discounted: DiscountedRows) -> Array:
    """Σ δ_i (h_iᵀā_i − ½ tr Γ_i E aaᵀ) of the smaller factors, less that of the others: what pruning costs here.

    The differences are summed, not the sums subtracted: float32 has no digits to spare.
    """
    twice = multiplicity(factors.active.shape[0]).astype(discounted.row_count.dtype)
    total = jnp.zeros((), discounted.row_count.dtype)
    for mode, retention in enumerate(discounted.retention):
        then, now = (
            (one.means[mode], second_moment(one.means[mode], one.covariances[mode])) for one in (smaller, factors)
        )
        terms = (discounted.projection[mode] * (then[0] - now[0])).sum(axis=1)
        terms -= (discounted.gram[mode] * twice * (then[1] - now[1])).sum(axis=1) / 2
        total += retention @ terms
    return total


def evicted_rows(factors: Factors, discounted: DiscountedRows) -> Array:
    """What evicted temporal rows add to the ELBO: their prior, and their entropy (by component)."""
    log_precision = expected_log(factors.precision_shape, factors.precision_rate)
    terms = discounted.row_count * log_precision - factors.precision * discounted.row_square + discounted.row_entropy
    return where(factors.active, terms, 0).sum() / 2


def rate_prior(discounted: DiscountedNoise | None, prior_a: Array, prior_b: float) -> tuple[Array, Array | float]:
    """Beta(α0 + Σρ, β0 + ΣO(1−ρ)) of evicted slices: the prior of π in the window."""
    return (prior_a, prior_b) if discounted is None else (prior_a + discounted.flagged, prior_b + discounted.clean)


def ratio_loss(state: Contaminated, discounted: DiscountedNoise) -> Array:
    """−(ln-likelihood of κ) by evicted outliers: ½(Σρ ln κ + Σρτ̄E r² / κ)."""
    return (discounted.flagged * jnp.log(state.ratio) + discounted.energy / state.ratio) / 2


def noise_prior(state: Contaminated) -> tuple[Array, Array]:
    """Shape and rate of τ_i as the window finds it: Ga(α + n_i/2, b (1 + s_i/2α)); Ga(α, b) without statistics."""
    discounted = state.discounted
    if discounted is None:
        return state.pool_shape, state.pool_rate
    return state.pool_shape + discounted.counts / 2, state.pool_rate * (1 + discounted.sums / (2 * state.pool_shape))


def update_noise(state: Contaminated, discounted: DiscountedNoise, counts: Array, sums: Array) -> Contaminated:
    """b with τ integrated out, then q(τ_i): as `pooled.pooled_rate`, with the prior above for every entry.

    b = Σ α_i s'/(2b + s') / Σ n/(2b + s') with α_i = α + n_i/2 of evicted slices, s' = s/(1 + s_i/2α).
    """
    shapes, _ = noise_prior(state)
    own = sums / (1 + discounted.sums / (2 * state.pool_shape))
    least = noise_floor(sums.dtype) * state.pool_shape
    state = replace(state, pool_rate=noise.pooled_rate(shapes, state.pool_rate, counts, own, least))
    shape, prior_rate = noise_prior(state)
    return replace(state, noise_shape=shape + counts / 2, noise_rate=prior_rate + sums / 2)


def update_pooling(state: Contaminated, discounted: DiscountedNoise, counts: Array, sums: Array) -> Contaminated:
    """(α, b), from window and statistics together, the latter as large as the window has made them (`update_noise`).

    Their sums are then put into units of the new typical noise. That identifies b once per slice: where entries differ
    much, Ga(α + n_i/2, b (1 + s_i/2α)) hardly changes if b falls and all s_i grow, and b would wander off.
    """
    evicted = state.pool_rate / state.pool_shape * discounted.sums
    shape, rate = noise.better_pool(state.pool_shape, state.pool_rate, counts + discounted.counts, sums + evicted)
    return replace(
        state,
        pool_shape=shape,
        pool_rate=rate,
        noise_shape=shape + (discounted.counts + counts) / 2,
        noise_rate=rate + (evicted + sums) / 2,
        discounted=replace(discounted, sums=evicted * shape / rate),
    )
