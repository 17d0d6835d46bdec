"""Birth of a component: the best rank-one term for the weighted residual of the window, kept if the evidence gains.

The newcomer's posterior is independent of the other components', so only one column per axis is fitted, and its share
in E r² is known exactly. While it is fitted, all noise variances may shrink by one factor ψ ≤ 1: with the noise as it
was, structure that is still taken for noise would shrink its own estimate. Whether it is let in is decided by the whole
bound, after the outlier model has looked at the new residuals (step.py).
Cost: some fifty passes over the window, no matrix larger than a column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model import predict
from undertow.model.factors import all_covariances, all_means, with_axis
from undertow.model.noise import expected_log, gamma_gap
from undertow.model.state import Factors

SPECTRAL_TURNS = 6
SWEEPS = 8
LEAST_FACTOR = 1e-6
"""A newcomer may lower the noise variance a million times at most; the sweeps that follow do the rest."""

Columns = list[Array]
"""One vector per axis: (W,), (I_1,), …, (I_N,)."""


def leading_directions(gradient: Array) -> Columns:
    """A rank-one start for `gradient` (W, I_1, …, I_N), one unit vector per axis.

    For each mode in turn (biggest first): the leading left singular vector of its unfolding, by power iteration from
    the row of largest norm (so neither chance nor the order of rows matters), then project onto it and go on.
    """
    axes = list(range(gradient.ndim))
    vectors: dict[int, Array] = {}
    for axis in sorted(axes[1:], key=lambda axis: -gradient.shape[axis]):
        place = axes.index(axis)
        matrix = jnp.moveaxis(gradient, place, 0)
        rest = matrix.shape[1:]
        matrix = matrix.reshape(matrix.shape[0], -1)

        def turn(_: int, direction: Array, matrix: Array = matrix) -> Array:
            vector = unit(jnp.matmul(matrix, direction, precision=lax.Precision.HIGHEST))
            return jnp.matmul(vector, matrix, precision=lax.Precision.HIGHEST)

        start = matrix[jnp.argmax((matrix**2).sum(axis=1))]
        direction = lax.fori_loop(0, SPECTRAL_TURNS, turn, start)
        vectors[axis] = unit(jnp.matmul(matrix, direction, precision=lax.Precision.HIGHEST))
        gradient = direction.reshape(rest)
        axes.remove(axis)
        vectors[0] = unit(gradient)
    return [vectors[axis] for axis in sorted(vectors)]


def unit(vector: Array) -> Array:
    """The vector at length 1; 0 stays 0."""
    size = jnp.sqrt((vector**2).sum())
    return vector / jnp.where(size > 0, size, 1)


def over_time(tensor: Array, column: Array) -> Array:
    """Σ_t column_t tensor_t: (W, I_1, …, I_N) → (I_1, …, I_N)."""
    return jnp.tensordot(column, tensor, axes=1, precision=lax.Precision.HIGHEST)


def over_modes(tensor: Array, columns: Columns) -> Array:
    """Σ over all modes of the tensor times a column each: (W, I_1, …, I_N) → (W,)."""
    flat = predict.outer_product(columns).reshape(-1)
    return jnp.matmul(tensor.reshape(tensor.shape[0], -1), flat, precision=lax.Precision.HIGHEST)


def over_other_modes(slice_sum: Array, columns: Columns, mode: int) -> Array:
    """Σ over all modes but one of (I_1, …, I_N) times a column each: (I_mode,)."""
    for other in reversed(range(slice_sum.ndim)):
        if other != mode:
            slice_sum = jnp.tensordot(slice_sum, columns[other], axes=((other,), (0,)), precision=lax.Precision.HIGHEST)
    return slice_sum


class Newcomer(NamedTuple):
    """A component that wants to be born."""

    means: Columns
    variances: Columns
    precision_shape: Array
    precision_rate: Array
    evidence: Array
    """What its rows and its precision add to the bound; negative."""

    def low_rank(self) -> Array:
        """x̄ of the newcomer alone (W, I_1, …, I_N)."""
        return predict.outer_product(self.means)

    def square(self) -> Array:
        """E x² of the newcomer alone (W, I_1, …, I_N)."""
        squares = [mean**2 + spread for mean, spread in zip(self.means, self.variances, strict=True)]
        return predict.outer_product(squares)


def rank_one(weights: Array, residual: Array, energy: Array, count: Array, row_share: Array, prior: float) -> Newcomer:
    """Variational rank-one fit to the residual. `energy` is Σ w E r², `count` is Σ ω O."""
    weighted = weights * residual
    means = leading_directions(weighted)
    shares = [row_share, *(jnp.ones_like(mean) for mean in means[1:])]
    counts = [share.sum() for share in shares]
    shape = prior + jnp.stack(counts).sum() / 2

    def squares(means: Columns, variances: Columns) -> Columns:
        return [mean**2 + spread for mean, spread in zip(means, variances, strict=True)]

    def solve(axis: int, gram: Array, projection: Array, precision: Array, factor: Array) -> tuple[Array, Array]:
        used = shares[axis] > 0
        per_share = jnp.where(used, 1 / jnp.where(used, shares[axis] * factor, 1), 0)
        spread = jnp.where(used, 1 / (precision + gram * per_share), 0)
        return spread * projection * per_share, spread

    def rate_of(means: Columns, variances: Columns) -> Array:
        energy = [share @ square for share, square in zip(shares, squares(means, variances), strict=True)]
        return prior + jnp.stack(energy).sum() / 2

    def turn(_: int, carry: tuple[Columns, Columns, Array, Array]) -> tuple[Columns, Columns, Array, Array]:
        means, variances, rate, factor = list(carry[0]), list(carry[1]), carry[2], carry[3]
        gram_sum = over_time(weights, means[0] ** 2 + variances[0])
        projection_sum = over_time(weighted, means[0])
        for axis in range(1, weights.ndim):
            gram = over_other_modes(gram_sum, squares(means, variances)[1:], axis - 1)
            projection = over_other_modes(projection_sum, means[1:], axis - 1)
            means[axis], variances[axis] = solve(axis, gram, projection, shape / rate, factor)
        gram, projection = over_modes(weights, squares(means, variances)[1:]), over_modes(weighted, means[1:])
        means[0], variances[0] = solve(0, gram, projection, shape / rate, factor)
        left = energy - 2 * projection @ means[0] + gram @ (means[0] ** 2 + variances[0])
        factor = jnp.clip(left / jnp.maximum(count, 1), LEAST_FACTOR, 1)
        return means, variances, rate_of(means, variances), factor

    # Least squares for the temporal row, then the same typical size on every axis: that is where the prior wants it.
    variances = [jnp.zeros_like(mean) for mean in means]
    nearly_nothing = jnp.asarray(float(np.finfo(weights.dtype).tiny), weights.dtype)
    one = jnp.ones((), weights.dtype)
    gram, projection = over_modes(weights, [mean**2 for mean in means[1:]]), over_modes(weighted, means[1:])
    means[0], _ = solve(0, gram, projection, nearly_nothing, one)
    size = jnp.stack(
        [jnp.sqrt(share @ mean**2 / count) for share, mean, count in zip(shares, means, counts, strict=True)]
    )
    common = jnp.prod(size ** (1 / len(means)))
    means = [
        mean * factor
        for mean, factor in zip(means, jnp.where(size > 0, common / jnp.where(size > 0, size, 1), 0), strict=True)
    ]
    start = (means, variances, rate_of(means, variances), one)
    means, variances, rate, _ = lax.fori_loop(0, SWEEPS, turn, start)
    evidence = -gamma_gap(shape, rate, prior, prior)
    for share, mean, spread in zip(shares, means, variances, strict=True):
        log_spread = jnp.log(jnp.where(spread > 0, spread, 1))
        terms = expected_log(shape, rate) + 1 + log_spread - shape / rate * (mean**2 + spread)
        evidence += (share * terms).sum() / 2
    return Newcomer(means, variances, shape, rate, evidence)


def born(factors: Factors, newcomer: Newcomer) -> Factors:
    """The factors with the newcomer in the first free place."""
    place = jnp.argmin(factors.alive)
    grown = replace(
        factors,
        alive=factors.alive.at[place].set(True),
        precision_shape=factors.precision_shape.at[place].set(newcomer.precision_shape),
        precision_rate=factors.precision_rate.at[place].set(newcomer.precision_rate),
    )
    for axis, (mean, covariance) in enumerate(zip(all_means(factors), all_covariances(factors), strict=True)):
        covariance = covariance.at[:, place, place].set(newcomer.variances[axis])
        grown = with_axis(grown, axis, mean.at[:, place].set(newcomer.means[axis]), covariance)
    return grown
