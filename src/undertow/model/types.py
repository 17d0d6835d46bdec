"""What is carried from slice to slice: arrays only. Shapes: slice (I_1, …, I_N), window W, components R."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import register_dataclass

SMALL_WINDOW = 2**15
"""Up to so many entries a window is in cache anyway."""


@register_dataclass
@dataclass(frozen=True)
class EntryIndex:
    """Where the entries of a sparse window lie: E places a slice, the first `lengths` of them taken, the rest empty.

    Of a window all arrays have an axis W in front; of a single slice they have not.
    """

    indices: tuple[Array, ...]
    """(W, E) int32 for each mode. Sorted, the biggest mode first, so that neighbours share rows."""
    fibres: tuple[Array, ...]
    """(W, E) int32 for each of the N − 2 biggest modes: the first place of the slice whose indices are the same on all
    smaller modes (see `observed.leading_direction`)."""
    lengths: Array
    """(W,) int32."""
    sizes: tuple[int, ...] = field(metadata={"static": True})
    """I_1, …, I_N."""


@register_dataclass
@dataclass(frozen=True)
class Window:
    """A ring of the last W slices, in units of the stream (see `step.py`). Slot order is not time order."""

    values: Array
    """y (W, I_1, …, I_N): the data, 0 where unobserved."""
    mask: Array
    """O (W, I_1, …, I_N): True where observed."""
    newest: Array
    """Slot of the newest slice; int32."""
    filled: Array
    """Slices in the window now, at most W; int32."""
    entry_index: EntryIndex | None = None
    """Where only observed entries are kept: where they lie. Then everything that is (W, I_1, …, I_N), here and
    elsewhere, is (W, E) instead, and (I_1, …, I_N) is (E,); the noise is one number."""

    def ages(self) -> Array:
        """Steps since each slot was written (W,); only the first `filled` ages are real."""
        size = self.values.shape[0]
        return jnp.mod(self.newest - jnp.arange(size, dtype=jnp.int32), size)

    def slice_weights(self, forgetting: float) -> Array:
        """ω_t = μ^age (W,), 0 for slots not written yet."""
        ages = self.ages()
        weights = jnp.asarray(forgetting, self.values.dtype) ** ages.astype(self.values.dtype)
        return jnp.where(ages < self.filled, weights, 0)


@register_dataclass
@dataclass(frozen=True)
class DiscountedRows:
    """What slices that have left the window say about the factors; each counts μ^age at most (see past.py)."""

    gram: tuple[Array, ...]
    """Γ⁽ⁿ⁾, each (I_n, P): packed Gram matrices."""
    projection: tuple[Array, ...]
    """h⁽ⁿ⁾, each (I_n, R)."""
    centre: tuple[Array, ...]
    """Γ⁻¹h, each (I_n, R): where the past alone would have the rows."""
    retention: tuple[Array, ...]
    """δ⁽ⁿ⁾, each (I_n,), in (0, 1]: what the past of a row is still worth, given how far the row has moved."""
    row_count: Array
    """Σ μ^age of the temporal rows gone in which a component lived (R,)."""
    row_square: Array
    """Σ μ^age E c² (R,)."""
    row_entropy: Array
    """Σ μ^age (1 + ln Var c) (R,)."""


@register_dataclass
@dataclass(frozen=True)
class DiscountedNoise:
    """What slices that have left the window say about noise and outliers; each counts μ^age (see past.py)."""

    counts: Array
    """n_i (I_1, …, I_N): observations."""
    sums: Array
    """s_i (I_1, …, I_N): trusted squared residuals, in units of the typical noise when the slice left."""
    flagged: Array
    """Σρ."""
    clean: Array
    """ΣO(1−ρ)."""
    energy: Array
    """Σρτ̄E r²."""


@register_dataclass
@dataclass(frozen=True)
class Factors:
    """Posterior of the low-rank part: independent Gaussian rows, and the precisions that decide the rank."""

    means: tuple[Array, ...]
    """Ā⁽ⁿ⁾, each (I_n, R)."""
    covariances: tuple[Array, ...]
    """V⁽ⁿ⁾, each (I_n, R, R)."""
    row_means: Array
    """C̄ (W, R): one temporal row per slot of the window."""
    row_covariances: Array
    """V_t (W, R, R)."""
    active: Array
    """(R,) bool: which components live. Dead ones have mean and covariance 0."""
    precision_shape: Array
    """c (R,): q(λ_r) = Ga(c_r, d_r)."""
    precision_rate: Array
    """d (R,)."""
    discounted: DiscountedRows | None = None
    """With `memory="recursive"` only."""

    @property
    def precision(self) -> Array:
        """λ̄ = c / d (R,)."""
        return self.precision_shape / self.precision_rate


@register_dataclass
@dataclass(frozen=True)
class Contaminated:
    """Posterior of the contaminated normal noise (default preset)."""

    probability: Array
    """ρ (W, I_1, …, I_N): probability that an observed entry is an outlier; 0 where unobserved."""
    rate_a: Array
    """q(π) = Beta(a, b)."""
    rate_b: Array
    ratio: Array
    """κ: variance of an outlier over that of the noise."""
    slice_scale: Array
    """φ (W,): noise variance of a slice over the usual, at most κ; large where a slice does not fit the factors."""
    pool_shape: Array
    """α: τ_i ~ Ga(α, b). Large: one noise level for all entries."""
    pool_rate: Array
    """b."""
    noise_shape: Array
    """q(τ_i) = Ga(shape_i, rate_i), each (I_1, …, I_N)."""
    noise_rate: Array
    discounted: DiscountedNoise | None = None
    """With `memory="recursive"` only."""


@register_dataclass
@dataclass(frozen=True)
class GaussianGamma:
    """Posterior of the paper's sparse term S, its precisions γ and the noise precision τ."""

    sparse: Array
    """S̄ (W, I_1, …, I_N): inferred for the newest slice, frozen for the others; 0 where unobserved."""
    sparse_variance: Array
    """σ² of the newest slice (I_1, …, I_N)."""
    gamma_shape: Array
    """q(γ_i) = Ga(shape, rate_i), newest slice; shape is a scalar, rate (I_1, …, I_N)."""
    gamma_rate: Array
    noise_shape: Array
    """q(τ) = Ga(a, b), scalars."""
    noise_rate: Array


