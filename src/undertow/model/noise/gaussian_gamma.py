"""The paper's outlier model: a sparse term S with a precision γ per entry.

    y = x + s + e,   s_i ~ N(0, 1/γ_i),   γ_i ~ Ga(a0, b0),   e ~ N(0, 1/(τ ω_t)),   τ ~ Ga(a0, b0).

Only the newest slice's S is inferred; past slices enter with theirs removed, frozen as they were found.
Its prior on s is improper in effect (∝ 1/|s|): S takes everything beyond one noise deviation and τ runs off
(see README.md, "Why the printed model is not enough"). It is here so that the paper can be reproduced and compared.
Residuals in, weights and targets out, as for `contaminated.py`.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.factors import predict
from undertow.model.factors.rows import plan, single_row, update_axes, with_row
from undertow.model.noise import pooled as noise
from undertow.model.settings import Settings
from undertow.model.types import Factors, GaussianGamma, Level, Window, along_time, over_slice

PRIOR = 1e-6
"""a0 = b0 of τ and γ, as in the paper, in units of the stream."""
ROW_TURNS = 20


def init(settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype) -> GaussianGamma:
    """τ̄ = γ̄ = 1, S = 0 (the paper draws S ~ N(0, 1); the first update forgets it, and chance has no place here)."""
    one = jnp.ones((), dtype)
    return GaussianGamma(
        sparse=jnp.zeros((settings.window, *shape), dtype),
        sparse_variance=jnp.ones(shape, dtype),
        gamma_shape=one,
        gamma_rate=jnp.ones(shape, dtype),
        noise_shape=one,
        noise_rate=one,
    )


def begin(
    settings: Settings, state: GaussianGamma, factors: Factors, window: Window, level: Level | None
) -> tuple[GaussianGamma, Factors]:
    """Meet the newest slice: what was found so far is frozen, S, γ and τ of the newest start as in the paper."""
    fresh = init(settings, state.gamma_rate.shape, state.sparse.dtype)
    return replace(fresh, sparse=state.sparse.at[window.newest].set(0)), factors


def surprised(state: GaussianGamma, window: Window) -> Array:
    """Never: every step of the paper's model starts anew, so nothing was expected of the slice."""
    del state, window
    return jnp.asarray(False)


def one_slice(state: GaussianGamma) -> GaussianGamma:
    """The state with room for a single slice, about which nothing is known yet."""
    return replace(state, sparse=state.sparse[:1])


