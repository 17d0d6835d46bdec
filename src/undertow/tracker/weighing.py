"""Weights of the predictors, by what they said of observed entries without having seen them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import scales
from undertow.tracker.combination import CHOICE_MEMORY, averaged, discounted, simplex_weights
from undertow.tracker.core import PAST, Core
from undertow.tracker.predicting import Said
from undertow.tracker.predictors import registry

MISSED_BY_ALL = 6.0
"""Times the usual error of most predictors, beyond which an entry counts less for the weights."""
ERROR_MEMORY = 8
"""Slices over which the error of the answer is averaged."""
PAST_PACE = 2
"""Of `FORGETTING`, the pace at which what the past alone says is weighed."""


@register_dataclass
@dataclass(frozen=True)
class Weighing:
    """Weights, and the errors that they come from, with this slice.

    Attributes:
        weights: Of the predictors (K,), as they are judged: without the entry.
        answering: As they answer once they know the slice.
        past_weights: Of what the past alone says (3,).
        past: What the past alone predicts (n,).
        gains: Error of every predictor as it answers over its error as it was judged (K,).
        norm: Squared size of the slice.
        judged: Whether there was anything to judge by.
        gram: As `Core` has it, like all below.
        past_gram: (F, 3, 3).
        paces: (F,).
        sets: (F, K).
        error: A number.
        size: A number.
    """

    weights: Array
    answering: Array
    past_weights: Array
    past: Array
    gains: Array
    norm: Array
    judged: Array
    gram: Array
    past_gram: Array
    paces: Array
    sets: Array
    error: Array
    size: Array


def weighed(
    core: Core,
    values: Array,
    mask: Array,
    scale: Array,
    level: Array,
    said: Said,
    clean: Array,
    previous: Array,
    news: Array,
) -> Weighing:
    """Weights by the errors of this slice and those before.

    Args:
        core: Before the slice.
        values: On the scale of the stream (n,).
        mask: True where observed (n,).
        scale: Its number.
        level: What the level says (n,).
        said: What everybody says.
        clean: Probability that an entry is no outlier (n,).
        previous: Weights with which the slice was predicted (K,).
        news: What observations say about how far off others are (n,).
    """
    weight = mask.astype(values.dtype)
    means, absent = said.means, said.absent
    x = scales.plain(jnp.where(mask, values, 0), scale)
    size = (x**2).sum() / jnp.maximum(weight.sum(), 1)
    usual = jnp.where(core.size > 0, 0.9 * core.size + 0.1 * size, size)
    norm = jnp.maximum(jnp.maximum(size, 1e-3 * core.size) * jnp.maximum(weight.sum(), 1), 1e-30)
    # Errors count as they do in the units of the data, relative to the size of the slice.
    # What everybody misses by far says nothing about who is better.
    missed = jnp.where(mask, middle(jnp.abs(x - scales.plain(means, scale)), absent), 0)
    typical = ((news * jnp.sqrt(missed)).sum() / jnp.maximum((weight * news).sum(), 1e-6)) ** 2
    informative = jnp.minimum(1, (MISSED_BY_ALL * typical / jnp.maximum(missed, 1e-30)) ** 2)
    importance = weight * clean * informative / norm
    errors = jnp.where(mask, x - scales.plain(means, scale), 0)
    gram = discounted(core.gram, errors, importance)
    past = jnp.stack([level, core.last, means[len(registry.NAMES) - 1]])
    past_gram = discounted(core.past_gram, jnp.where(mask, x - scales.plain(past, scale), 0), importance)
    paces = CHOICE_MEMORY * core.paces + ((core.sets @ errors) ** 2 * importance).sum(1)
    # Not squared, and all of them: which are outliers depends on the scale that is to be judged by this.
    distance = jnp.abs(previous @ errors).sum() / jnp.maximum(weight.sum(), 1)
    share = 1 / jnp.clip(core.seen, 1, ERROR_MEMORY)
    error = core.error + share * (jnp.log(distance + 1e-12) - core.error)
    judged = mask.any() & (core.seen > 0)
    gram, past_gram = jnp.where(judged, gram, core.gram), jnp.where(judged, past_gram, core.past_gram)
    paces = jnp.where(judged, paces, core.paces)
    gains = gains_of(core.refits)
    # The past's own weights are one more problem of the same kind, in which the others are absent.
    nobody = jnp.ones_like(absent).at[:PAST].set(jnp.zeros(PAST, bool).at[-1].set(absent[len(registry.NAMES) - 1]))
    alone = jnp.zeros_like(gram[0]).at[:PAST, :PAST].set(past_gram[PAST_PACE])
    every = jnp.concatenate([gram, alone[None]]), jnp.stack([absent] * len(gram) + [nobody])
    both = jax.vmap(simplex_weights, (0, 0, None))(*every, jnp.stack([jnp.ones_like(gains), gains]))
    sets, as_they_answer, past_weights = both[:-1, 0], both[:-1, 1], both[-1, 0, :PAST]
    weights, answering = (averaged(one, paces, weight.sum()) for one in (sets, as_they_answer))
    return Weighing(
        weights=weights,
        answering=answering,
        past_weights=past_weights,
        past=past_weights @ past,
        gains=gains,
        norm=norm,
        judged=judged,
        gram=gram,
        past_gram=past_gram,
        paces=paces,
        sets=sets,
        error=jnp.where(judged, error, core.error),
        size=jnp.where(mask.any(), usual, core.size),
    )


def gains_of(refits: Array) -> Array:
    """Error of every predictor as it answers over its error as it was judged (K,): CP models fit the slice as well."""
    return jnp.concatenate([jnp.ones(len(registry.NAMES)), jnp.exp(jnp.minimum(refits, 0))])


def middle(rows: Array, absent: Array) -> Array:
    """The median of each column (K, n) → (n,) over the rows that are not absent (K,).

    By exchanges of neighbouring rows: sorting takes far longer.
    """
    ordered, size = list(jnp.where(absent[:, None], jnp.inf, rows)), len(rows)
    for turn in range(size):
        for low in range(turn % 2, size - 1, 2):
            one, other = ordered[low], ordered[low + 1]
            ordered[low], ordered[low + 1] = jnp.minimum(one, other), jnp.maximum(one, other)
    sorted_rows, present = jnp.stack(ordered), size - absent.sum()
    median: Array = (sorted_rows[(present - 1) // 2] + sorted_rows[present // 2]) / 2
    return median
