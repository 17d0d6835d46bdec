"""The compiled programs of many trackers: those of one, under `vmap`, members first in every array.

Between `judge_all` and `learn_all` the CP models learn, batch by batch as in any fleet (`undertow.engine.batching`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.engine.batching import choose_all
from undertow.model.report import Report
from undertow.model.settings import Settings
from undertow.model.types import Core as ModelCore
from undertow.programs.program import program
from undertow.tracker import answering, events, judging, scales
from undertow.tracker.answering import Answer
from undertow.tracker.core import Core
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.base import Prediction
from undertow.tracker.predictors.cp import regression
from undertow.tracker.predictors.level import older

Tree = TypeVar("Tree")


@register_dataclass
@dataclass(frozen=True)
class Arrays:
    """All arrays of some trackers, or of one; then without the first axis.

    Attributes:
        core: Predictors, weights, law and events.
        models: The CP models.
        ranks: Active components of each of these (M, models).
    """

    core: Core
    models: tuple[ModelCore, ...]
    ranks: Array


@register_dataclass
@dataclass(frozen=True)
class Judged:
    """Slices before they are learned: on their scale, as the CP models and the combination predict them.

    Attributes:
        values: (M, n).
        verdict: By member.
        use: Entries that the CP models learn from (M, n).
    """

    values: Array
    verdict: judging.Verdict
    use: Array


@register_dataclass
@dataclass(frozen=True)
class Found:
    """What is reported of slices beside the answers.

    Attributes:
        low_rank: Of the CP model that counts most (M, n), in units of the stream.
        rank: Its active components (M,).
        ranks: Those of all CP models (M, models).
        slice_off: Whether the slice as a whole is wrong (M,).
        changed: Entries that have changed for good (M, n).
        dead: Entries whose sensor gives the same number for ever (M, n).
        lasting: Since when, by member.
    """

    low_rank: Array
    rank: Array
    ranks: Array
    slice_off: Array
    changed: Array
    dead: Array
    lasting: events.Ages


@program()
def judge_all(
    arrays: Arrays,
    relative: Array,
    mask: Array,
    scale: Array,
    settings: tuple[Settings, ...],
    season: Prediction | None,
    steps: Array,
) -> Judged:
    """`judging.judge` for all, with what their CP models predict, and their seasons where they have some.

    `steps` are the usual steps between the slice before and this one (M,).
    """
    values = jnp.where(mask, jax.vmap(scales.scaled)(relative, scale), 0)
    all_said = tuple(
        jax.vmap(regression, in_axes=(0, 0, 0, None, 0))(core, values, mask, own, steps)
        for core, own in zip(arrays.models, settings, strict=True)
    )
    if season is None:
        nothing = jnp.full(values.shape, jnp.nan, values.dtype)
        season = Prediction(nothing, nothing, nothing)
    verdict = jax.vmap(judging.judge)(arrays.core, values, mask, scale, season, all_said)
    return Judged(values, verdict, verdict.for_cp)


@program()
def aged_all(core: Core, steps: Array) -> Core:
    """`answering.aged` for all, by the steps that each slice comes later than usual (M,)."""
    return replace(core, level=jax.vmap(older)(core.level, steps))


@program()
def learn_all(
    before: Arrays,
    models: tuple[ModelCore, ...],
    reports: tuple[Report, ...],
    judged: Judged,
    mask: Array,
    scale: Array,
    learning: Array,
    present: Array,
    seasonal: Array | None = None,
) -> tuple[Arrays, Answer, Found, Array]:
    """`answering.learn` for those who are present; the others are as before. Last what each predictor said (M, K, n).

    Args:
        before: As they were.
        models: The CP models after the slices.
        reports: What they say about them.
        judged: From `judge_all`.
        mask: True where observed (M, n).
        scale: By member.
        learning: Whose CP models have learned.
        present: Who has a slice.
        seasonal: What their seasons say, given the slices.
    """
    verdict = judged.verdict
    means = tuple(
        jnp.where(learning[:, None], report.low_rank.reshape(said.shape), said)
        for report, said in zip(reports, jnp.moveaxis(verdict.means[:, len(registry.NAMES) :], 1, 0), strict=True)
    )
    if seasonal is None:
        seasonal = jnp.full(judged.values.shape, jnp.nan, judged.values.dtype)
    core, answer, every = jax.vmap(answering.learn)(before.core, verdict, judged.values, mask, scale, seasonal, means)
    ranks = jnp.stack([report.rank for report in reports], axis=1).astype(before.ranks.dtype)
    after = Arrays(core, models, jnp.where(learning[:, None], ranks, before.ranks))
    chosen = jnp.argmax(verdict.weighing.answering[:, -len(means) :], axis=1)[:, None]
    part = jnp.take_along_axis(jnp.stack(means, axis=1), chosen[:, :, None], axis=1)[:, 0]
    found = Found(
        low_rank=jax.vmap(scales.plain)(part, scale),
        rank=jnp.take_along_axis(after.ranks, chosen, axis=1)[:, 0],
        ranks=after.ranks,
        slice_off=verdict.slice_off,
        changed=verdict.changed,
        dead=jax.vmap(events.dead)(core.events),
        lasting=events.ages(core.events),
    )
    return choose_all(present, after, before), answer, found, every


@program(static=["size"])
def repeated(one: Tree, size: int) -> Tree:
    """A batch of members that are all alike."""
    batch: Tree = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), one)
    return batch


@program()
def member(arrays: Tree, position: Array) -> Tree:
    """The arrays of one member."""
    one: Tree = jax.tree.map(lambda leaf: leaf[position], arrays)
    return one


@program()
def with_members(arrays: Tree, which: Array, one: Tree) -> Tree:
    """All members, some of them with the arrays of `one` in place of their own."""
    batch: Tree = choose_all(
        which, jax.tree.map(lambda leaf, whole: jnp.broadcast_to(leaf, whole.shape), one, arrays), arrays
    )
    return batch
