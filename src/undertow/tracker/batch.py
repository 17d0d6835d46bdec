"""The compiled programs of many trackers: those of one, under `vmap`, members first in every array.

Between `judge_all` and `learn_all` the CP models learn, batch by batch as in any fleet (`undertow.engine.batching`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
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
from undertow.tracker import phases
from undertow.tracker.answering import Answer
from undertow.tracker.core import Core
from undertow.tracker.phases import Found, Judged
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


@program(static=["shape"])
def judge_all(
    arrays: Arrays,
    relative: Array,
    mask: Array,
    scale: Array,
    settings: tuple[Settings, ...],
    season: Prediction | None,
    steps: Array,
    shape: tuple[int, ...],
) -> Judged:
    """`phases.judged` for all, with what their CP models predict, and their seasons where they have some.

    `steps` are the usual steps between the slice before and this one (M,).
    """
    values = jax.vmap(phases.on_scale)(relative, mask, scale)
    all_said = tuple(
        jax.vmap(regression, in_axes=(0, 0, 0, None, 0))(core, values, mask, own, steps)
        for core, own in zip(arrays.models, settings, strict=True)
    )
    if season is None:
        nothing = jnp.full(values.shape, jnp.nan, values.dtype)
        season = Prediction(nothing, nothing, nothing)
    return jax.vmap(partial(phases.judged, shape=shape))(arrays.core, values, mask, scale, season, all_said)


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
    """`phases.answered` for those who are present; the others are as before. Last what each predictor said (M, K, n).

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
    verdict, values = judged.verdict, judged.values.reshape(mask.shape)
    means = tuple(
        jnp.where(learning[:, None], report.low_rank.reshape(said.shape), said)
        for report, said in zip(reports, jnp.moveaxis(verdict.means[:, len(registry.NAMES) :], 1, 0), strict=True)
    )
    if seasonal is None:
        seasonal = jnp.full(values.shape, jnp.nan, values.dtype)
    ranks = jnp.stack([report.rank for report in reports], axis=1).astype(before.ranks.dtype)
    ranks = jnp.where(learning[:, None], ranks, before.ranks)
    each = before.core, verdict, values, mask, scale, seasonal, means, ranks
    core, answer, found, every = jax.vmap(phases.answered)(*each)
    return choose_all(present, Arrays(core, models, ranks), before), answer, found, every


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
