"""What a tracker carries from slice to slice, beside its CP models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.tree_util import register_dataclass

from undertow.tracker import calibration, events, expectation, law, neighbours, zeros
from undertow.tracker.combination import FORGETTING
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.level import LevelState

PAST = 3
"""Predictors of a slice in which nothing is observed: the level, the last answer, and the season."""


@register_dataclass
@dataclass(frozen=True)
class Core:
    """All arrays of a tracker but those of its CP models.

    Attributes:
        level: State of the local levels.
        others: States of `registry.OTHERS`.
        gram: Errors of the predictors (F, K, K), discounted quickly and slowly.
        past_gram: Errors of what the past alone says (F, 3, 3).
        paces: Squared errors of the answer with weights of each kind (F,).
        sets: These weights, after the last slice (F, K).
        error: Mean log of the mean absolute error of the answer, in units of the stream.
        refits: Mean log ratio of the errors of CP models with and without a fit to the slice itself (C,).
        size: Discounted squared size of a slice.
        calibration: Of what the predictors say of their own errors.
        law: Of the innovations.
        expectation: What an observation is on average.
        events: What lasts.
        zeros: Entries that are mostly zero.
        last: The last answer (n,).
        seen: Slices that were not empty.
        neighbours: How well the entries around an entry say what it is; None of small slices.
    """

    level: LevelState
    others: tuple[Any, ...]
    gram: Array
    past_gram: Array
    paces: Array
    sets: Array
    error: Array
    refits: Array
    size: Array
    calibration: calibration.Calibration
    law: law.Law
    expectation: expectation.Expectation
    events: events.Events
    zeros: zeros.Zeros
    last: Array
    seen: Array
    neighbours: neighbours.Neighbours | None = None


def fresh_core(entries: int, cps: int, shape: tuple[int, ...] = ()) -> Core:
    """Nothing seen; entries do not know of each other where the shape of a slice is not given."""
    size = len(registry.NAMES) + cps
    return Core(
        level=registry.LEVEL.init(entries),
        others=tuple(one.init(entries) for one in registry.OTHERS),
        gram=jnp.stack([jnp.eye(size) * 1e-6] * len(FORGETTING)),
        past_gram=jnp.stack([jnp.eye(PAST) * 1e-6] * len(FORGETTING)),
        paces=jnp.zeros(len(FORGETTING)),
        sets=jnp.ones((len(FORGETTING), size)) / size,
        error=jnp.zeros(()),
        refits=jnp.zeros(cps),
        size=jnp.zeros(()),
        calibration=calibration.init(size, entries),
        law=law.init(),
        expectation=expectation.init(),
        events=events.init(entries),
        zeros=zeros.init(entries),
        last=jnp.zeros(entries),
        seen=jnp.zeros((), jnp.int32),
        neighbours=neighbours.init(shape),
    )
