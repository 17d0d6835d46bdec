"""Which frame suits a stream: each is tried on the recent slices, and the errors of the answer are compared.

Tried without the CP models, which are four fifths of the cost: of 115 decisions on recorded and generated streams 110
were the same with them, and the others were close. Before the scale of a stream changes both are compared with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.engine.batching import choose_all
from undertow.inputs.dense import Slice
from undertow.programs.program import program
from undertow.tracker import answering, frame, judging, scales
from undertow.tracker.core import Core, fresh_core
from undertow.tracker.frame import Frame
from undertow.tracker.predictors.base import Prediction

CLEARLY = 0.15
"""Difference of the log error by which a frame must be better than the one that the data suggest."""
LARGEST = 1e12
"""Units beyond which an observation is not computed with."""


def usable(given_frame: Frame, given: Slice) -> tuple[Any, Any, Any]:
    """In units of the frame: values, what can be computed with, and what is too large for it."""
    relative = np.where(given.mask, given_frame.relative(given.values), 0)
    beyond = given.mask & ~(np.abs(relative) < LARGEST)
    return np.where(beyond, 0, relative), given.mask & ~beyond, beyond


def best_of(losses: Sequence[float]) -> int:
    """Position of the best; the first, unless another has predicted clearly better."""
    best = int(np.argmin(losses))
    return best if losses[best] < losses[0] - CLEARLY else 0


def loss(error: Any, one: Frame) -> float:
    """Mean log error of the answer lately, of a tracker in this frame."""
    return float(error) + math.log(one.unit)


def losses(trials: Sequence[tuple[Frame, Sequence[Slice]]], size: int) -> list[float]:
    """Mean log error of the answer lately in each frame, after these slices; `size` trials at a time.

    Args:
        trials: Frames and slices, all of one shape; there is at least one slice.
        size: Of a batch: programs are compiled for it.
    """
    found: list[float] = []
    for first in range(0, len(trials), size):
        some = trials[first : first + size]
        padded = [*some, *[(some[-1][0], ())] * (size - len(some))]
        frames, past = [one for one, _ in padded], [slices for _, slices in padded]
        errors = np.asarray(_followed(frames, past).error)
        found += [loss(error, one) for error, (one, _) in zip(errors, some, strict=False)]
    return found


def _followed(frames: Sequence[Frame], past: Sequence[Sequence[Slice]]) -> Core:
    shape = next(slices[0].shape for slices in past if slices)
    empty = Slice(np.zeros(shape, np.float32), np.zeros(shape, np.bool_))
    common = frame.stacked(frames, len(shape))
    cores: Core = _blank(math.prod(shape), len(frames))
    for position in range(max(map(len, past))):
        here = np.array([len(slices) > position for slices in past])
        now = [slices[position] if is_here else empty for slices, is_here in zip(past, here, strict=True)]
        given = Slice(np.stack([one.values for one in now]), np.stack([one.mask for one in now]))
        relative, mask, _ = (part.reshape(len(frames), -1) for part in usable(common, given))
        cores = _advanced(cores, relative, mask, np.reshape(common.scale, -1), here)
    return cores


@program(static=["entries", "size"])
def _blank(entries: int, size: int) -> Core:
    one = fresh_core(entries, 0)
    made: Core = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), one)
    return made


@program()
def _advanced(cores: Core, relative: Array, mask: Array, scale: Array, here: Array) -> Core:
    """One slice of each that is here; nobody learns but the predictors of `step`."""

    def one(core: Core, z: Array, observed: Array, its_scale: Array) -> Core:
        values = jnp.where(observed, scales.scaled(z, its_scale), 0)
        unknown = jnp.full(values.shape, jnp.nan, values.dtype)
        verdict = judging.judge(core, values, observed, its_scale, Prediction(unknown, unknown, unknown), ())
        after: Core = answering.learn(core, verdict, values, observed, its_scale, unknown, ())[0]
        return after

    advanced: Core = choose_all(here, jax.vmap(one)(cores, relative, mask, scale), cores)
    return advanced
