"""The paper's outlier model: a sparse term S with a precision γ per entry.

    y = x + s + e,   s_i ~ N(0, 1/γ_i),   γ_i ~ Ga(a0, b0),   e ~ N(0, 1/(τ ω_t)),   τ ~ Ga(a0, b0).

Only the newest slice's S is inferred; older slices enter with theirs removed, frozen as they were found.
Its prior on s is improper in effect (∝ 1/|s|): S takes everything beyond one noise deviation and τ runs off
(see README.md, "Why the printed model is not enough"). It is here so that the paper can be reproduced and compared.
Here are the functions of `OutlierModel`.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.defaults import PAPER_ITERATIONS, PAPER_PRIOR
from undertow.model.factors import predict
from undertow.model.factors.rows import plan, single_row, update_axes, with_row
from undertow.model.flow import where
from undertow.model.noise import pooled
from undertow.model.settings import Settings
from undertow.model.types import Factors, GaussianGamma, Level, Window, along_time, over_slice


def init(
    settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype, entries: int | None = None, length: int | None = None
) -> GaussianGamma:
    """τ̄ = γ̄ = 1, S = 0 (the paper draws S ~ N(0, 1); the first update forgets it).

    It has no layout for observed entries only; `entries` must be None.
    """
    del entries
    length = settings.window if length is None else length
    one = jnp.ones((), dtype)
    return GaussianGamma(
        sparse=jnp.zeros((length, *shape), dtype),
        sparse_variance=jnp.ones(shape, dtype),
        gamma_shape=one,
        gamma_rate=jnp.ones(shape, dtype),
        noise_shape=one,
        noise_rate=one,
    )


def begin(
    settings: Settings, state: GaussianGamma, factors: Factors, window: Window, level: Level | None
) -> tuple[GaussianGamma, Factors]:
    """What was found so far is frozen; S, γ and τ of the newest slice start as in the paper."""
    fresh = init(settings, state.gamma_rate.shape, state.sparse.dtype, length=len(state.sparse))
    return replace(fresh, sparse=state.sparse.at[window.newest].set(0)), factors


def changed(state: GaussianGamma, window: Window) -> Array:
    """Never: every step of the paper's model starts anew, so nothing was expected of the slice."""
    del state, window
    return jnp.asarray(False)


def adapt_likely(settings: Settings, state: GaussianGamma, window: Window) -> Array:
    """Never: all components are there from the start of a step."""
    del settings, state, window
    return jnp.asarray(False)


def one_slice(state: GaussianGamma) -> GaussianGamma:
    """The state for a window of a single slice, about which nothing is known yet."""
    return replace(state, sparse=state.sparse[:1])


def unobserved(state: GaussianGamma, slot: Array, like: Array) -> GaussianGamma:
    """The state for a window of one slice of `like`'s shape, as if nothing had been observed."""
    del slot
    return replace(state, sparse=like)


def cleared(state: GaussianGamma) -> GaussianGamma:
    """The state with nothing known about single entries."""
    return replace(state, sparse=jnp.zeros_like(state.sparse))


