"""What the tracker computed for one slice, in units of the data; fetched from the device when asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.inputs.dense import Slice
from undertow.model.flags import Flags
from undertow.programs.program import program
from undertow.tracker import law, scales
from undertow.tracker.answering import Answer
from undertow.tracker.events import Named
from undertow.tracker.frame import Frame
from undertow.tracker.predictors.cp import largest_rank
from undertow.tracker.predictors.registry import NAMES as NAMES_BEFORE_CP

Floats = NDArray[np.floating[Any]]
NAMES = (*NAMES_BEFORE_CP, "cp_0", "cp_1", "cp_2")
"""Of the predictors, in the order of their weights."""
SAMPLED = 1000
"""Entries of which pictures show the median noise, about."""


@dataclass(frozen=True, eq=False)
class TrackerOutput:
    """An answer and what is needed to express it in units of the data.

    For explanations it also holds the slice itself and what every predictor said of each entry, (K, n) on the scale of
    the stream; members of fleets have neither.

    Attributes:
        ranks: Active components of all CP models.
        components: Of the CP model that counts most.
        found: What is wrong beyond single entries, or what finds out.
        beyond: Which entries were too large to compute with, and the slice; None where there were none.
        repeating_since: The first of the slices that are all equal; −1 where they are not.
        unlike: How unlike the whole past the slice is.
        asked: What the user asked for of the stream: after how many slices changes are believed, 0 for nothing.
        summary: `summed_up`, where that is on the device.
        active: Of every CP model, which slots for components are in use; none where the state has that on the host.
    """

    answer: Answer
    frame: Frame
    shape: tuple[int, ...]
    low_rank_part: Any
    components: Any
    found: Named | Callable[[], Named]
    noticed: int
    dtype: Any
    config: dict[str, Any]
    ranks: Any = ()
    beyond: tuple[NDArray[np.bool_], Floats] | None = None
    repeating_since: int = -1
    unlike: float = float("nan")
    indices: None = None
    given: Slice | None = None
    said: Any = None
    asked: Any = 0
    summary: Any = None
    active: tuple[Any, ...] = ()

    def repeated(self, since: int) -> TrackerOutput:
        """Of a slice that is the last one again: nothing in it is wrong but that."""
        kept = Flags.REPEATED.value | self.noticed & Flags.FILL_VALUES.value
        return replace(
            self,
            answer=no_outliers(self.answer),
            summary=None,
            found=Named(),
            noticed=kept,
            beyond=None,
            repeating_since=since,
        )

    @cached_property
    def named(self) -> Named:
        """What is wrong beyond single entries, by name."""
        return self.found() if callable(self.found) else self.found

    def _fetched(self, name: str) -> Floats:
        """A part of the answer."""
        return np.asarray(getattr(self.answer, name))

    def mean(self) -> Floats:
        """What every entry should be."""
        return self._shaped(self.frame.absolute(self._fetched("mean")))

    def low_rank(self) -> Floats:
        """The CP model's part."""
        return self._shaped(self.frame.absolute(np.asarray(self.low_rank_part)))

    def std(self) -> Floats:
        """Of a new observation."""
        return self._shaped(np.asarray(self._fetched("std"), np.float64) * self.frame.unit)

    def low_rank_std(self) -> Floats:
        """Of the mean."""
        return self._shaped(np.asarray(self._fetched("mean_std"), np.float64) * self.frame.unit)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Where this fraction of new observations lies."""
        scaled, deviation, least, below = map(self._fetched, ("scaled", "deviation", "least", "below"))
        scale, reach = np.asarray(self.frame.scale, np.int32), np.asarray(law.reach(below, level), np.float32)
        ends = _ends(scaled, reach * deviation, least[..., None], scale)
        lower, upper = (self._shaped(self.frame.absolute(one)) for one in ends)
        return lower, upper

    def outliers(self) -> Floats:
        """What was added."""
        added = self._shaped(np.asarray(self._fetched("outliers"), np.float64) * self.frame.unit)
        return added if self.beyond is None else np.where(self.beyond[0], self.beyond[1] - self.mean(), added)

    def outlier_probability(self) -> Floats:
        """By the combined law; entries that were too large to compute with are outliers for certain."""
        probability = self._shaped(np.asarray(self._fetched("probability"), np.float64))
        return probability if self.beyond is None else np.where(self.beyond[0], self.dtype.type(1), probability)

    def innovations(self) -> Floats:
        """What was not predicted, in standard deviations."""
        return self._shaped(np.asarray(self._fetched("innovation"), np.float64))

    def novelty(self) -> float:
        """How unlike the whole past the slice and those just before it are; 1 is usual."""
        return self.unlike

    def weights(self) -> dict[str, float]:
        """Of the predictors, by name."""
        return dict(zip(NAMES, map(float, self._fetched("weights")), strict=False))

    def observed(self) -> tuple[Floats, NDArray[np.bool_]] | None:
        """The slice and its mask; None where it is not at hand."""
        return None if self.given is None else (self.given.values, self.given.mask)

    def said_of(self, position: tuple[int, ...]) -> dict[str, float]:
        """What every predictor said of one entry, by name; nothing where that was not kept."""
        if self.said is None:
            return {}
        flat = int(np.ravel_multi_index(position, self.shape))
        plain = scales.plain(jnp.asarray(self.said)[:, flat], jnp.asarray(self.frame.scale))
        return dict(zip(NAMES, map(float, self.frame.absolute(plain)), strict=False))

    def predictions(self) -> dict[str, Floats]:
        """What every predictor says of each entry, by name; nothing where that was not kept."""
        if self.said is None:
            return {}
        plain = scales.plain(jnp.asarray(self.said), jnp.asarray(self.frame.scale))
        return {name: self._shaped(self.frame.absolute(one)) for name, one in zip(NAMES, plain, strict=False)}

    def noted(self) -> Callable[[], dict[str, Any]]:
        """What finds the numbers of a `view.history.Moment` out once they are there, without arrays of all entries."""
        summary = summed_up(self.answer, self.components) if self.summary is None else self.summary
        return partial(_numbers, summary, self.answer.weights.size, self.frame.unit)

    def rank(self) -> int:
        """Components of the CP model."""
        return int(self.components)

    def noise_std(self) -> float:
        """The median of all entries."""
        return float(np.median(self._fetched("noise"))) * self.frame.unit

    def iterations(self) -> int:
        """One pass."""
        return 1

    def elbo(self) -> float:
        """None is kept for a combination."""
        return float("nan")

    def flags(self) -> int:
        """What was noticed."""
        most = int(np.max(np.asarray(self.ranks), initial=0))
        full = Flags.RANK_FULL.value if most >= largest_rank(self.shape) else 0
        return self.noticed | self.named.flags() | full

    def since(self) -> int:
        """The first of the slices that are all equal; −1 where they are not."""
        return self.repeating_since

    def settings(self) -> dict[str, Any]:
        """By name."""
        return self.config | believed(self.asked)

    def _shaped(self, flat: Floats) -> Floats:
        return np.asarray(flat, self.dtype).reshape(self.shape)


def noticed(empty: Any, beyond: Any, filled: Any) -> Flags:
    """What the host sees of a slice."""
    found = Flags.EMPTY if empty else Flags.NONE
    found |= Flags.OUT_OF_RANGE if beyond else Flags.NONE
    return found | (Flags.FILL_VALUES if filled else Flags.NONE)


def settings(frame: Frame) -> dict[str, Any]:
    """What was decided about the stream, by name."""
    return {"scale": ("linear", "root", "log")[frame.scale]}


@program()
def _ends(z: Array, reach: Array, least: Array, scale: Array) -> tuple[Array, Array]:
    lower, upper = (jnp.maximum(scales.plain(z + side * reach, scale), least) for side in (-1, 1))
    return lower, upper


def believed(after: Any) -> dict[str, int]:
    """After how many slices changes are believed, if that was asked for."""
    return {"believed_after": int(after)} if int(after) else {}


def summed_up(answer: Answer, rank: Any, xp: Any = np) -> Any:
    """What pictures show of a slice, as one array.

    The rank; numbers of entries that were judged, of those not flagged, and of those within ±1.96; the weights of the
    predictors; the noise of some `SAMPLED` entries.
    """
    innovation, probability, noise, weights = (
        xp.asarray(one) for one in (answer.innovation, answer.probability, answer.noise, answer.weights)
    )
    judged = ~xp.isnan(innovation)
    clean = judged & (probability <= 0.5)
    within = clean & (xp.abs(innovation) <= 1.96)
    counts = xp.stack([xp.asarray(rank), *(xp.sum(one) for one in (judged, clean, within))]).astype(weights.dtype)
    return xp.concatenate([counts, weights, noise[:: -(-noise.size // SAMPLED)]])


def _numbers(summary: Any, predictors: int, unit: float) -> dict[str, Any]:
    rank, judged, kept, within, *weights = map(float, (found := np.asarray(summary))[: 4 + predictors])
    return {
        "rank": int(rank),
        "noise": float(np.median(found[4 + predictors :])) * unit,
        "flagged": (judged - kept) / max(judged, 1),
        "covered": within / kept if kept else float("nan"),
        "weights": tuple(weights),
    }


def no_outliers(answer: Answer, where: Any = None) -> Answer:
    """The same without outliers; for many streams, those named."""

    def nothing(one: Any) -> Any:
        return np.zeros(one.shape, np.float32) if where is None else np.where(where, np.float32(0), one)

    return replace(answer, outliers=nothing(answer.outliers), probability=nothing(answer.probability))
