"""The rank: shared precisions λ (ARD), and the death of components as a move judged by the evidence (see birth.py too).

ARD alone shrinks a superfluous component slowly and never brings one back. So a component that the data ask for is
born from the weighted residual of the window, and one that the evidence can do without dies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model.factors import discounted, layout
from undertow.model.factors.rows import all_covariances, all_means, with_axis
from undertow.model.linalg.symmetric import log_determinant
from undertow.model.noise.pooled import expected_log, gamma_gap
from undertow.model.types import EntryIndex, Factors

Tree = TypeVar("Tree")
NEGLIGIBLE = 1e-3
"""Where nothing dies by evidence (`start="svd"`), a component below this share of the largest's size does not count."""


ENTANGLED = 0.3
"""Likeness to others, over all axes, from which it is tried to do without a component."""


def axis_shares(factors: Factors, row_share: Array) -> list[Array]:
    """p_i of every row, by axis: how much its prior counts in the objective."""
    return [row_share, *(jnp.ones(mean.shape[0], mean.dtype) for mean in factors.means)]


def update_precision(factors: Factors, row_share: Array, prior: float) -> Factors:
    """q(λ_r) = Ga(c0 + ½(ΣI_n + Σp_t), d0 + ½ Σ_axes Σ_i p_i E a_ir²)   (paper: eq. update lambda, shape corrected).

    `prior` is c0 = d0, here and below.
    """
    shape = jnp.asarray(prior, row_share.dtype)
    rate = jnp.full_like(factors.precision_rate, prior)
    rows = zip(axis_shares(factors, row_share), all_means(factors), all_covariances(factors), strict=True)
    for share, mean, covariance in rows:
        shape = shape + share.sum() / 2
        rate = rate + share @ (mean**2 + jnp.diagonal(covariance, axis1=-2, axis2=-1)) / 2
    if factors.discounted is not None:
        shape, rate = shape + factors.discounted.row_count / 2, rate + factors.discounted.row_square / 2
    return replace(factors, precision_shape=jnp.broadcast_to(shape, rate.shape), precision_rate=rate)


def elbo(factors: Factors, row_share: Array, prior: float) -> Array:
    """What the low-rank part adds to the bound besides the likelihood: −KL(q(λ) ‖ p(λ)), and for every row of every
    axis p_i (E ln p(a_i | λ) + entropy of q(a_i)); living components only.

    All rows at once: two batches of LAPACK at a time can wait for each other for ever where threads are few.
    """
    active = factors.active
    gaps = gamma_gap(factors.precision_shape, factors.precision_rate, prior, prior)
    share = jnp.concatenate(axis_shares(factors, row_share))
    mean, covariance = jnp.concatenate(all_means(factors)), jnp.concatenate(all_covariances(factors))
    keep = active[:, None] & active[None, :] & (share > 0)[:, None, None]
    entropies = log_determinant(jnp.where(keep, covariance, jnp.eye(active.shape[0], dtype=mean.dtype)))
    squares = mean**2 + jnp.diagonal(covariance, axis1=-2, axis2=-1)
    log_precision = expected_log(factors.precision_shape, factors.precision_rate)
    per_component = jnp.where(active, log_precision + 1 - factors.precision * squares, 0)
    rows = (share * (per_component.sum(axis=-1) + entropies)).sum() / 2
    total: Array = rows - jnp.where(active, gaps, 0).sum()
    return total if factors.discounted is None else total + discounted.rows_gone(factors, factors.discounted)


def sizes(factors: Factors) -> Array:
    """Σ over the window of (c Π a)², per component (R,), by the means."""
    return jnp.stack([(mean**2).sum(axis=0) for mean in all_means(factors)]).prod(axis=0)


def without(factors: Factors, component: Array) -> Factors:
    """The factors with one component dead."""
    keep = jnp.arange(factors.active.shape[0]) != component
    smaller = replace(factors, active=factors.active & keep, discounted=discounted.without(factors.discounted, keep))
    for axis, (mean, covariance) in enumerate(zip(all_means(factors), all_covariances(factors), strict=True)):
        both = keep[:, None] & keep[None, :]
        smaller = with_axis(smaller, axis, jnp.where(keep, mean, 0), jnp.where(both, covariance, 0))
    return smaller


