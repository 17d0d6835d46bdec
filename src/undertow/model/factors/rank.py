"""The rank: shared precisions λ (automatic relevance determination), and pruning of components judged by the ELBO.

The precisions alone shrink a superfluous component slowly and never bring one back. So a component that the data ask
for is added from the weighted residual of the window (phases/candidate.py), and one that the ELBO can do without is
pruned.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from undertow.model import elbo
from undertow.model.defaults import NEGLIGIBLE
from undertow.model.factors import discounted, layout
from undertow.model.factors.rows import all_covariances, all_means, row_weights, with_axis
from undertow.model.flow import end_to_end, only_if, where
from undertow.model.linalg.symmetric import diagonal
from undertow.model.types import EntryIndex, Factors, KnownRows


def update_precision(factors: Factors, time_weights: Array, prior: float, known: KnownRows | None = None) -> Factors:
    """q(λ_r) = Ga(c0 + ½(ΣI_n + Σp_t), d0 + ½ Σ_axes Σ_i p_i E a_ir²)   (paper: eq. update lambda, shape corrected).

    `time_weights` are p_t (W,); `prior` is c0 = d0, here and below; I_n counts the rows that are `known`.
    """
    shape, rate = jnp.asarray(prior, time_weights.dtype), jnp.full_like(factors.precision_rate, prior)
    diagonals = [diagonal(covariance) for covariance in all_covariances(factors)]
    parts = row_weights(factors, time_weights, known), all_means(factors), diagonals
    for weight, mean, variance in zip(*map(end_to_end, parts), strict=True):
        shape, rate = shape + weight.sum() / 2, rate + weight @ (mean**2 + variance) / 2
    if factors.discounted is not None:
        shape, rate = shape + factors.discounted.row_count / 2, rate + factors.discounted.row_square / 2
    return replace(factors, precision_shape=jnp.broadcast_to(shape, rate.shape), precision_rate=rate)


def sizes(factors: Factors) -> Array:
    """Σ over the window of (c Π a)², per component (R,), by the means."""
    return jnp.stack([(mean**2).sum(axis=0) for mean in all_means(factors)]).prod(axis=0)


def without(factors: Factors, component: Array) -> Factors:
    """The factors with one component pruned."""
    keep = jnp.arange(factors.active.shape[0]) != component
    smaller = replace(factors, active=factors.active & keep, discounted=discounted.without(factors.discounted, keep))
    kept = keep.astype(factors.row_means.dtype)
    both = kept[:, None] * kept
    for axis, (mean, covariance) in enumerate(zip(all_means(factors), all_covariances(factors), strict=True)):
        smaller = with_axis(smaller, axis, mean * kept, covariance * both)
    return smaller


def resized(factors: Factors, capacity: int) -> Factors:
    """The factors with `capacity` slots for components: more slots are free, fewer keep the active components."""
    order = jnp.argsort(~factors.active, stable=True)[:capacity]
    missing = max(capacity - order.shape[0], 0)

    def along(array: Array, axes: tuple[int, ...], filling: float = 0) -> Array:
        for axis in axes:
            array = jnp.take(array, order, axis=axis)
            widths = [(0, missing if other == axis else 0) for other in range(array.ndim)]
            array = jnp.pad(array, widths, constant_values=filling)
        return array

    return Factors(
        means=tuple(along(mean, (1,)) for mean in factors.means),
        covariances=tuple(along(covariance, (1, 2)) for covariance in factors.covariances),
        row_means=along(factors.row_means, (1,)),
        row_covariances=along(factors.row_covariances, (1, 2)),
        active=along(factors.active, (0,)),
        precision_shape=along(factors.precision_shape, (0,), 1),
        precision_rate=along(factors.precision_rate, (0,), 1),
    )


def prune_smallest(
    factors: Factors,
    residual: Array,
    variance: Array,
    rows: Array,
    weights: Array,
    time_weights: Array,
    prior: float,
    entry_index: EntryIndex | None = None,
    evaluate: Array | bool = False,
    known: KnownRows | None = None,
) -> tuple[tuple[Factors, Array, Array, Array], Array]:
    """Prune the smallest component if the ELBO gains by it.

    Args:
        factors: As they are.
        residual: y − x̄ of the window.
        variance: Var x of the window.
        rows: `elbo.low_rank` of the factors.
        weights: w of the window.
        time_weights: p_t (W,).
        prior: c0 = d0.
        entry_index: Of a sparse window.
        evaluate: Prune nothing, and find `rows`.
        known: Rows of the modes in which something was observed.

    Returns:
        The first four as they are then, and whether a component was pruned.
    """
    slot = jnp.argmin(where(factors.active, sizes(factors), jnp.inf))
    smaller = without(factors, where(evaluate, -1, slot))
    rows_then = elbo.low_rank(smaller, time_weights, prior, known)

    def worse(_: Array) -> Array:
        """Σ w E r² without the component, less that with it."""
        mean, spread = layout.component(factors, slot, entry_index)
        # The differences are summed, not the sums subtracted: float32 has no digits to spare.
        return (weights * (mean * (2 * residual + mean) - spread)).sum()

    lost = only_if(~jnp.asarray(evaluate), worse, jnp.zeros((), residual.dtype))
    gain = rows_then - rows - lost / 2
    if factors.discounted is not None:
        gain += discounted.change(factors, smaller, factors.discounted)
    prunes = ~jnp.asarray(evaluate) & factors.active.any() & (gain > 0)

    def pruned(carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
        mean, spread = layout.component(carry[0], slot, entry_index)
        return smaller, carry[1] + mean, jnp.maximum(carry[2] - spread, 0)

    factors, residual, variance = only_if(prunes, pruned, (factors, residual, variance))
    return (factors, residual, variance, where(prunes | evaluate, rows_then, rows)), prunes


def effective(factors: Factors, start: str) -> Array:
    """Which components count (R,): the active ones, or where none is pruned, those that have not shrunk away."""
    if start == "warm":
        return factors.active
    size = jnp.sqrt(sizes(factors))
    return factors.active & (size > NEGLIGIBLE * size.max())
