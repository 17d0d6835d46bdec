"""State of one stream: what is carried on from slice to slice, and what happens to it between two of them."""

from __future__ import annotations

import contextlib
import math
import threading
from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
import numpy as np

from undertow.engine.history import REPEATS_ONLY, History, Verdict
from undertow.inputs.dense import Slice
from undertow.programs.program import program
from undertow.tracker import answering
from undertow.tracker import novelty as novelties
from undertow.tracker import season as seasons
from undertow.tracker.ahead import Ahead
from undertow.tracker.clock import Clock, advanced
from undertow.tracker.core import Core, fresh_core
from undertow.tracker.frame import Frame
from undertow.tracker.happened import Happened, being_compared, taken_in
from undertow.tracker.novelty import Novelty
from undertow.tracker.predictors.cp import CP, configs
from undertow.tracker.recent import CONSTANT_FOR
from undertow.tracker.season import Season

new_core = program(static=["entries", "cps", "shape"])(fresh_core)
"""`fresh_core` as one program: operation by operation it is some forty."""

one_at_a_time = threading.Lock()
"""Of all trackers in a process: from more threads than two, small computations can be under way in such numbers
that JAX on CPUs waits for ever."""


@dataclass(frozen=True, eq=False)
class Past:
    """What the host remembers of one stream.

    Attributes:
        frame: None before the first data that are not 0.
        recent: The last slices in which something was observed, oldest first.
        seen: Number of slices, empty ones included.
        used: Number of those that were learned from, since the stream is what it is.
        history: Whether the data repeat themselves.
        novelty: How unlike the whole past the newest slice is; None for large slices.
        season: What earlier cycles were like; None while slices are learned anew in another frame.
        ahead: Forecasts, and how earlier ones turned out.
        clock: Times of the slices.
    """

    frame: Frame | None = None
    recent: tuple[Slice, ...] = ()
    seen: int = 0
    used: int = 0
    history: History = REPEATS_ONLY
    novelty: Novelty | None = None
    season: Season | None = None
    ahead: Ahead = field(default_factory=Ahead)
    clock: Clock = field(default_factory=Clock)

    def past(self) -> dict[str, Any]:
        """All of it by name."""
        return {one.name: getattr(self, one.name) for one in fields(Past)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Tracking(Past):
    """State of one stream.

    Attributes:
        shape: Of a slice.
        core: Arrays of predictors, weights, law and events.
        cps: CP models.
        heard: For every mode, up to which slice each row was observed (I_n,); none where labels do not come and go.
        waiting: The newest slices as far as `season` and `ahead` have not taken them in.
    """

    shape: tuple[int, ...]
    core: Core
    cps: tuple[CP, ...]
    heard: tuple[np.ndarray, ...] = ()
    waiting: tuple[Happened, ...] = ()


def start(shape: tuple[int, ...], period: int = 0, believed_after: Any = 0) -> Tracking:
    """Nothing seen; a period of 0 is to be found; 0 slices after which changes are believed: as chance has it."""
    models = tuple(CP.new(config, shape) for config in configs(shape))
    entries = math.prod(shape)
    core = new_core(entries, len(models), shape)
    core = replace(core, events=replace(core.events, after=jax.device_put(np.asarray(believed_after, np.int32))))
    season, novelty = seasons.start(entries, period), novelties.start(entries)
    return Tracking(shape=shape, core=core, cps=models, season=season, novelty=novelty)


def anew(blank: Tracking, state: Tracking) -> Tracking:
    """What has seen nothing, with what is known of a stream without its arrays."""
    core = replace(blank.core, events=replace(blank.core.events, after=state.core.events.after))
    fresh = replace(blank, core=core, frame=state.frame, recent=state.recent, seen=state.seen, used=state.used)
    return replace(fresh, history=state.history, novelty=state.novelty, season=None)


def noted(state: Tracking, given: Slice, time: Any = None) -> tuple[Tracking, Verdict, float]:
    """The next slice is counted, not yet learned.

    Returns:
        The state; whether the slice repeats those before; the usual steps from the last one to it.
    """
    clock, steps = advanced(state.clock, time)
    history, verdict = state.history.judge(given, unit=0.0, learned=state.used, window=CONSTANT_FOR)
    novelty = novelties.with_slice(state.novelty, given, verdict.frozen)
    return replace(state, seen=state.seen + 1, history=history, novelty=novelty, clock=clock), verdict, steps


def caught_up(state: Tracking, behind: int = 0) -> Tracking:
    """With a season and forecasts that have taken in every slice, or all but the newest ones: `behind` of them."""
    season, ahead, waiting = state.season, state.ahead, state.waiting
    if season is None or len(waiting) < max(behind, 1):
        return state
    while len(waiting) > behind:
        season, ahead = taken_in(season, ahead, waiting[0])
        waiting = waiting[1:]
    if behind and len(waiting) == behind:
        waiting = (being_compared(season, ahead, waiting[0]), *waiting[1:])
    return replace(state, season=season, ahead=ahead, waiting=waiting)


def after_gap(state: Tracking, steps: float) -> Tracking:
    """When a slice comes this many usual steps after the last (0: again): levels are less certain, the season goes on.

    Temporal rows of the CP models are less certain where the slice is predicted.
    """
    older = answering.aged(state.core.level, np.float32(steps - 1))
    season = None if state.season is None else seasons.skipped(state.season, round(steps) - 1)
    return replace(state, core=replace(state.core, level=older), season=season)


def copied(state: Tracking) -> Tracking:
    """The same in memory of its own: learning donates the arrays of the CP models."""
    state = caught_up(state)
    models = tuple(replace(model, state=model.state.copy()) for model in state.cps)
    return replace(state, cps=models, season=None if state.season is None else state.season.copied())


def prepare(state: Tracking) -> None:
    """Begin to load or compile the largest program in a thread, beside the others; who needs it waits for it."""

    def work() -> None:
        with contextlib.suppress(Exception):  # it comes again where the program is needed
            state.cps[0].prepare()

    threading.Thread(target=work, name="undertow step").start()
