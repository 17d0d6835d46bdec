"""Moves: components die and are born, as long as the bound gains. The single move is in rank.py and birth.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import register_dataclass

from undertow.model.factors import rank
from undertow.model.noise import contaminated
from undertow.model.phases.birth import Birth, born
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Factors, Window, over_slice

if TYPE_CHECKING:
    from collections.abc import Callable

Carry = TypeVar("Carry")

MOST_BIRTHS = 4
"""Births per round: more newcomers than that had better meet each other first."""


@register_dataclass
@dataclass(frozen=True)
class Brood:
    """What one birth hands on to the next."""

    factors: Factors
    outliers: Contaminated
    residual: Array
    """y − m̄ − x̄ of the window (W, I_1, …, I_N)."""
    variance: Array
    """Var x + Var m of the window."""
    elbo: Array
    """The outlier model's part of the bound."""


def deaths_and_births(
    settings: Settings, window: Window, factors: Factors, before: Contaminated, residual: Array, variance: Array
) -> tuple[Factors, Contaminated, Array, Array, Array]:
    """Deaths, then births, each as long as the evidence gains; `residual` and `variance` are those of `Progress`.

    Returns all four as they are then, and whether anything has changed.
    """
    prior = settings.precision_prior
    slice_weights = window.slice_weights(settings.forgetting)
    row_share = contaminated.row_share(slice_weights)
    weights, _ = contaminated.weights_and_targets(before, window, slice_weights)
    count = slice_weights @ over_slice(window.mask.astype(weights.dtype))

    def bound(outliers: Contaminated, residual: Array, variance: Array) -> Array:
        return contaminated.elbo(settings, outliers, window, slice_weights, residual, variance)

    def one_death(carry: tuple[Factors, Array, Array]) -> tuple[tuple[Factors, Array, Array], Array]:
        factors, residual, variance, dies = rank.death(*carry, weights, row_share, prior, window.entry_index)
        return (factors, residual, variance), dies

    def one_birth(carry: Brood) -> tuple[Brood, Array]:
        weights = contaminated.birth_weights(carry.outliers, window, slice_weights)
        energy = (weights * (carry.residual**2 + carry.variance)).sum()
        fit = Birth(weights, carry.residual, energy, count, row_share, prior, window.entry_index)

        draft = fit.draft()
        promising = fit.promising(draft)
        # Apart from what follows, so that the memory of weights and residuals is free again by then.
        newcomer = lax.cond(promising, lambda: fit.finished(draft), lambda: fit.unfinished(draft))

        def left(carry: Brood) -> tuple[Array, Array]:
            """Residual and variance with the newcomer."""
            share = newcomer.low_rank(window.entry_index)
            return carry.residual - share, carry.variance + jnp.maximum(
                newcomer.square(window.entry_index) - share**2, 0
            )

        def judged(state: tuple[Brood, Array]) -> tuple[Brood, Array]:
            carry, _ = state
            residual, variance = left(carry)
            nothing, square = jnp.zeros((), residual.dtype), residual**2 + variance  # all that is asked of them
            outliers = contaminated.update(settings, carry.outliers, window, slice_weights, nothing, square)
            elbo = bound(outliers, nothing, square)
            margin = 10 * float(np.finfo(elbo.dtype).eps) * jnp.abs(elbo)  # what single precision cannot tell
            gains = elbo + newcomer.elbo > carry.elbo + margin

            def grown(carry: Brood) -> Brood:
                return Brood(born(carry.factors, newcomer), outliers, *left(carry), elbo)

            return rank.only_if(gains, grown, carry), gains

        return rank.only_if(promising, judged, (carry, jnp.asarray(False)))

    carry = (factors, residual, variance)
    (factors, residual, variance), deaths = repeat(one_death, carry, settings.max_rank)
    most = jnp.minimum(MOST_BIRTHS, settings.max_rank - factors.active.sum())

    def with_births(state: tuple[Brood, Array]) -> tuple[Brood, Array]:
        # Updated first, so that what the outlier model gains by itself is not put down to the newcomer.
        brood, _ = state
        outliers = contaminated.update(settings, brood.outliers, window, slice_weights, brood.residual, brood.variance)
        elbo = bound(outliers, brood.residual, brood.variance)
        return repeat(one_birth, replace(brood, outliers=outliers, elbo=elbo), most)

    brood = Brood(factors, before, residual, variance, jnp.zeros((), residual.dtype))
    brood, births = rank.only_if(most > 0, with_births, (brood, jnp.zeros_like(deaths)))
    return brood.factors, brood.outliers, brood.residual, brood.variance, deaths + births > 0


def repeat(move: Callable[[Carry], tuple[Carry, Array]], start: Carry, most: int | Array) -> tuple[Carry, Array]:
    """Repeat a move until it is refused, `most` times at most. Returns how often it was made."""

    def again(carry: tuple[Carry, Array, Array]) -> tuple[Carry, Array, Array]:
        result, made = move(carry[0])
        return result, made, carry[2] + made

    first = (start, jnp.asarray(True), jnp.asarray(0, jnp.int32))
    result, _, count = lax.while_loop(lambda carry: carry[1] & (carry[2] < most), again, first)
    return result, count
