"""What a model remembers for its pictures: a few numbers for each of the last slices.

In memory only, and no part of the state, which stays what it is whether anybody looks or not. Saved are the newest
slice and when each component began; the whole history of a stream is in a store (`undertow.run`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST = 600
"""Slices that are remembered."""
BEHIND = 2
"""Slices that may still be computed: nothing is asked of them before they are that old, or before somebody looks."""


@dataclass(frozen=True)
class Moment:
    """One slice.

    Attributes:
        index: Of the slice, counted from 0.
        rank: Active components.
        noise: Typical standard deviation of the noise.
        flagged: Fraction of the observed entries.
        covered: Fraction of the other observed entries within ±1.96 std of what was predicted without them.
        weights: Of the predictors.
    """

    index: int
    rank: int
    noise: float
    flagged: float
    covered: float
    weights: tuple[float, ...] = ()


class _Coming(NamedTuple):
    """A slice that is not taken in yet: its number from 1, the frame of the stream, the slice from which on components
    that begin in it are known, slots in use, and what finds its numbers out."""

    seen: int
    frame: Any
    first: int
    active: list[Any]
    numbers: Callable[[], dict[str, Any]]


class History:
    """The last slices of a stream, each taken in when it is computed anyway."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=MOST)
        self._coming: deque[_Coming] = deque()
        self._newest: tuple[int, Any] | None = None
        self._active: list[NDArray[np.bool_]] = []
        self._since: list[NDArray[np.int64]] = []
        self._frame: Any = None

    def add(self, seen: int, output: Any, active: list[Any]) -> None:
        """One more slice.

        Args:
            seen: Slices so far; where one is missing in between, this is another stream, and all is forgotten.
            output: What was computed, with a `frame` and with numbers that are `noted`.
            active: Of every CP model, which slots for components are in use.
        """
        before = self._newest
        if before is None or seen != before[0] + 1:
            self._moments.clear()
            self._coming.clear()
            self._active, self._since = [], []
        first = -1 if before is None and seen > 1 else seen - 1  # of a model that was loaded it is not known
        self._coming.append(_Coming(seen, output.frame, first, active, output.noted()))
        self._newest = (seen, output)
        self._take_in(BEHIND)

    def copied(self) -> History:
        """The same, to go on from apart."""
        other = History()
        other._moments.extend(self._moments)
        other._coming.extend(self._coming)
        other._newest, other._frame = self._newest, self._frame
        other._active, other._since = self._active, self._since  # replaced, never changed
        return other

    @property
    def newest(self) -> Any:
        """What was computed for the newest slice; None before the first."""
        return None if self._newest is None else self._newest[1]

    def moments(self) -> list[Moment]:
        """All that are remembered, the newest slice included."""
        self._take_in(0)
        return list(self._moments)

    def since(self, model: int) -> NDArray[np.int64] | None:
        """The slice from which on each slot of a CP model has been in use, counted from 0; −1 where not known."""
        self._take_in(0)
        return self._since[model] if model < len(self._since) else None

    def saved(self, seen: int) -> dict[str, Any] | None:
        """As plain JSON, with a frame: the newest slice, and of every CP model its slots in use and when each began.

        None where the newest slice is not the one of that number: what happened in between is not known.
        """
        self._take_in(0)
        if self._newest is None or self._newest[0] != seen or not self._moments:
            return None
        newest = {name: np.asarray(value).tolist() for name, value in asdict(self._moments[-1]).items()}
        newest = {name: None if value != value else value for name, value in newest.items()}
        slots = zip(self._active, self._since, strict=True)
        models = [{"active": np.flatnonzero(a).tolist(), "since": s.tolist()} for a, s in slots]
        return {"newest": newest, "frame": self._frame, "models": models}

    def go_on(self, saved: dict[str, Any], frame: Any) -> None:
        """From what `saved` gave; the frame is that of its newest slice."""
        newest: dict[str, Any] = {name: np.nan if one is None else one for name, one in saved["newest"].items()}
        self._moments.append(Moment(**{**newest, "weights": tuple(newest["weights"])}))
        self._newest, self._frame = (self._moments[-1].index + 1, None), frame
        self._since = [np.asarray(one["since"], np.int64) for one in saved["models"]]
        self._active = [np.isin(np.arange(len(one["since"])), one["active"]) for one in saved["models"]]

    def _take_in(self, behind: int) -> None:
        """All slices but the newest ones, `behind` of them."""
        while len(self._coming) > behind:
            one = self._coming.popleft()
            active = [np.asarray(slots) for slots in one.active]
            # learned anew in another frame
            fresh = self._frame != one.frame or len(self._active) != len(active)
            olds = [(None, None)] * len(active) if fresh else list(zip(self._active, self._since, strict=True))
            since = [_since(*old, now, one.first) for old, now in zip(olds, active, strict=True)]
            self._active, self._since, self._frame = active, since, one.frame
            self._moments.append(Moment(index=one.seen - 1, **one.numbers()))


def _since(
    before: NDArray[np.bool_] | None, since: NDArray[np.int64] | None, now: NDArray[np.bool_], index: int
) -> NDArray[np.int64]:
    """For each slot; slots move when their number changes: those in use come first, in their order."""
    if before is None or since is None:
        return np.where(now, index, -1)
    if before.size != now.size:
        order = np.argsort(~before, kind="stable")[: now.size]
        missing = max(now.size - order.size, 0)
        before, since = np.pad(before[order], (0, missing)), np.pad(since[order], (0, missing), constant_values=-1)
    return np.where(now, np.where(before, since, index), -1)
