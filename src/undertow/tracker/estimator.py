"""Tracker: one stream with nothing to set; a thin shell over `undertow.tracker.tracking`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from undertow.engine.exclusive import check_process, exclusive
from undertow.engine.output import Output
from undertow.engine.stacked import StackedModel
from undertow.inputs.dense import Slice, as_slice
from undertow.inputs.labels.moments import moment
from undertow.inputs.labels.names import labels_in, with_labels
from undertow.inputs.labels.slices import Taken
from undertow.inputs.sparse import as_entries, is_sparse
from undertow.results import Result
from undertow.serialization import container
from undertow.tracker import files, reading, tracking
from undertow.tracker import state as states
from undertow.tracker.clock import Clock, coming, in_order
from undertow.tracker.coming_and_going import coming_and_going, with_heard
from undertow.tracker.forecast import Forecast
from undertow.tracker.output import NAMES, TrackerOutput
from undertow.tracker.rearranging import emptied, extended, rearranged
from undertow.tracker.recent import is_reviewed
from undertow.tracker.state import Tracking
from undertow.view.history import History
from undertow.view.model import ModelView
from undertow.view.names import Names
from undertow.view.viewed import Viewed

Floats = NDArray[np.floating[Any]]


class Tracker(Viewed, StackedModel):
    """Robust completion of a stream of tensors, slice by slice, with nothing to set.

    Predictors of different kinds run side by side: local levels, covariances, low-rank CP models. Each is judged by
    what it says about observed entries without having seen them, and the answer is the combination that would have
    been best lately. Outliers are decided once, by that combination, and withheld from everyone who learns.

    Args:
        period: Slices of a season, if it is known; else it is found.
        believed_after: How quickly lasting changes are believed: slices in a row in which an entry is flagged on
            the same side. By default after four, or as many more as tell it from chance. Changes of most
            entries together are believed after four at the latest.
        grow: Whether labels may come and go, in slices that are labelled: a new one makes room for itself, and one that
            was not observed in 2,016 slices is forgotten. Otherwise a label that is not known is refused.

    There are no other settings, and no presets. `undertow.RobustCP` has both: "default", "fast" and "paper", and what
    `help(undertow.Config)` lists; how often false alarms may come is a matter of `undertow.incidents`. See what it does
    with `plot()`, `components()` and `explain(entry)`.

    Threads may share a tracker: one at a time learns or reads, the others wait. A process that was forked after the
    first slice gets an error; use "spawn".

    Examples:
        >>> import numpy as np, undertow as ut
        >>> tracker = ut.Tracker()
        >>> x = np.outer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 2.0, 4.0, 3.0])
        >>> x[0, 0] = np.nan
        >>> for _ in range(3):
        ...     result = tracker.update(x)
        >>> result.mean.shape, bool(np.isfinite(result.mean[0, 0]))
        ((6, 5), True)
        >>> round(sum(result.weights.values()), 3)
        1.0
    """

    def __init__(self, period: int | None = None, believed_after: int | None = None, grow: bool = False) -> None:
        self.period = _checked("period", period)
        self.believed_after = _checked("believed_after", believed_after)
        self.grow = _checked_bool("grow", grow)
        self._now: Tracking | None = None
        self._history = History()

    @property
    def _state(self) -> Tracking | None:
        """After the last slice, which season and forecasts have taken in; waits for it. None before the first."""
        if self._now is not None:
            self._now = states.caught_up(self._now)
        return self._now

    @_state.setter
    def _state(self, state: Tracking | None) -> None:
        self._now = state

    @exclusive
    def update(self, x: Any, mask: Any = None, time: Any = None) -> Result:
        """Learn from the next slice.

        Args:
            x: The slice: array with NaN where missing, `numpy.ma.MaskedArray`, one mode or more; `xarray.DataArray`,
                frame or series of pandas or polars, put in the order of the stream by names and labels; or its
                observed entries, as `undertow.Entries` or a matrix of scipy.sparse.
            mask: True where observed, if NaN does not say it.
            time: When it was observed: a number, datetime or datetime64, later than the one before. The date that a
                labelled slice carries itself if left out, or else a usual step after the one before. After a gap,
                levels are less certain and the season has gone on; regular times change nothing.

        Returns:
            The slice as the tracker sees it. What was noticed is its `status`, and named in its `events`.

        Raises:
            TypeError: `x` or `mask` do not hold real numbers.
            ValueError: `x` has another shape or other labels than the slices before it, or infinite values, or is too
                large.
        """
        check_process()
        found, given = self._given(x, mask)
        before, carried = self._now, moment(x) if time is None else None
        if carried is not None:
            time = self.in_order(carried)
        if before is None:
            before = self._start(given.shape)
            states.prepare(before)
        return self._learned_from(found, given, *tracking.update([before], [given], [time])[0])

    def _given(self, x: Any, mask: Any = None) -> tuple[Taken, Slice]:
        """The next slice, checked."""
        before = self._now, self._labels
        try:
            if self.grow:
                self._now, self._labels = coming_and_going(*before, x)
            shape = None if self._now is None else self._now.shape
            found = self._taken(x, mask, shape)
            x, mask = found.x, found.mask
            given = as_entries(x, mask).to_slice() if is_sparse(x) else as_slice(x, mask, shape=shape)
            if shape is not None and given.shape != shape:
                raise ValueError(f"x must have the shape {shape} of the slices before it, got {given.shape}.")
        except BaseException:
            self._now, self._labels = before
            raise
        return found, given

    def _start(self, shape: tuple[int, ...]) -> Tracking:
        return states.start(shape, self.period or 0, self.believed_after or 0)

    def _learned_from(self, found: Taken, given: Slice, state: Tracking, output: TrackerOutput) -> Result:
        self._now = with_heard(state, self._now, given) if self.grow else state
        active = output.active or [one.state.core.factors.active for one in self._now.cps]
        self._history.add(self._now.seen, output, list(active))
        return Result(cast(Output, output)).along(self._keep(found), self._labels)  # it has the same methods

    def _learned_so_far(self) -> tuple[Tracking, History] | None:
        return None if self._state is None else (self._state, self._history)

    def _copied(self) -> tuple[Tracking, History] | None:
        return None if self._state is None else (states.copied(self._state), self._history.copied())

    def _go_on_from(self, learned: tuple[Tracking, History] | None) -> None:
        self._state, self._history = learned or (None, History())

    def in_order(self, time: Any) -> Any:
        """A time as `update` takes it: of a slice that is late or repeated, just after the one before.

        For streams whose times come as they are, as in `undertow.run` and `undertow.clean`.

        Args:
            time: That the slice has; None where there are none.

        Returns:
            The same time, or the earliest that `update` takes.

        Examples:
            >>> import undertow as ut
            >>> ut.Tracker().in_order(3.0)
            3.0
        """
        return in_order(Clock() if self._now is None else self._now.clock, time)

    @exclusive
    def transform(self, X: Any) -> Any:
        """What several slices should be, each as if it came next; nothing is learned from them.

        Args:
            X: As for `fit`.

        Returns:
            Their `mean`, as `X`: (T, *shape), `xarray.DataArray`, or frame.
        """
        state = replace(self._learned("transform"), clock=Clock())  # each comes next, whatever the time

        def mean(x: Any) -> Floats:
            return tracking.update([states.copied(state)], [as_slice(x, shape=state.shape)], [None])[0][1].mean()

        return self._of_each(X, state.shape, mean)

    @exclusive
    def forecast(self, slices: int = 1) -> Forecast:
        """The slices that come next, from levels, season and the dynamics of the factors; nothing is learned.

        Candidates are weighed, and error bars are scaled, by how earlier forecasts of about as many slices ahead turned
        out. A season is found from about two and a half cycles on; seasons need slices of at most 40,000 entries.

        Args:
            slices: How many, 1 to 10,000.

        Returns:
            `mean` and `std` (slices, *shape), the next slice first; `to_xarray()` has labels and times.

        Raises:
            ValueError: No slice has been seen yet, or `slices` is no integer of that range.
        """
        if isinstance(slices, bool) or not isinstance(slices, int | np.integer) or not 1 <= slices <= 10_000:
            raise ValueError(f"slices must be an integer from 1 to 10000, got {slices!r}.")
        state = self._learned("forecast")
        mean, std = tracking.forecast(state, int(slices))
        for mode, held in enumerate(self._labels.held if self._labels is not None else ()):
            mean, std = (part if held is None else part.take(held, mode + 1) for part in (mean, std))
        return Forecast(mean, std, self.labels, coming(state.clock, int(slices)))

    @exclusive
    def forget(self, rows: Sequence[Sequence[int]]) -> None:
        """Forget what is known of some rows, as if they had never been observed: others stand there from now on.

        Args:
            rows: For every mode, which ones.

        Raises:
            ValueError: No slice has been seen yet, or there is no such row.
        """
        state = self._learned("forget")
        self._state = rearranged(state, emptied(state.shape, rows))

    @exclusive
    def extend(self, shape: Sequence[int]) -> None:
        """Further rows at the ends of modes: nobody has observed them, and what is said of the others stays.

        Args:
            shape: Of slices from now on; as many rows as before in every mode, or more.

        Raises:
            ValueError: Some mode would have less rows, or it has labels, which `grow` is for.

        Examples:
            >>> import numpy as np, undertow as ut
            >>> tracker = ut.Tracker()
            >>> result = tracker.update(np.ones((4, 3)))
            >>> tracker.extend((6, 3))
            >>> tracker.update(np.ones((6, 3))).mean.shape
            (6, 3)
        """
        if self._now is None or tuple(shape) == self._now.shape:
            return
        places = extended(self._now.shape, shape)
        if self._labels is not None:
            self._labels.check(tuple(map(len, places)))
        self._state = rearranged(self._now, places)

    @exclusive
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tracker to one file, atomically; `undertow.load` goes on from it with bit-identical results.

        Args:
            path: The file.

        Raises:
            CheckpointError: It cannot be written.
            ValueError: No slice has been seen yet.
        """
        container.write(path, *self._packed("save"))

    @exclusive
    def to_bytes(self) -> bytes:
        """The tracker as bytes, the same that `save` writes; `undertow.from_bytes` goes on from them."""
        return container.to_bytes(*self._packed("to_bytes"))

    def _packed(self, what: str) -> Any:
        """Header and arrays."""
        state = self._learned(what)
        header, arrays = files.packed(state)
        return with_labels((files.with_history(header, self._history.saved(state.seen)), arrays), self._labels)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Names of the predictors, as in `Result.weights`; none before the first slice."""
        return () if self._now is None else NAMES[: self._now.core.gram.shape[-1]]

    @property
    @exclusive
    def periods(self) -> tuple[int, ...]:
        """Periods of the season, in slices: found or given, and seven of it; none as long as none is known."""
        return () if self._state is None or self._state.season is None else self._state.season.periods

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What may be given."""
        return {"period": self.period, "believed_after": self.believed_after, "grow": self.grow}

    def set_params(self, **params: Any) -> Self:
        """Set these, before the first slice; everything else is refused."""
        other = [name for name in params if name not in (*_HINTS, "grow")]
        if other:
            raise ValueError(
                f"Tracker has nothing to set but its {', '.join(_HINTS)} and grow, got {', '.join(other)}: "
                "use RobustCP for a model with settings."
            )
        if params and self._now is not None:
            raise ValueError(f"{next(iter(params))} must be set before the first slice: make a new Tracker.")
        for name, value in params.items():
            setattr(self, name, _checked_bool(name, value) if name == "grow" else _checked(name, value))
        return self

    @exclusive
    def __copy__(self) -> Tracker:
        """A tracker that goes on from here independently."""
        other = Tracker(self.period, self.believed_after, self.grow)
        other._go_on_from(self._copied())
        other._labels = self._labels
        return other

    @exclusive
    def __repr__(self) -> str:
        if self._now is None:
            return "Tracker()"
        return f"Tracker()  # {self._now.seen} slices of {'×'.join(map(str, self._now.shape))}"

    def _slice_shape(self) -> tuple[int, ...] | None:
        return None if self._now is None else self._now.shape

    @exclusive
    def _view(self, what: str) -> ModelView:
        state = self._learned(what)
        names = Names.of(state.shape, self._labels)
        return reading.view(state, self._history, names, repr(self).replace("()  #", ":"))

    @exclusive
    def _newest(self) -> Result:
        output = self._history.newest
        if output is None:
            raise ValueError("explain is about the newest slice, which a loaded tracker has not seen: call update(x).")
        return Result(cast(Output, output)).along(None, self._labels)

    def _learned(self, what: str) -> Tracking:
        if self._state is None:
            raise ValueError(f"{what} needs at least one slice: call update(x) first.")
        return self._state