def resized(factors: Factors, entry_index: int) -> Factors:
    """The factors with room for `places` components: more places are empty, fewer keep the living ones."""
    order = jnp.argsort(~factors.active, stable=True)[:entry_index]
    missing = max(entry_index - order.shape[0], 0)

    def along(array: Array, axes: tuple[int, ...], filling: float = 0) -> Array:
        for axis in axes:
            array = jnp.take(array, order, axis=axis)
            widths = [(0, missing if place == axis else 0) for place in range(array.ndim)]
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


def death(
    factors: Factors,
    residual: Array,
    variance: Array,
    weights: Array,
    row_share: Array,
    prior: float,
    entry_index: EntryIndex | None = None,
) -> tuple[Factors, Array, Array, Array]:
    """Let the smallest component die if the evidence gains by it.

    Returns factors, residuals y − x̄ and Var x of the window as they are then, and whether it died.
    """
    place = jnp.argmin(jnp.where(factors.active, sizes(factors), jnp.inf))
    smaller = without(factors, place)
    share, spread = layout.component(factors, place, entry_index)
    both = jax.tree.map(lambda one, other: jnp.stack([one, other]), smaller, factors)
    own = lax.map(lambda candidate: elbo(candidate, row_share, prior), both)
    # The differences are summed, not the sums subtracted: float32 has no digits to spare.
    change = share * (2 * residual + share) - spread
    gain = own[0] - own[1] - (weights * change).sum() / 2
    if factors.discounted is not None:
        gain += discounted.change(factors, smaller, factors.discounted)
    dies = factors.active.any() & (gain > 0)

    def died(carry: tuple[Factors, Array, Array]) -> tuple[Factors, Array, Array]:
        return smaller, carry[1] + share, jnp.maximum(carry[2] - spread, 0)

    return *only_if(dies, died, (factors, residual, variance)), dies


def entanglement(factors: Factors) -> Array:
    """How much each component looks like others (R,): the product over axes of the largest |cosine| to any other.

    Two that are alike on every axis are one, and soon one dies. But four can stand for two, each sharing one axis with
    each of the others: what is found when components are born one by one from too few slices. None of them can go
    unless the others move.
    """
    pairs = factors.active[:, None] & factors.active & ~jnp.eye(factors.active.shape[0], dtype=bool)
    alike = jnp.ones(factors.active.shape, factors.row_means.dtype)
    for mean in all_means(factors):
        length = jnp.sqrt((mean**2).sum(axis=0))
        unit = mean / jnp.where(length > 0, length, 1)
        alike *= jnp.where(pairs, jnp.abs(unit.T @ unit), 0).max(axis=1)
    return alike


def choose(condition: Array | bool, yes: Tree, no: Tree) -> Tree:
    """`yes` where the condition holds, else `no`."""
    chosen: Tree = jax.tree.map(lambda one, other: jnp.where(condition, one, other), yes, no)
    return chosen


def only_if(condition: Array, work: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """`work(tree)` where the condition holds, else the tree: as `lax.cond`, but in the memory of the tree."""

    def once(carry: tuple[Array, Tree]) -> tuple[Array, Tree]:
        return jnp.asarray(False), work(carry[1])

    result: Tree = lax.while_loop(lambda carry: carry[0], once, (condition, tree))[1]
    return result


def either(condition: Array | bool, yes: Callable[[], Tree], no: Callable[[], Tree]) -> Tree:
    """What the condition asks for, where both are cheap: on a GPU both are made, for asking the host takes longer."""
    if jax.default_backend() == "cpu":
        made: Tree = lax.cond(condition, yes, no)
        return made
    return choose(condition, yes(), no())


def living(factors: Factors, start: str) -> Array:
    """Which components count (R,): the living ones, or where none dies, those that have not shrunk away."""
    if start == "warm":
        return factors.active
    size = jnp.sqrt(sizes(factors))
    return factors.active & (size > NEGLIGIBLE * size.max())
