"""What is computed of a slice of one stream, before its CP models learn it and after that; `batch` has it for many."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import answering, events, judging, scales
from undertow.tracker.answering import Answer
from undertow.tracker.core import Core
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Prediction
from undertow.tracker.predictors.cp import Regression

ALIKE = 1e-3
"""Weights of CP models that differ by less are alike: which one is reported is not for rounding to decide."""


@register_dataclass
@dataclass(frozen=True)
class Judged:
    """A slice before it is learned.

    Attributes:
        verdict: What the combination predicts of it.
        values: For the CP models, in the shape of a slice, on the scale of the stream.
        use: Entries that they learn from, in that shape.
        unused: How many others there are.
    """

    verdict: judging.Verdict
    values: Array
    use: Array
    unused: Array


@register_dataclass
@dataclass(frozen=True)
class Found:
    """What is reported of a slice beside the answer.

    Attributes:
        low_rank: Of the CP model that counts most (n,), in units of the stream.
        rank: Its active components.
        ranks: Those of all CP models (models,).
        slice_off: Whether the slice as a whole is wrong.
        changed: Entries that have changed for good (n,).
        dead: Entries whose sensor gives the same number for ever (n,).
        lasting: Since when.
    """

    low_rank: Array
    rank: Array
    ranks: Array
    slice_off: Array
    changed: Array
    dead: Array
    lasting: events.Ages


def on_scale(relative: Array, mask: Array, scale: Array) -> Array:
    """Values in units of the stream on its scale, 0 where nothing is observed (n,)."""
    return jnp.where(mask, scales.scaled(relative, scale), 0)


def judged(
    core: Core,
    values: Array,
    mask: Array,
    scale: Array,
    season: Prediction,
    from_cp: tuple[Regression, ...],
    shape: tuple[int, ...],
) -> Judged:
    """`judging.judge`, and what the CP models are to learn from; `shape` is that of a slice."""
    verdict = judging.judge(core, values, mask, scale, season, from_cp)
    unused = mask.size - verdict.for_cp.sum(dtype=jnp.int32)
    return Judged(verdict, values.reshape(shape), verdict.for_cp.reshape(shape), unused)


def answered(
    core: Core,
    verdict: judging.Verdict,
    values: Array,
    mask: Array,
    scale: Array,
    season: Array,
    means: tuple[Array, ...],
    ranks: Array,
) -> tuple[Core, Answer, Found, Array]:
    """`answering.learn`, and what else is reported.

    Args:
        core: Before the slice.
        verdict: About it.
        values: On the scale of the stream (n,).
        mask: True where observed (n,).
        scale: Of the stream.
        season: What it says, given the slice (n,).
        means: What the CP models say, given the slice.
        ranks: Their active components, after it (models,).

    Returns:
        The state after the slice; the answer; what else is reported; what every predictor said of it (K, n).
    """
    core, answer, said = answering.learn(core, verdict, values, mask, scale, season, means)
    weights = verdict.weighing.answering[len(registry.NAMES) :]
    chosen = jnp.argmax(weights > weights.max() - ALIKE)  # the first of them
    found = Found(
        low_rank=scales.plain(jnp.stack([mean.ravel() for mean in means])[chosen], scale),
        rank=ranks[chosen],
        ranks=ranks,
        slice_off=verdict.slice_off,
        changed=verdict.changed,
        dead=events.dead(core.events),
        lasting=events.ages(core.events),
    )
    return core, answer, found, said