def update_together(
    trackers: Sequence[Tracker], slices: Sequence[Any], times: Sequence[Any] | None = None
) -> list[Result | ValueError | TypeError]:
    """`Tracker.update` of many trackers, with a slice for each: those of one small shape are stepped together.

    Each gets what `update` would have given it, to rounding.

    Args:
        trackers: All different.
        slices: What each has to learn.
        times: Of the slices, as they come: one that is late or repeated counts as just after the one before. None
            where there is none.

    Returns:
        The results; where a slice was refused, why: its tracker is as before.
    """
    check_process()
    when = [None] * len(slices) if times is None else times
    made: dict[int, Any] = {}
    alike: dict[tuple[int, ...], dict[int, tuple[Taken, Slice]]] = {}
    with contextlib.ExitStack() as held:
        for tracker in sorted(trackers, key=id):  # in one order everywhere, or two callers could wait for each other
            held.enter_context(tracker._lock)
        for number, (tracker, x) in enumerate(zip(trackers, slices, strict=True)):
            try:
                found, given = tracker._given(x)
            except (ValueError, TypeError) as error:
                made[number] = error
                continue
            alike.setdefault(given.shape, {})[number] = found, given
        for shape, some in alike.items():
            own = {number: _put_in_order(trackers[number], when[number]) for number in some}
            before = [trackers[number]._now or trackers[number]._start(shape) for number in some]
            learned = tracking.update(before, [given for _, given in some.values()], list(own.values()))
            for (number, (found, given)), after in zip(some.items(), learned, strict=True):
                made[number] = trackers[number]._learned_from(found, given, *after)
    return [made[number] for number in range(len(trackers))]


