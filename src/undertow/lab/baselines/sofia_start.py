"""The start of SOFIA: robust, smooth CP of the first cycles by alternating least squares and soft thresholding.

    min Σ_Ω (y − o − x)² + λ₁ Σ_t ‖c_t − c_{t−1}‖² + λ₂ Σ_t ‖c_t − c_{t−m}‖² + λ₃ ‖o‖₁

Outer iterations: smooth CP of y − o, then o = soft(y − x, λ₃) with λ₃ shrinking by 0.85 down to a hundredth, until x
converges.
Inner iterations: rows of the slice modes by masked least squares, columns normalised (the temporal mode carries the
scale), then the temporal rows one after the other, each with its neighbours in time and season.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from undertow.lab.baselines import cp
from undertow.lab.baselines.baseline import Array, Mask

_SHRINKAGE, _FLOOR = 0.85, 0.01
_SWEEPS, _FIT_CHANGE = 300, 1e-3


def robust_start(
    tensor: Array,
    mask: Mask,
    rank: int,
    period: int,
    weights: tuple[float, float, float],
    limits: tuple[int, float],
    seed: int,
) -> tuple[tuple[Array, ...], Array, Array, Array]:
    """Unit-norm factors, temporal rows (T, R), x and o of the stacked slices, time last.

    weights are λ₁, λ₂, λ₃; limits the largest number of outer iterations and the relative change of x that ends them.
    """
    smooth, seasonal, threshold = weights
    draw = np.random.default_rng(seed)
    factors = tuple(draw.uniform(size=(size, rank)) for size in tensor.shape)
    low_rank, outliers, current = np.zeros(tensor.shape), np.zeros(tensor.shape), threshold
    flags = mask.astype(np.float64)
    with jax.enable_x64(True):
        for epoch in range(limits[0]):
            before = low_rank
            solved = _smooth_cp(tensor - outliers * flags, flags, factors, np.array([smooth, seasonal]), period)
            factors, low_rank = jax.tree.map(np.array, solved)
            rest = tensor - low_rank
            outliers = flags * np.sign(rest) * np.maximum(np.abs(rest) - current, 0.0)
            current = max(current * _SHRINKAGE, threshold * _FLOOR)
            if epoch > 0 and np.linalg.norm(low_rank - before) < limits[1] * np.linalg.norm(before):
                break
    return tuple(factors[:-1]), factors[-1], low_rank, outliers


@jax.jit
def _smooth_cp(
    values: jax.Array, mask: jax.Array, start: tuple[jax.Array, ...], weights: jax.Array, period: jax.Array
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    norm = jnp.linalg.norm(values.ravel())

    def fit(factors: Any) -> tuple[jax.Array, jax.Array]:
        low_rank = cp.compose(factors, jnp.ones(factors[0].shape[1]))
        misfit = jnp.linalg.norm((mask * (values - low_rank)).ravel()) / jnp.where(norm > 0, norm, 1.0)
        return 1 - misfit, low_rank

    def go_on(now: Any) -> Any:
        _, _, fitted, last, count = now
        return (count < _SWEEPS) & ~((count > 1) & (jnp.abs(fitted - last) < _FIT_CHANGE))

    def once(now: Any) -> Any:
        factors, _, fitted, _, count = now
        factors = _sweep(values, mask, list(factors), weights, period)
        new_fit, low_rank = fit(factors)
        return factors, low_rank, new_fit, fitted, count + 1

    normalised = list(start)
    for mode in range(len(start) - 1):
        normalised = _normalised(normalised, mode)
    first, low_rank = fit(normalised)
    end = jax.lax.while_loop(go_on, once, (tuple(normalised), low_rank, first, first, jnp.zeros((), dtype=int)))
    return end[0], end[1]


def _normalised(factors: list[jax.Array], mode: int) -> list[jax.Array]:
    """Unit columns in `mode`, their length moved into the temporal mode."""
    length = jnp.sqrt((factors[mode] ** 2).sum(0))
    moved = list(factors)
    moved[mode] = factors[mode] / jnp.where(length > 0, length, 1.0)
    moved[-1] = moved[-1] * length
    return moved


def _sweep(
    values: jax.Array, mask: jax.Array, factors: list[jax.Array], weights: jax.Array, period: jax.Array
) -> tuple[jax.Array, ...]:
    rank, time = factors[0].shape[1], values.ndim - 1
    for mode in range(time):
        grams = cp.contract(mask, [cp.squares(factor) for factor in factors], mode).reshape(-1, rank, rank)
        targets = cp.contract(values, factors, mode)
        # The pseudo-inverse: a row may have fewer observations than components.
        factors[mode] = jnp.einsum("irs,is->ir", jnp.linalg.pinv(grams, hermitian=True), targets)
        factors = _normalised(factors, mode)
    grams = cp.contract(mask, [cp.squares(factor) for factor in factors], time).reshape(-1, rank, rank)
    targets = cp.contract(values, factors, time)
    length = values.shape[time]

    def row(rows: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
        gram, target = grams[index], targets[index]
        for offset, weight in ((1, weights[0]), (period, weights[1])):
            for neighbour in (index - offset, index + offset):
                there = weight * ((neighbour >= 0) & (neighbour < length))
                target = target + there * rows[jnp.clip(neighbour, 0, length - 1)]
                gram = gram + there * jnp.eye(rank)
        return rows.at[index].set(jnp.linalg.pinv(gram, hermitian=True) @ target), None

    factors[time], _ = jax.lax.scan(row, factors[time], jnp.arange(length))
    return tuple(factors)
