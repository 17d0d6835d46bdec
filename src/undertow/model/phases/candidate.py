"""A candidate component: the best rank-one term for the weighted residual of the window.

The candidate's posterior is independent of the other components', so only one column per axis is fitted, and what it
adds to E r² is known exactly. While it is fitted, all noise variances may shrink by one factor ψ ≤ 1: with the noise as
it was, structure that is still taken for noise would shrink its own estimate. Whether it is added is decided by the
whole ELBO, after the outlier model has been updated for the new residuals (judge.py).
Cost: some fifty passes over the window, no matrix larger than a column.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from undertow.model.defaults import CANDIDATE_MIN_NOISE, CANDIDATE_SWEEPS
from undertow.model.factors import layout, observed
from undertow.model.factors.directions import leading_directions
from undertow.model.factors.rows import all_covariances, all_means, with_axis
from undertow.model.flow import end_to_end, inverse_of, shared, where
from undertow.model.noise.pooled import expected_log, gamma_gap
from undertow.model.types import EntryIndex, Factors, KnownRows

Columns = list[Array]
"""One vector per axis: (W,), (I_1,), …, (I_N,)."""


def over_time(tensor: Array, column: Array) -> Array:
    """Σ_t column_t tensor_t: (W, I_1, …, I_N) → (I_1, …, I_N)."""
    return jnp.tensordot(column, tensor, axes=1, precision=lax.Precision.HIGHEST)


def over_modes(tensor: Array, columns: Columns) -> Array:
    """Σ over all modes of the tensor times a column each: (W, I_1, …, I_N) → (W,)."""
    flat = layout.outer_product(columns, None).reshape(-1)
    return jnp.matmul(tensor.reshape(tensor.shape[0], -1), flat, precision=lax.Precision.HIGHEST)


def over_other_modes(slice_sum: Array, columns: Columns, mode: int) -> Array:
    """Σ over all modes but one of (I_1, …, I_N) times a column each: (I_mode,)."""
    for other in reversed(range(slice_sum.ndim)):
        if other != mode:
            slice_sum = jnp.tensordot(slice_sum, columns[other], axes=((other,), (0,)), precision=lax.Precision.HIGHEST)
    return slice_sum


def squares(means: Columns, variances: Columns) -> Columns:
    """E a² of every axis."""
    return [mean**2 + variance for mean, variance in zip(means, variances, strict=True)]


class Candidate(NamedTuple):
    """A component that may be added; `elbo` is what its rows and its precision add to the bound (negative)."""

    means: Columns
    variances: Columns
    precision_shape: Array
    precision_rate: Array
    elbo: Array

    def low_rank(self, entry_index: EntryIndex | None = None) -> Array:
        """x̄ of the candidate alone (W, I_1, …, I_N)."""
        return layout.outer_product(self.means, entry_index)

    def square(self, entry_index: EntryIndex | None = None) -> Array:
        """E x² of the candidate alone (W, I_1, …, I_N)."""
        return layout.outer_product(squares(self.means, self.variances), entry_index)

    @shared
    def left(self, residual: Array, variance: Array, entry_index: EntryIndex | None = None) -> tuple[Array, Array]:
        """Residual and variance of the window once it is added."""
        mean = self.low_rank(entry_index)
        return residual - mean, variance + jnp.maximum(self.square(entry_index) - mean**2, 0)

    def square_left(self, residual: Array, variance: Array, entry_index: EntryIndex | None = None) -> Array:
        """E r² of the window once it is added."""
        residual, variance = self.left(residual, variance, entry_index)
        return residual**2 + variance


class Draft(NamedTuple):
    """A candidate that is still being fitted.

    Attributes:
        means: By axis.
        variances: By axis.
        rate: d of its precision λ ~ Ga(c, d).
        factor: ψ: noise variance with the candidate over that without, at most 1.
        left: Σ w E r² with the candidate.
    """

    means: Columns
    variances: Columns
    rate: Array
    factor: Array
    left: Array


class CandidateFit:
    """Variational rank-one fit to the residual. `energy` is Σ w E r², `count` is Σ ω O, `time_weights` are p_t."""

    def __init__(
        self,
        weights: Array,
        residual: Array,
        energy: Array,
        count: Array,
        time_weights: Array,
        prior: float,
        entry_index: EntryIndex | None = None,
        known: KnownRows | None = None,
    ) -> None:
        self.weights, self.weighted = weights, weights * residual
        self.energy, self.count, self.prior, self.entry_index = energy, count, prior, entry_index
        sizes = weights.shape[1:] if entry_index is None else entry_index.sizes
        self.row_weights = [time_weights, *(jnp.ones(rows, weights.dtype) for rows in sizes)]
        counted = self.row_weights[1:] if known is None else [rows.astype(weights.dtype) for rows in known]
        self.all_weights = end_to_end([time_weights, *counted])
        self.sizes, self.slices = [jnp.maximum(rows.sum(), 1) for rows in counted], time_weights.sum()
        self.shape = prior + (self.slices + sum(self.sizes)) / 2

    def fitted(self) -> Candidate:
        """The candidate: a spectral start, then sweeps."""
        means = leading_directions(self.weighted, self.entry_index)
        # Least squares for the temporal row, then the same typical size on every axis: where the prior wants it.
        one = jnp.ones((), self.weights.dtype)
        nearly_nothing = jnp.asarray(float(np.finfo(self.weights.dtype).tiny), self.weights.dtype)
        gram, projection = self._sums(0, means, [mean**2 for mean in means])
        means[0], _ = self._solve(0, gram, projection, nearly_nothing, one)
        size = jnp.sqrt(self.row_weights[0] @ means[0] ** 2 / self.slices)
        common = (size / jnp.sqrt(math.prod(self.sizes))) ** (1 / len(means))  # the modes' directions have length 1
        means[0] = means[0] * where(size > 0, common / where(size > 0, size, 1), 0)
        means[1:] = [mean * (common * jnp.sqrt(rows)) for mean, rows in zip(means[1:], self.sizes, strict=True)]
        variances = [jnp.zeros_like(mean) for mean in means]
        start = Draft(means, variances, self._rate(squares(means, variances)), one, one * self.energy)
        draft: Draft = lax.fori_loop(0, CANDIDATE_SWEEPS, self._turn, start)
        shape, rate = self.shape, draft.rate

        def of_rows(weights: Array, mean: Array, variance: Array) -> Array:
            log_variance = jnp.log(where(variance > 0, variance, 1))
            return weights @ (expected_log(shape, rate) + 1 + log_variance - shape / rate * (mean**2 + variance))

        rows = map(of_rows, self.all_weights, end_to_end(draft.means), end_to_end(draft.variances))
        elbo = reduce(operator.add, rows) / 2 - gamma_gap(shape, rate, self.prior, self.prior)
        return Candidate(draft.means, draft.variances, shape, rate, elbo)

    def _turn(self, _: int, draft: Draft) -> Draft:
        means, variances = list(draft.means), list(draft.variances)
        second, precision = squares(means, variances), self.shape / draft.rate
        summed = None
        if self.entry_index is None:
            summed = over_time(self.weights, second[0]), over_time(self.weighted, means[0])
        for axis in [*range(1, len(means)), 0]:
            gram, projection = self._sums(axis, means, second, summed)
            means[axis], variances[axis] = self._solve(axis, gram, projection, precision, draft.factor)
            second[axis] = means[axis] ** 2 + variances[axis]
        left = self.energy - 2 * projection @ means[0] + gram @ second[0]
        factor = jnp.minimum(jnp.maximum(left / jnp.maximum(self.count, 1), CANDIDATE_MIN_NOISE), 1)
        return Draft(means, variances, self._rate(second), factor, left)

    def _sums(
        self, axis: int, means: Columns, second: Columns, summed: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """G and g of all rows of an axis, each (rows,); `second` are E a². Modes have the sums over time in common."""
        if self.entry_index is not None:
            return observed.column_sums(second, means, self.weights, self.weighted, axis, self.entry_index)
        if axis == 0 or summed is None:
            return over_modes(self.weights, second[1:]), over_modes(self.weighted, means[1:])
        gram = over_other_modes(summed[0], second[1:], axis - 1)
        return gram, over_other_modes(summed[1], means[1:], axis - 1)

    def _solve(self, axis: int, gram: Array, projection: Array, precision: Array, factor: Array) -> tuple[Array, Array]:
        weight = self.row_weights[axis]
        variance = where(weight > 0, 1 / (precision + gram * (inverse := inverse_of(weight * factor))), 0)
        return variance * projection * inverse, variance

    def _rate(self, second: Columns) -> Array:
        total: Array = reduce(operator.add, map(operator.matmul, self.all_weights, end_to_end(second)))
        return self.prior + total / 2


def added(factors: Factors, candidate: Candidate, slot: Array) -> Factors:
    """The factors with the candidate in a free slot; as they are where there is no such slot."""
    here = jnp.arange(factors.active.shape[0]) == slot
    grown = replace(
        factors,
        active=factors.active | here,
        precision_shape=where(here, candidate.precision_shape, factors.precision_shape),
        precision_rate=where(here, candidate.precision_rate, factors.precision_rate),
    )
    new = here.astype(factors.row_means.dtype)
    square = new[:, None] * new
    for axis, (mean, covariance) in enumerate(zip(all_means(factors), all_covariances(factors), strict=True)):
        # A free slot holds zeros.
        mean = mean + candidate.means[axis][:, None] * new
        grown = with_axis(grown, axis, mean, covariance + candidate.variances[axis][:, None, None] * square)
    return grown
