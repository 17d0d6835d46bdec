"""Trackers whose arrays have the same shapes, as one batch on the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.config import Config
from undertow.engine import batching
from undertow.engine.capacity import separable
from undertow.engine.state import State
from undertow.model.settings import Settings
from undertow.tracker import batch, batch_step
from undertow.tracker.answering import Answer
from undertow.tracker.batch import Arrays
from undertow.tracker.batch_step import Memory
from undertow.tracker.core import Core
from undertow.tracker.phases import Found
from undertow.tracker.predictors.cp import CP, GROWTH_INTERVAL, LARGEST_RANK
from undertow.tracker.state import Tracking

FREE = -1
SAID_BYTES = 2**26
"""Up to this much, what every predictor said is kept with a result, to explain it."""


@dataclass(eq=False)
class Group:
    """A batch; positions without a member are computed in vain.

    Attributes:
        shape: Of a slice.
        configs: Settings of the CP models.
        arrays: Members first.
        steps: Slices that the CP models have learned, by position.
        members: The number of the member at each position, or `FREE`.
    """

    shape: tuple[int, ...]
    configs: tuple[Config, ...]
    arrays: Arrays
    steps: NDArray[np.int64]
    members: NDArray[np.int64]

    @classmethod
    def of(cls, blank: Tracking, size: int) -> Self:
        """Free positions for `size` members."""
        configs = tuple(model.state.config for model in blank.cps)
        arrays = batch.repeated(_arrays(blank), size)
        return cls(blank.shape, configs, arrays, np.zeros(size, np.int64), np.full(size, FREE, np.int64))

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def settings(self) -> tuple[Settings, ...]:
        """What the compiled programs get, on the device."""
        there: tuple[Settings, ...] = jax.device_put(tuple(config.settings() for config in self.configs))
        return there

    def free(self) -> NDArray[np.intp]:
        """Positions without a member."""
        return np.flatnonzero(self.members == FREE)

    def doubled(self, blank: Tracking) -> Group:
        """With twice the positions."""
        other = Group.of(blank, len(self))
        arrays = batching.joined(self.arrays, other.arrays)
        steps, members = (np.concatenate(pair) for pair in ((self.steps, other.steps), (self.members, other.members)))
        return replace(self, arrays=arrays, steps=steps, members=members)

    def put(self, positions: Any, state: Tracking) -> None:
        """Let these positions hold the arrays of one tracker."""
        which = np.zeros(len(self), np.bool_)
        which[positions] = True
        self.arrays = batch.with_members(self.arrays, which, _arrays(state))
        self.steps[positions] = state.cps[0].state.steps

    def take(self, position: int) -> tuple[Core, tuple[CP, ...]]:
        """The arrays of one tracker, in memory of their own."""
        one: Arrays = batch.member(self.arrays, np.int32(position))
        steps, ranks = int(self.steps[position]), np.asarray(one.ranks)
        models = tuple(
            CP(State(config, self.shape, 1.0, steps, core, _missing(config, core, steps)), int(rank))
            for config, core, rank in zip(self.configs, one.models, ranks, strict=True)
        )
        return one.core, models

    def full(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Those of these positions that are due for a look at their CP models and have one with no slot free."""
        due: NDArray[Any] = positions[self.steps[positions] % GROWTH_INTERVAL == 0]
        limits = np.array([config.max_rank for config in self.configs])
        full: NDArray[np.bool_] = (np.asarray(self.arrays.ranks) >= limits) & (limits < LARGEST_RANK)
        due = due[full[due].any(axis=1)]
        return due

    def age(self, steps: NDArray[np.float32]) -> None:
        """Slices come this many usual steps after those before, by position: levels are less certain after a gap."""
        self.arrays = replace(self.arrays, core=batch.aged_all(self.arrays.core, steps - 1))

    def learn(
        self,
        relative: NDArray[Any],
        mask: NDArray[np.bool_],
        scale: NDArray[np.int32],
        framed: NDArray[np.bool_],
        present: NDArray[np.bool_],
        steps: NDArray[np.float32],
        memory: Memory | None = None,
    ) -> tuple[Answer, Found, Array | None, Memory | None]:
        """The next slice of those who are present, by position; with what each predictor said of it (M, K, n).

        Args:
            relative: Values in units of each stream (M, n).
            mask: True where observed.
            scale: Of each stream.
            framed: Whose frame is known: the CP models of the others do not learn.
            present: Who has a slice.
            steps: Usual steps between the slice before and this one.
            memory: Of those who are present, if they have any: what it is after the slice comes last.
        """
        made = batch_step.learned(
            self.arrays, relative, mask, scale, framed, present, steps, self.settings, self.shape, memory
        )
        self.arrays = made.arrays
        self.steps += made.learning
        return made.answer, made.found, made.said if made.said.nbytes <= SAID_BYTES else None, made.memory


def _arrays(state: Tracking) -> Arrays:
    ranks = jnp.asarray(np.array([int(model.rank) for model in state.cps], np.int32))
    return Arrays(state.core, tuple(model.state.core for model in state.cps), ranks)


def _missing(config: Config, core: Any, steps: int) -> tuple[int, ...]:
    """Entries that were not used in each slice of the window, oldest first, where a single tracker counts them."""
    if not separable(config):
        return ()
    counts = np.asarray((~core.window.mask).reshape(len(core.window.mask), -1).sum(axis=1))
    order = (int(core.window.newest) - np.arange(min(steps, config.window))[::-1]) % config.window
    return tuple(int(count) for count in counts[order])
