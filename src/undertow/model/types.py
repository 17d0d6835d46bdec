"""What is carried from slice to slice: arrays only. Shapes: slice (I_1, …, I_N), window W, components R."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model.defaults import SMALL_WINDOW
from undertow.model.flow import shared, starts, where
from undertow.model.platform import on_cpu

KnownRows = tuple[Array, ...]
"""For every mode which of its rows, (I_n,) bool, something was observed in: the others are as their prior has them, and
nothing depends on how many there are."""
OutlierState = Any
"""State of the outlier model, `Contaminated` or `GaussianGamma`: only its own functions look inside."""


@register_dataclass
@dataclass(frozen=True)
class EntryIndex:
    """Where the observed entries of a sparse window lie: E positions per slice, the first `lengths` of them used.

    Arrays of a window have an axis W in front; those of a single slice have not.

    Attributes:
        indices: (W, E) int32 for each mode. Sorted, the biggest mode first, so that neighbours share rows.
        fibres: (W, E) int32 for each of the N − 2 biggest modes: the first position of the slice whose indices are the
            same on all smaller modes (see `directions.py`).
        lengths: (W,) int32.
        sizes: I_1, …, I_N.
    """

    indices: tuple[Array, ...]
    fibres: tuple[Array, ...]
    lengths: Array
    sizes: tuple[int, ...] = field(metadata={"static": True})


@register_dataclass
@dataclass(frozen=True)
class Window:
    """A ring buffer of the last W slices, in units of the stream. Slot order is not time order.

    Arrays may have more than W slots, so that models with similar windows share programs; those stay empty.

    Attributes:
        values: y (W, I_1, …, I_N): the data, 0 where unobserved.
        mask: O (W, I_1, …, I_N): True where observed.
        newest: Slot of the newest slice; int32.
        filled: Slices in the window now, at most W; int32.
        entry_index: Where the entries lie, if only observed ones are kept. Then everything that is (W, I_1, …, I_N),
            here and elsewhere, is (W, E) instead, (I_1, …, I_N) is (E,), and the noise variance is one number.
    """

    values: Array
    mask: Array
    newest: Array
    filled: Array
    entry_index: EntryIndex | None = None

    def ages(self) -> Array:
        """Steps since each slot was written (W,); only the first `filled` ages are real, each number occurs once."""
        return _ages(self.newest, self.filled, jnp.arange(self.values.shape[0], dtype=jnp.int32))

    def by_age(self) -> Array:
        """Which slot has each age (W,), the newest first."""
        return self.ages()  # a ring is its own inverse

    def slice_weights(self, forgetting: float) -> Array:
        """ω_t = μ^age (W,), 0 for slots not written yet."""
        slots = jnp.arange(self.values.shape[0], dtype=jnp.int32)
        return _slice_weights(self.newest, self.filled, jnp.asarray(forgetting, self.values.dtype), slots)


def _ages(newest: Array, filled: Array, slots: Array) -> Array:
    """Slots are written from the first on: as long as some are not, the others are a ring of their own."""
    return where(slots < filled, turned(newest - slots, jnp.maximum(filled, 1)), slots)


@shared
def _slice_weights(newest: Array, filled: Array, forgetting: Array, slots: Array) -> Array:
    ages = _ages(newest, filled, slots)
    return where(ages < filled, forgetting ** ages.astype(forgetting.dtype), 0)


@register_dataclass
@dataclass(frozen=True)
class DiscountedRows:
    """Exponentially discounted statistics of evicted slices about the factors; each slice has at most weight μ^age.

    Attributes:
        gram: Γ⁽ⁿ⁾, each (I_n, P): packed Gram matrices.
        projection: h⁽ⁿ⁾, each (I_n, R).
        centre: Γ⁻¹h, each (I_n, R): the rows by these statistics alone.
        retention: δ⁽ⁿ⁾, each (I_n,), in (0, 1]: what a row's statistics still weigh, given how far it has moved.
        row_count: Σ μ^age of the evicted temporal rows in which a component was active (R,).
        row_square: Σ μ^age E c² (R,).
        row_entropy: Σ μ^age (1 + ln Var c) (R,).
    """

    gram: tuple[Array, ...]
    projection: tuple[Array, ...]
    centre: tuple[Array, ...]
    retention: tuple[Array, ...]
    row_count: Array
    row_square: Array
    row_entropy: Array


@register_dataclass
@dataclass(frozen=True)
class DiscountedNoise:
    """Exponentially discounted statistics of evicted slices about noise and outliers; each slice has weight μ^age.

    Attributes:
        counts: n_i (I_1, …, I_N): observations.
        sums: s_i (I_1, …, I_N): weighted squared residuals, in units of the typical noise at eviction.
        flagged: Σρ.
        clean: ΣO(1−ρ).
        energy: Σρτ̄E r².
    """

    counts: Array
    sums: Array
    flagged: Array
    clean: Array
    energy: Array


@register_dataclass
@dataclass(frozen=True)
class Factors:
    """Posterior of the low-rank part: independent Gaussian rows, and the precisions that decide the rank.

    Attributes:
        means: Ā⁽ⁿ⁾, each (I_n, R).
        covariances: V⁽ⁿ⁾, each (I_n, R, R).
        row_means: C̄ (W, R): one temporal row per slot of the window.
        row_covariances: V_t (W, R, R).
        active: (R,) bool: active components. The others have mean and covariance 0.
        precision_shape: c (R,): q(λ_r) = Ga(c_r, d_r).
        precision_rate: d (R,).
        discounted: With `memory="recursive"` only.
    """

    means: tuple[Array, ...]
    covariances: tuple[Array, ...]
    row_means: Array
    row_covariances: Array
    active: Array
    precision_shape: Array
    precision_rate: Array
    discounted: DiscountedRows | None = None

    @property
    def precision(self) -> Array:
        """λ̄ = c / d (R,)."""
        return self.precision_shape / self.precision_rate


@register_dataclass
@dataclass(frozen=True)
class Contaminated:
    """Posterior of contaminated normal noise, the default outlier model.

    Attributes:
        probability: ρ (W, I_1, …, I_N): probability that an observed entry is an outlier; 0 where unobserved.
        rate_a: q(π) = Beta(rate_a, rate_b).
        rate_b: See `rate_a`.
        ratio: κ: variance of an outlier over that of the noise.
        slice_scale: φ (W,): noise variance of a slice over the usual, at most κ; large where a slice does not fit.
        pool_shape: α: τ_i ~ Ga(α, b). Large: one noise variance for all entries.
        pool_rate: b.
        noise_shape: q(τ_i) = Ga(noise_shape_i, noise_rate_i), each (I_1, …, I_N).
        noise_rate: See `noise_shape`.
        discounted: With `memory="recursive"` only.
    """

    probability: Array
    rate_a: Array
    rate_b: Array
    ratio: Array
    slice_scale: Array
    pool_shape: Array
    pool_rate: Array
    noise_shape: Array
    noise_rate: Array
    discounted: DiscountedNoise | None = None


@register_dataclass
@dataclass(frozen=True)
class GaussianGamma:
    """Posterior of the paper's sparse term S, its precisions γ and the noise precision τ.

    Attributes:
        sparse: S̄ (W, I_1, …, I_N): inferred for the newest slice, frozen for the others; 0 where unobserved.
        sparse_variance: σ² of the newest slice (I_1, …, I_N).
        gamma_shape: q(γ_i) = Ga(gamma_shape, gamma_rate_i), newest slice; the shape is a scalar.
        gamma_rate: (I_1, …, I_N).
        noise_shape: q(τ) = Ga(noise_shape, noise_rate), scalars.
        noise_rate: See `noise_shape`.
    """

    sparse: Array
    sparse_variance: Array
    gamma_shape: Array
    gamma_rate: Array
    noise_shape: Array
    noise_rate: Array


@register_dataclass
@dataclass(frozen=True)
class FilterBank:
    """Kalman filters of the level, one per ratio ψ of step to noise variance. Variances over the noise's.

    Attributes:
        mean: (ratios, I_1, …, I_N), as is all below unless said otherwise.
        variance: Of the filtered level.
        noise_sum: Noise variance as each filter sees it: noise_sum / noise_count.
        noise_count: (I_1, …, I_N).
        score: Discounted log-likelihood of what each has predicted.
    """

    mean: Array
    variance: Array
    noise_sum: Array
    noise_count: Array
    score: Array


@register_dataclass
@dataclass(frozen=True)
class Level:
    """Posterior of the local level m, a random walk per entry.

    Attributes:
        mean: m̄ (W, I_1, …, I_N), smoothed over the window.
        variance: Var m (W, I_1, …, I_N).
        start_mean: Filtered just before the oldest slice of the window (I_1, …, I_N).
        start_variance: (I_1, …, I_N).
        next_mean: Filtered at the oldest slice: the start once that slice is evicted.
        next_variance: (I_1, …, I_N).
        initial_variance: v: variance of the level before the first slice.
        walk_variance: q (I_1, …, I_N): variance of a step.
        bank: Filters that choose q.
    """

    mean: Array
    variance: Array
    start_mean: Array
    start_variance: Array
    next_mean: Array
    next_variance: Array
    initial_variance: Array
    walk_variance: Array
    bank: FilterBank


@register_dataclass
@dataclass(frozen=True)
class Core:
    """All arrays of a state: what the compiled step takes and gives back. `level` is None where there is none."""

    window: Window
    factors: Factors
    outliers: OutlierState
    level: Level | None


def over_slice(values: Array) -> Array:
    """Sum over every axis but time: (W, I_1, …, I_N) → (W,)."""
    return values.reshape(values.shape[0], -1).sum(axis=1)


def turned(slot: Array, size: Array | int) -> Array:
    """The slot of a ring where one that is too large or too small by less than a turn really is."""
    size = jnp.asarray(size, slot.dtype)
    return lax.rem(slot + size, size)


def put(ring: Array, slot: Array, value: Array) -> Array:
    """A ring of slices with one of them replaced."""
    return lax.dynamic_update_slice(
        ring, value.astype(ring.dtype)[None], starts(slot, 0, ring.ndim), allow_negative_indices=False
    )


def taken(ring: Array, slot: Array) -> Array:
    """One of a ring of slices. As `ring[slot]`, which would count negative slots from the end."""
    return lax.dynamic_slice(
        ring, starts(slot, 0, ring.ndim), (1, *ring.shape[1:]), allow_negative_indices=False
    ).reshape(ring.shape[1:])


def over_time(part: Callable[..., tuple[Array, Array]], *arrays: Array) -> tuple[Array, Array]:
    """Σ_t part(arrays at t), two sums together.

    On a CPU large windows are added up slice by slice: what the parts are made of stays in cache, and no array of the
    window's size is needed.
    """
    if arrays[0].size <= SMALL_WINDOW or not on_cpu():
        made = jax.vmap(part)(*arrays)
        return made[0].sum(axis=0), made[1].sum(axis=0)

    def one(sums: tuple[Array, Array], here: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        own = part(*here)
        return (sums[0] + own[0], sums[1] + own[1]), None

    first = tuple(jnp.zeros(like.shape, like.dtype) for like in jax.eval_shape(part, *(array[0] for array in arrays)))
    (counts, sums), _ = lax.scan(one, (first[0], first[1]), arrays)
    return counts, sums


def along_time(per_slice: Array, like: Array) -> Array:
    """(W,) shaped to broadcast over (W, I_1, …, I_N)."""
    return per_slice.reshape(-1, *([1] * (like.ndim - 1)))
