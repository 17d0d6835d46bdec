"""What many trackers computed for one slice of each, members first; fetched from the device when asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from undertow.inputs.dense import Slice
from undertow.tracker import events, output
from undertow.tracker.answering import Answer
from undertow.tracker.frame import Frame, stacked
from undertow.tracker.output import TrackerOutput, no_outliers
from undertow.tracker.phases import Found

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Part:
    """Of one group: which members, where they stand in it, what was found, and what each predictor said (M, K, n)."""

    members: NDArray[np.intp]
    positions: NDArray[np.intp]
    answer: Answer
    found: Found
    said: Any = None


@dataclass(frozen=True, eq=False)
class FleetOutput:
    """The answers of all groups, and what is needed to express them in units of the data.

    Attributes:
        parts: Of the groups in which someone was present, and of the first.
        frames: Of every member.
        present: Who had a slice (n,).
        shape: Of a slice.
        mask: What was computed with (n, *shape).
        empty: Who had nothing observed (n,).
        beyond: Entries too large to compute with (n, *shape).
        filled: Who had fill values (n,).
        given: The slices.
        repeating_since: The first of the slices of a member that are all equal (n,); −1 where they are not.
        slices: How many each has had (n,).
        unlike: How unlike its whole past the slice of each is (n,).
        dtype: Of all arrays.
    """

    parts: tuple[Part, ...]
    frames: tuple[Frame, ...]
    present: NDArray[np.bool_]
    shape: tuple[int, ...]
    mask: NDArray[np.bool_]
    empty: NDArray[np.bool_]
    beyond: NDArray[np.bool_]
    filled: Any
    given: Floats
    repeating_since: NDArray[np.int64]
    slices: NDArray[np.int64]
    unlike: Floats
    dtype: Any
    indices: None = None

    def mean(self) -> Floats:
        """What every entry should be."""
        return self._all.mean()

    def low_rank(self) -> Floats:
        """The CP model's part."""
        return self._all.low_rank()

    def std(self) -> Floats:
        """Of a new observation."""
        return self._all.std()

    def low_rank_std(self) -> Floats:
        """Of the mean."""
        return self._all.low_rank_std()

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Where this fraction of new observations lies."""
        return self._all.interval(level)

    def outliers(self) -> Floats:
        """What was added."""
        return self._all.outliers()

    def outlier_probability(self) -> Floats:
        """By the combined law."""
        return self._all.outlier_probability()

    def innovations(self) -> Floats:
        """What was not predicted, in standard deviations."""
        return self._all.innovations()

    def weights(self) -> Floats:
        """Of the predictors (n, K), NaN for those who were absent."""
        weights = self._fetched[0].weights.astype(np.float64)
        return np.where(self.present[:, None], weights, np.nan)

    def novelty(self) -> Floats:
        """How unlike its whole past the slice of each member is; NaN for those who were absent."""
        return np.where(self.present, self.unlike, np.nan)

    def rank(self) -> NDArray[np.int32]:
        """Components of the CP model."""
        return np.asarray(self._fetched[1].rank, np.int32)

    def noise_std(self) -> Floats:
        """The median of all entries."""
        return self._numbers("noise_std", np.float64)

    def iterations(self) -> NDArray[np.int32]:
        """One pass."""
        return self._numbers("iterations", np.int32)

    def elbo(self) -> Floats:
        """None is kept for a combination."""
        return self._numbers("elbo", np.float64)

    def flags(self) -> NDArray[np.int32]:
        """What was noticed."""
        return self._numbers("flags", np.int32)

    def since(self) -> NDArray[np.int64]:
        """The first of the slices that are all equal; −1 where they are not."""
        return np.where(self.present, self.repeating_since, -1)

    def settings(self) -> dict[str, Any]:
        """By name, for every member."""
        each = [output.settings(frame) for frame in self.frames]
        return {name: tuple(one[name] for one in each) for name in output.settings(Frame())}

    @cached_property
    def named(self) -> tuple[events.Named | None, ...]:
        """What is wrong beyond single entries, by name; None for those who were absent."""
        return tuple(one.named if here else None for one, here in zip(self._each, self.present, strict=True))

    def member(self, position: int) -> TrackerOutput:
        """Of one member, as a single tracker has it."""
        return replace(self._each[position], said=self._said(position))

    @cached_property
    def _each(self) -> tuple[TrackerOutput, ...]:
        return tuple(self._one(number) for number in range(len(self.frames)))

    def _one(self, number: int) -> TrackerOutput:
        answer, found = jax.tree.map(lambda leaf: leaf[number], self._fetched)
        mask, frame, now = self.mask[number], self.frames[number], int(self.slices[number]) - 1
        flagged = answer.probability.reshape(self.shape) > 0.5
        named = events.named(flagged, bool(found.slice_off), found.changed, found.dead, mask, found.lasting, now)
        noticed = output.noticed(self.empty[number], self.beyond[number].any(), self.filled[number])
        low_rank, settings = found.low_rank, output.settings(frame)
        beyond = self.beyond[number], self.given[number]
        one = TrackerOutput(
            answer,
            frame,
            self.shape,
            low_rank,
            found.rank,
            named,
            noticed.value,
            self.dtype,
            settings,
            found.ranks,
            beyond,
            given=Slice(self.given[number], mask),
            unlike=float(self.unlike[number]),
        )
        since = int(self.repeating_since[number])
        return one if since < 0 else one.repeated(since)

    def _said(self, number: int) -> Any:
        """What each predictor said of the slice of one member (K, n), if that was kept."""
        for part in self.parts:
            if part.said is not None and number in part.members:
                return part.said[int(part.positions[part.members == number][0])]
        return None

    @cached_property
    def _all(self) -> TrackerOutput:
        """As if they were one slice with members as its first mode; its numbers mean nothing."""
        (answer, found), shape = self._fetched, (len(self.frames), *self.shape)
        repeated = self.repeating_since >= 0
        beyond = self.beyond & ~repeated.reshape(-1, *[1] * len(self.shape)), self.given
        answer, frame = no_outliers(answer, repeated[:, None]), stacked(self.frames, 1)
        return TrackerOutput(
            answer, frame, shape, found.low_rank, found.rank, events.Named(), 0, self.dtype, {}, beyond=beyond
        )

    def _numbers(self, name: str, kind: Any) -> NDArray[Any]:
        return np.array(
            [int(value) if kind is np.int32 else value for value in (getattr(one, name)() for one in self._each)], kind
        )

    @cached_property
    def _fetched(self) -> tuple[Answer, Found]:
        """Members first; zeros for those who were absent."""
        fetched = jax.device_get([(part.answer, part.found) for part in self.parts])

        def placed(*groups: NDArray[Any]) -> NDArray[Any]:
            whole = np.zeros((len(self.frames), *groups[0].shape[1:]), groups[0].dtype)
            for part, array in zip(self.parts, groups, strict=True):
                whole[part.members] = array[part.positions]
            return whole

        answers: tuple[Answer, Found] = jax.tree.map(placed, *fetched)
        return answers