@register_dataclass
@dataclass(frozen=True)
class FilterBank:
    """Filters of the level, one for each pace it might walk at, to find out which fits. Variances over the noise's."""

    mean: Array
    """(paces, I_1, …, I_N), as is all below unless said otherwise."""
    variance: Array
    noise_sum: Array
    """Noise variance as each filter sees it: noise_sum / noise_count."""
    noise_count: Array
    """(I_1, …, I_N)."""
    score: Array
    """Log-likelihood of what each has predicted, forgetting."""


@register_dataclass
@dataclass(frozen=True)
class Level:
    """Posterior of the entrywise level m, a random walk per entry."""

    mean: Array
    """m̄ (W, I_1, …, I_N), smoothed over the window."""
    variance: Array
    """Var m (W, I_1, …, I_N)."""
    start_mean: Array
    """Filtered just before the oldest slice of the window (I_1, …, I_N)."""
    start_variance: Array
    next_mean: Array
    """Filtered at the oldest slice: the start once that slice has left."""
    next_variance: Array
    initial_variance: Array
    """v: variance of the level before the first slice."""
    walk_variance: Array
    """q (I_1, …, I_N): variance of a step."""
    bank: FilterBank


@register_dataclass
@dataclass(frozen=True)
class Core:
    """All arrays of a state: what the compiled step takes and gives back."""

    window: Window
    factors: Factors
    outliers: Contaminated | GaussianGamma
    level: Level | None
    """None where entries have no level of their own."""


def over_slice(values: Array) -> Array:
    """Sum over every axis but time: (W, I_1, …, I_N) → (W,)."""
    return values.reshape(values.shape[0], -1).sum(axis=1)


def over_time(part: Callable[..., tuple[Array, Array]], *arrays: Array) -> tuple[Array, Array]:
    """Σ_t part(arrays at t), two sums at once. Large windows are added up slice by slice on a CPU: what the parts are
    made of stays in cache, and no array of the window's size is needed for it."""
    if arrays[0].size <= SMALL_WINDOW or jax.default_backend() != "cpu":
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