def reviewed_next(tracker: Tracker) -> bool:
    """Whether the frame is reviewed with the next slice, which may take as long as some twenty others."""
    return tracker._state is not None and is_reviewed(tracker._state.used + 1)


def _put_in_order(tracker: Tracker, time: Any) -> Any:
    return None if time is None else tracker.in_order(time)


_HINTS = {"period": (2, "find it"), "believed_after": (1, "let chance decide")}
"""What may be given: the least number of slices, and what None does."""


def _checked(name: str, number: Any) -> int | None:
    least, otherwise = _HINTS[name]
    if number is None or (isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= least):
        return None if number is None else int(number)
    raise ValueError(
        f"{name} must be an integer of at least {least}, in slices, or None to {otherwise}, got {number!r}."
    )


def _checked_bool(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {value!r}.")


def from_checkpoint(checkpoint: Any, name: str) -> Tracker:
    """The tracker in a checkpoint; `name` is what messages call it."""
    tracker = from_state(files.unpacked(checkpoint, name))
    tracker._labels = labels_in(checkpoint, name)
    if (known := files.history_in(checkpoint[0])) is not None:
        tracker._history.go_on(*known)
    return tracker


def from_state(state: Tracking) -> Tracker:
    """A tracker that goes on from here; the state is its own from now on."""
    period = state.season.given if state.season is not None else 0
    tracker = Tracker(period or None, int(state.core.events.after) or None, bool(state.heard))
    tracker._state = state
    return tracker