def meet(state: GaussianGamma, factors: Factors, window: Window, level: Level | None) -> tuple[GaussianGamma, Factors]:
    """The newest slice's temporal row and sparse term, the mode factors and the noise held fixed."""
    slot = window.newest
    values, mask = window.values[slot][None], window.mask[slot][None]
    biggest, _ = plan(values.shape)
    tau = state.noise_shape / state.noise_rate
    weights = jnp.where(mask, tau, 0)
    share = jnp.ones(1, values.dtype)

    def turn(_: int, carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
        row, sparse, gamma = carry
        row, unsolved = update_axes(row, weights, weights * (values - sparse), share, [0], biggest)
        del unsolved  # the row keeps its last value, and the sweeps report what stays unsolved
        spread = 1 / (gamma + tau)
        sparse = jnp.where(mask, spread * tau * (values - predict.low_rank(row)), 0)
        return row, sparse, (PRIOR + 0.5) / (PRIOR + (sparse**2 + spread) / 2)

    start = (single_row(factors), jnp.zeros_like(values), jnp.ones_like(values))
    row, sparse, _ = lax.fori_loop(0, ROW_TURNS, turn, start)
    factors = with_row(factors, slot, row.row_means[0], row.row_covariances[0])
    return replace(state, sparse=state.sparse.at[slot].set(sparse[0])), factors


def weights_and_targets(state: GaussianGamma, window: Window, slice_weights: Array) -> tuple[Array, Array]:
    """ω O τ̄ and y − S̄, each (W, I_1, …, I_N)."""
    weights = along_time(slice_weights, window.values) * (state.noise_shape / state.noise_rate)
    return jnp.where(window.mask, weights, 0), window.values - state.sparse


def row_share(slice_weights: Array) -> Array:
    """The paper does not weigh the priors of past temporal rows: 1 for every slice in the window."""
    return (slice_weights > 0).astype(slice_weights.dtype)


def update(
    settings: Settings, state: GaussianGamma, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> GaussianGamma:
    """S, γ and τ in turn (paper: eqs. update S, update gamma, update tau)."""
    state = update_sparse(state, window, residual)
    state = update_gamma(state, window)
    return update_noise(settings, state, window, slice_weights, residual, variance)


def finish(
    settings: Settings, state: GaussianGamma, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> GaussianGamma:
    """Nothing is left for the end of a slice."""
    del settings, window, slice_weights, residual, variance
    return state


def update_sparse(state: GaussianGamma, window: Window, residual: Array) -> GaussianGamma:
    """σ² = 1/(γ̄ + τ̄), s̄ = σ² τ̄ (y − x̄), newest slice, observed entries."""
    tau = state.noise_shape / state.noise_rate
    spread = 1 / (state.gamma_shape / state.gamma_rate + tau)
    sparse = jnp.where(window.mask[window.newest], spread * tau * residual[window.newest], 0)
    return replace(state, sparse=state.sparse.at[window.newest].set(sparse), sparse_variance=spread)


def update_gamma(state: GaussianGamma, window: Window) -> GaussianGamma:
    """q(γ_i) = Ga(a0 + ½, b0 + ½(s̄² + σ²))."""
    square = state.sparse[window.newest] ** 2 + state.sparse_variance
    return replace(state, gamma_shape=jnp.full_like(state.gamma_shape, PRIOR + 0.5), gamma_rate=PRIOR + square / 2)


def squares(state: GaussianGamma, window: Window, residual: Array, variance: Array) -> Array:
    """E[(y − x − s)²] where observed, 0 elsewhere (W, I_1, …, I_N). No expanded terms, so nothing cancels."""
    square = (residual - state.sparse) ** 2 + variance
    square = square.at[window.newest].add(state.sparse_variance)
    return jnp.where(window.mask, square, 0)


def update_noise(
    settings: Settings, state: GaussianGamma, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> GaussianGamma:
    """q(τ) = Ga(a0 + ½ Σ|Ω_t|, b0 + ½ Σ ω_t E‖·‖²): over the window (exact) or the newest slice (as published)."""
    sums = over_slice(squares(state, window, residual, variance))
    counts = over_slice(window.mask.astype(sums.dtype))
    if settings.tau == "slice":
        count, total = counts[window.newest], sums[window.newest]
    else:
        count, total = (slice_weights > 0).astype(sums.dtype) @ counts, slice_weights @ sums
    return replace(state, noise_shape=PRIOR + count / 2, noise_rate=PRIOR + total / 2)


def elbo(
    settings: Settings, state: GaussianGamma, window: Window, slice_weights: Array, residual: Array, variance: Array
) -> Array:
    """Likelihood, S, γ and τ: every term of the bound that this model owns."""
    del settings
    sums = over_slice(squares(state, window, residual, variance))
    counts = over_slice(window.mask.astype(sums.dtype))
    tau = state.noise_shape / state.noise_rate
    log_tau = noise.expected_log(state.noise_shape, state.noise_rate)
    log_weight = jnp.log(jnp.where(slice_weights > 0, slice_weights, 1))
    seen = (slice_weights > 0).astype(sums.dtype)
    likelihood = (seen * counts * (log_tau + log_weight - jnp.log(2 * jnp.pi)) - slice_weights * tau * sums).sum() / 2
    gamma = state.gamma_shape / state.gamma_rate
    square = state.sparse[window.newest] ** 2 + state.sparse_variance
    log_gamma = noise.expected_log(state.gamma_shape, state.gamma_rate)
    sparse = (log_gamma - gamma * square + jnp.log(state.sparse_variance) + 1) / 2
    sparse -= noise.gamma_gap(state.gamma_shape, state.gamma_rate, PRIOR, PRIOR)
    newest = jnp.where(window.mask[window.newest], sparse, 0).sum()
    return likelihood + newest - noise.gamma_gap(state.noise_shape, state.noise_rate, PRIOR, PRIOR)


def outliers(state: GaussianGamma, window: Window, slot: Array, residual: Array) -> tuple[Array, Array]:
    """S̄ of one slice, and the share of its residual that S takes (the paper has no probability): s̄ / (y − x̄)."""
    sparse = state.sparse[slot]
    share = jnp.where(residual != 0, sparse / jnp.where(residual != 0, residual, 1), 0)
    return sparse, jnp.where(window.mask[slot], jnp.clip(share, 0, 1), 0)


def noise_variance(state: GaussianGamma, slot: Array) -> Array:
    """E[1/τ], the same for all entries (I_1, …, I_N)."""
    del slot
    return jnp.broadcast_to(noise.predictive_variance(state.noise_shape, state.noise_rate), state.gamma_rate.shape)


def typical_noise(state: GaussianGamma) -> Array:
    """1/τ̄."""
    return state.noise_rate / state.noise_shape


def usual_noise(state: GaussianGamma, slice_weights: Array) -> Array:
    """The same: this model has no scale for each slice."""
    del slice_weights
    return typical_noise(state)
