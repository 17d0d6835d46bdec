"""Birth of a component: the best rank-one term for the weighted residual of the window, kept if the evidence gains.

The newcomer's posterior is independent of the other components', so only one column per axis is fitted, and its gain

    Σ w (r x̄ − ½ E x²) − Σ_axes Σ_i p_i KL(q(a_i) ‖ p(a_i | λ)) − KL(q(λ) ‖ p(λ))

is exact. Cost: some forty passes over the window, no matrix larger than a column.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model.factors import all_covariances, all_means, collect, contract, plan, with_axis
from undertow.model.noise import expected_log, gamma_gap
from undertow.model.rank import choose
from undertow.model.state import Factors

SPECTRAL_TURNS = 6
SWEEPS = 8

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


def statistics(weights: Array, weighted: Array, means: Columns, variances: Columns, axis: int) -> tuple[Array, Array]:
    """Σ w Π E a² and Σ w r Π ā over all axes but one, for each row of that axis."""
    biggest, second = plan(weights.shape)
    over = second if axis == biggest else biggest
    left = [place for place in range(weights.ndim) if place != over]
    squares = [(mean**2 + spread)[:, None] for mean, spread in zip(means, variances, strict=True)]
    columns = [mean[:, None] for mean in means]
    gram = collect(contract(weights, squares[over], over), left, squares, axis)
    projection = collect(contract(weighted, columns[over], over), left, columns, axis)
    return gram[:, 0], projection[:, 0]


def rank_one(weights: Array, residual: Array, row_share: Array, prior: float) -> tuple[Columns, Columns, Array, Array, Array]:
    """Variational rank-one fit to the residual: means and variances by axis, q(λ) = Ga(shape, rate), gain."""
    weighted = weights * residual
    means = leading_directions(weighted)
    shares = [row_share, *(jnp.ones_like(mean) for mean in means[1:])]
    counts = [share.sum() for share in shares]
    shape = prior + sum(counts) / 2

    def solve(axis: int, means: Columns, variances: Columns, precision: Array) -> tuple[Array, Array]:
        gram, projection = statistics(weights, weighted, means, variances, axis)
        used = shares[axis] > 0
        per_share = jnp.where(used, 1 / jnp.where(used, shares[axis], 1), 0)
        spread = jnp.where(used, 1 / (precision + gram * per_share), 0)
        return spread * projection * per_share, spread

    def rate_of(means: Columns, variances: Columns) -> Array:
        energy = [share @ (mean**2 + spread) for share, mean, spread in zip(shares, means, variances, strict=True)]
        return prior + sum(energy) / 2

    def turn(_: int, carry: tuple[Columns, Columns, Array]) -> tuple[Columns, Columns, Array]:
        means, variances, rate = list(carry[0]), list(carry[1]), carry[2]
        for axis in [*range(1, weights.ndim), 0]:
            means[axis], variances[axis] = solve(axis, means, variances, shape / rate)
        return means, variances, rate_of(means, variances)

    # Least squares for the temporal row, then the same typical size on every axis: that is where the prior wants it.
    variances = [jnp.zeros_like(mean) for mean in means]
    nearly_nothing = jnp.asarray(jnp.finfo(weights.dtype).tiny, weights.dtype)
    means[0], _ = solve(0, means, variances, nearly_nothing)
    size = jnp.stack([jnp.sqrt(share @ mean**2 / count) for share, mean, count in zip(shares, means, counts, strict=True)])
    common = jnp.prod(size ** (1 / len(means)))
    means = [mean * factor for mean, factor in zip(means, jnp.where(size > 0, common / jnp.where(size > 0, size, 1), 0), strict=True)]
    means, variances, rate = lax.fori_loop(0, SWEEPS, turn, (means, variances, rate_of(means, variances)))

    gram, projection = statistics(weights, weighted, means, variances, 0)
    gain = (projection * means[0] - gram * (means[0] ** 2 + variances[0]) / 2).sum()
    gain -= gamma_gap(shape, rate, prior, prior)
    for share, mean, spread in zip(shares, means, variances, strict=True):
        log_spread = jnp.log(jnp.where(spread > 0, spread, 1))
        terms = expected_log(shape, rate) + 1 + log_spread - shape / rate * (mean**2 + spread)
        gain += (share * terms).sum() / 2
    return means, variances, shape, rate, gain


def birth(factors: Factors, weights: Array, residual: Array, row_share: Array, prior: float) -> tuple[Factors, Array]:
    """Put the best newcomer into a free place if the evidence gains by it. Returns whether one was born."""
    means, variances, shape, rate, gain = rank_one(weights, residual, row_share, prior)
    born = (gain > 0) & ~factors.alive.all()
    place = jnp.argmin(factors.alive)
    grown = replace(
        factors,
        alive=factors.alive.at[place].set(True),
        precision_shape=factors.precision_shape.at[place].set(shape),
        precision_rate=factors.precision_rate.at[place].set(rate),
    )
    for axis, (mean, covariance) in enumerate(zip(all_means(factors), all_covariances(factors), strict=True)):
        covariance = covariance.at[:, place, place].set(variances[axis])
        grown = with_axis(grown, axis, mean.at[:, place].set(means[axis]), covariance)
    return choose(born, grown, factors), born