def infer(state: GaussianGamma, factors: Factors, window: Window, level: Level | None) -> tuple[GaussianGamma, Factors]:
    """The newest slice's temporal row and sparse term, the mode factors and the noise fixed."""
    slot = window.newest
    values, mask = window.values[slot][None], window.mask[slot][None]
    biggest, _ = plan(values.shape)
    tau = state.noise_shape / state.noise_rate
    weights = where(mask, tau, 0)
    time_weights = jnp.ones(1, values.dtype)

    def turn(_: int, carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
        row, sparse, gamma = carry
        row, unsolved = update_axes(row, weights, values - sparse, time_weights, [0], biggest)
        del unsolved  # the row keeps its last value, and the sweeps report what stays unsolved
        variance = 1 / (gamma + tau)
        sparse = where(mask, variance * tau * (values - predict.low_rank(row)), 0)
        return row, sparse, (PAPER_PRIOR + 0.5) / (PAPER_PRIOR + (sparse**2 + variance) / 2)

    start = (single_row(factors), jnp.zeros_like(values), jnp.ones_like(values))
    row, sparse, _ = lax.fori_loop(0, PAPER_ITERATIONS, turn, start)
    factors = with_row(factors, slot, row.row_means[0], row.row_covariances[0])
    return replace(state, sparse=state.sparse.at[slot].set(sparse[0])), factors


def weights_and_targets(state: GaussianGamma, window: Window, slice_weights: Array) -> tuple[Array, Array]:
    """ω O τ̄ and y − S̄, each (W, I_1, …, I_N)."""
    weights = along_time(slice_weights, window.values) * (state.noise_shape / state.noise_rate)
    return where(window.mask, weights, 0), window.values - state.sparse


def candidate_weights(state: GaussianGamma, window: Window, slice_weights: Array) -> Array:
    """As above."""
    return weights_and_targets(state, window, slice_weights)[0]


def level_weights(state: GaussianGamma, slot: Array) -> tuple[Array, Array]:
    """All of its precision (outliers are subtracted, not weighted down), and the noise variance."""
    return jnp.ones_like(state.gamma_rate), noise_variance(state, slot)


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


def too_wide(settings: Settings, state: GaussianGamma, window: Window, residual: Array, variance: Array) -> Array:
    """Never: S takes what is large anyway."""
    del settings, state, window, residual, variance
    return jnp.asarray(False)


def median_noise(state: GaussianGamma, window: Window, residual: Array, variance: Array) -> Array:
    """As it is."""
    del window, residual, variance
    return jnp.ones_like(state.noise_rate)


def scaled_noise(state: GaussianGamma, factor: Array) -> GaussianGamma:
    """1/τ̄ times a factor."""
    return replace(state, noise_rate=state.noise_rate * factor)


def update_sparse(state: GaussianGamma, window: Window, residual: Array) -> GaussianGamma:
    """σ² = 1/(γ̄ + τ̄), s̄ = σ² τ̄ (y − x̄), newest slice, observed entries."""
    tau = state.noise_shape / state.noise_rate
    variance = 1 / (state.gamma_shape / state.gamma_rate + tau)
    sparse = where(window.mask[window.newest], variance * tau * residual[window.newest], 0)
    return replace(state, sparse=state.sparse.at[window.newest].set(sparse), sparse_variance=variance)


def update_gamma(state: GaussianGamma, window: Window) -> GaussianGamma:
    """q(γ_i) = Ga(a0 + ½, b0 + ½(s̄² + σ²))."""
    square = state.sparse[window.newest] ** 2 + state.sparse_variance
    return replace(
        state, gamma_shape=jnp.full_like(state.gamma_shape, PAPER_PRIOR + 0.5), gamma_rate=PAPER_PRIOR + square / 2
    )


def squares(state: GaussianGamma, window: Window, residual: Array, variance: Array) -> Array:
    """E[(y − x − s)²] where observed, 0 elsewhere (W, I_1, …, I_N). No expanded terms, so nothing cancels."""
    square = (residual - state.sparse) ** 2 + variance
    square = square.at[window.newest].add(state.sparse_variance)
    return where(window.mask, square, 0)


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
    return replace(state, noise_shape=PAPER_PRIOR + count / 2, noise_rate=PAPER_PRIOR + total / 2)


def outliers(state: GaussianGamma, window: Window, slot: Array, residual: Array) -> tuple[Array, Array]:
    """S̄ of one slice, and the fraction of its residual that S takes (the paper has no probability): s̄ / (y − x̄)."""
    sparse = state.sparse[slot]
    fraction = where(residual != 0, sparse / where(residual != 0, residual, 1), 0)
    return sparse, where(window.mask[slot], jnp.clip(fraction, 0, 1), 0)


def noise_variance(state: GaussianGamma, slot: Array) -> Array:
    """E[1/τ], the same for all entries (I_1, …, I_N)."""
    del slot
    return jnp.broadcast_to(pooled.predictive_variance(state.noise_shape, state.noise_rate), state.gamma_rate.shape)


def typical_noise(state: GaussianGamma) -> Array:
    """1/τ̄."""
    return state.noise_rate / state.noise_shape


def usual_noise(state: GaussianGamma, slice_weights: Array) -> Array:
    """The same: this model has no scale for each slice."""
    del slice_weights
    return typical_noise(state)
