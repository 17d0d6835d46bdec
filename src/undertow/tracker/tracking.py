"""One stream through the tracker: its frame, its CP models, its two compiled programs."""

from __future__ import annotations

import contextlib
import math
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from undertow.engine.history import CONSTANT_WINDOWS, REPEATS_ONLY, History, Verdict
from undertow.inputs.dense import Slice
from undertow.model.flags import Flags
from undertow.programs.program import program
from undertow.programs.runtime import MIDDLING
from undertow.tracker import answering, events, judging, law, scales, trials
from undertow.tracker import season as seasons
from undertow.tracker.ahead import Ahead, look_ahead, sampled
from undertow.tracker.clock import Clock, advanced
from undertow.tracker.core import Core, fresh_core
from undertow.tracker.frame import Frame, choose, misled, usual_slices
from undertow.tracker.growing import grown
from undertow.tracker.happened import BEHIND, Happened, can_wait, on_its_way, taken_in
from undertow.tracker.output import TrackerOutput, summed_up
from undertow.tracker.predictors import registry
from undertow.tracker.predictors.cp import CP, configs
from undertow.tracker.regime import changed
from undertow.tracker.scales import LINEAR
from undertow.tracker.season import Season
from undertow.tracker.trials import usable

RECENT = 20
"""Slices that are kept as they came: from these the frame is chosen, and learned anew where it changes."""
RECENT_BYTES = 64_000_000
"""Fewer of them where slices are large, but three at least."""
CONSTANT_FOR = RECENT // CONSTANT_WINDOWS
"""Half as many slices as are learned of a stream that has never been anything but one slice repeated."""
FEWEST_SAMPLED, CLOSE = 300, 0.6
"""Observations in a sample of three slices from which on it says how large they are, and the part of the limits of a
frame within which that is beyond doubt."""
BEGINNING = 5
"""Slices after which it is looked, each time, whether the stream has been another one since then."""
REVIEWS = (2, 3, BEGINNING, 10)
"""Slices after which the frame is reviewed; later on each time their number has doubled."""

new_core = program(static=["entries", "cps", "shape"])(fresh_core)
"""`fresh_core` as one program: operation by operation it is some forty."""

one_at_a_time = threading.Lock()
"""Of all trackers in a process: from more threads than two, small computations can be under way in such numbers
that JAX on CPUs waits for ever."""


@dataclass(frozen=True, eq=False)
class Tracking:
    """State of one stream.

    Attributes:
        shape: Of a slice.
        frame: None before the first data that are not 0.
        core: Arrays of predictors, weights, law and events.
        cps: CP models.
        recent: The last slices in which something was observed, oldest first.
        seen: Number of slices, empty ones included.
        used: Number of those that were learned from, since the stream is what it is.
        history: Whether the data repeat themselves.
        season: What earlier cycles were like; None while slices are learned anew in another frame.
        ahead: Forecasts, and how earlier ones turned out.
        clock: Times of the slices.
        heard: For every mode, up to which slice each row was observed (I_n,); none where labels do not come and go.
        waiting: The newest slices as far as `season` and `ahead` have not taken them in.
    """

    shape: tuple[int, ...]
    frame: Frame | None
    core: Core
    cps: tuple[CP, ...]
    recent: tuple[Slice, ...] = ()
    seen: int = 0
    used: int = 0
    history: History = REPEATS_ONLY
    season: Season | None = None
    ahead: Ahead = field(default_factory=Ahead)
    clock: Clock = field(default_factory=Clock)
    heard: tuple[np.ndarray, ...] = ()
    waiting: tuple[Happened, ...] = ()


def start(shape: tuple[int, ...], period: int = 0, believed_after: Any = 0) -> Tracking:
    """Nothing seen; a period of 0 is to be found; 0 slices after which changes are believed: as chance has it."""
    models = tuple(CP.new(config, shape) for config in configs(shape))
    entries = math.prod(shape)
    core = new_core(entries, len(models), shape)
    core = replace(core, events=replace(core.events, after=jax.device_put(np.asarray(believed_after, np.int32))))
    return Tracking(shape, None, core, models, season=seasons.start(entries, period))


def prepare(state: Tracking) -> None:
    """Begin to load or compile the largest program in a thread, beside the others; who needs it waits for it."""

    def work() -> None:
        with contextlib.suppress(Exception):  # it comes again where the program is needed
            state.cps[0].prepare()

    threading.Thread(target=work, name="undertow step").start()


def update(state: Tracking, given: Slice, time: Any = None) -> tuple[Tracking, TrackerOutput]:
    """Learn from the next slice, unless it is the last one again; the arrays of the CP models are donated."""
    noticed = noted(state, given, time)
    with one_at_a_time:
        return advance(noticed[0], given, *noticed[1:])


def noted(state: Tracking, given: Slice, time: Any = None) -> tuple[Tracking, Verdict, float]:
    """The next slice is counted, not yet learned.

    Returns:
        The state; whether the slice repeats those before; the usual steps from the last one to it.
    """
    clock, steps = advanced(state.clock, time)
    history, verdict = state.history.judge(given, unit=0.0, learned=state.used, window=CONSTANT_FOR)
    return replace(state, seen=state.seen + 1, history=history, clock=clock), verdict, steps


def advance(state: Tracking, given: Slice, verdict: Verdict, steps: float) -> tuple[Tracking, TrackerOutput]:
    """Learn from a slice that was `noted`; the caller holds `one_at_a_time`."""
    if steps != 1 or verdict.frozen:
        state = caught_up(state)
    if steps != 1:
        state = after_gap(state, steps)
    if verdict.frozen:
        output = _learned(replace(state, season=None), given, learning=False)[1]
        season = None if state.season is None else seasons.skipped(state.season, 1)
        return replace(state, season=season), output.repeated(int(verdict.since))
    after, output = _learned(framed(state, given), given, steps=steps)
    return after, output.repeated(int(verdict.since)) if verdict.repeated else output


def caught_up(state: Tracking, behind: int = 0) -> Tracking:
    """With a season and forecasts that have taken in every slice, or all but the newest ones: `behind` of them."""
    season, ahead, waiting = state.season, state.ahead, state.waiting
    if season is None or len(waiting) <= behind:
        return state
    while len(waiting) > behind:
        season, ahead = taken_in(season, ahead, waiting[0])
        waiting = waiting[1:]
    return replace(state, season=season, ahead=ahead, waiting=waiting)


def framed(state: Tracking, given: Slice) -> Tracking:
    """With the slice among the recent ones, in the frame that suits these."""
    return _in_frame(recalled(state, given)) if given.mask.any() else state


def recalled(state: Tracking, given: Slice) -> Tracking:
    """With the slice among the recent ones."""
    recent, used = remembered(state.recent, given, state.used)
    return replace(state, recent=recent, used=used)


def after_gap(state: Tracking, steps: float) -> Tracking:
    """When a slice comes this many usual steps after the last (0: again): levels are less certain, the season goes on.

    Temporal rows of the CP models are less certain where the slice is predicted.
    """
    older = answering.aged(state.core.level, np.float32(steps - 1))
    season = None if state.season is None else seasons.skipped(state.season, round(steps) - 1)
    return replace(state, core=replace(state.core, level=older), season=season)


def forecast(state: Tracking, slices: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the next slices (slices, *shape), in units of the data; nothing is learned."""
    state = caught_up(state)
    frame, season = state.frame or Frame(), state.season
    assert season is not None  # only while slices are learned anew
    with one_at_a_time:
        z, deviation = look_ahead(
            state.ahead, season, state.core, state.cps[0].state.core, slices, np.int32(frame.scale)
        )
        mean, std = _in_units(z, deviation, np.int32(frame.scale))
    shape = (slices, *state.shape)
    return frame.absolute(mean).reshape(shape), (np.asarray(std, np.float64) * frame.unit).reshape(shape)


@program()
def _in_units(z: Array, deviation: Array, scale: Array) -> tuple[Array, Array]:
    return scales.plain(z, scale), answering.width(z, deviation, scale)


def copied(state: Tracking) -> Tracking:
    """The same in memory of its own: learning donates the arrays of the CP models."""
    state = caught_up(state)
    models = tuple(replace(model, state=model.state.copy()) for model in state.cps)
    return replace(state, cps=models, season=None if state.season is None else state.season.copied())


def _in_frame(state: Tracking) -> Tracking:
    """With origin, unit and scale that suit the recent slices; where they change, these are learned anew."""
    frames = next_frames(state.frame, state.recent, state.used)
    again = learned_nonsense(state.frame, state.recent, state.used)
    if frames in ((), (state.frame,)) and not again:
        return state
    state = caught_up(state)
    return the_better(state, tried(state, frames, again))


def the_better(state: Tracking, best: Tracking) -> Tracking:
    """In the frame of `best`, which has learned the recent slices anew in it, unless that is the same state."""
    if best is state:
        return state
    season, ahead = state.season, state.ahead
    if best.frame != state.frame:
        season, ahead = reframed(season, ahead, state.frame, best.frame)
    core = best.core
    if state.frame is not None and best.frame is not None:
        core = replace(core, events=events.further_back(core.events, state.core.events))
        if best.frame.scale == state.frame.scale and state.used > RECENT:
            core = replace(core, law=state.core.law)
    if season is not None and season.periods:  # it took no part in what was learned anew
        core = replace(core, past_gram=state.core.past_gram)
    return replace(best, core=core, season=season, ahead=ahead, clock=state.clock)


def reframed(
    season: Season | None, ahead: Ahead, before: Frame | None, after: Frame | None
) -> tuple[Season | None, Ahead]:
    """Season and forecasts of a stream whose frame changes."""
    old, new = before or Frame(), after or Frame()

    def convert(z: Any) -> Any:
        relative = new.relative(old.absolute(_plain(z, np.int32(old.scale))))
        return np.asarray(_scaled(relative, np.int32(new.scale)))

    return None if season is None else seasons.reframed(season, convert), replace(ahead, pending={})


@program()
def _plain(z: Array, scale: Array) -> Array:
    return scales.plain(z, scale)


@program()
def _scaled(x: Array, scale: Array) -> Array:
    return scales.scaled(x, scale)


def next_frames(current: Frame | None, recent: tuple[Slice, ...], used: int) -> tuple[Frame, ...]:
    """Frames to be tried on the newest of these slices; none, or the current one, where nothing is to be done."""
    if current is not None and not _reviewed(used) and not _another_size(current, recent):
        return ()
    # A stream that has just begun, or begun anew, owes nothing to the scale in use.
    anew = choose(recent) if used <= BEGINNING else None
    wanted = choose(recent, current, anew.scale if anew else None)
    if wanted is None:
        return ()
    if wanted.scale == LINEAR:
        return (wanted,)
    return wanted, choose(recent, current, LINEAR) or wanted


def learned_nonsense(current: Frame | None, recent: tuple[Slice, ...], used: int) -> bool:
    """Whether the first slices, which are all still there, are to be learned anew for what was grossly off in them."""
    return current is not None and _reviewed(used) and len(recent) == used and misled(recent)


def _reviewed(used: int) -> bool:
    return used in REVIEWS or (used % RECENT == 0 and (used // RECENT).bit_count() == 1)


def tried(state: Tracking, frames: tuple[Frame, ...], again: bool = False) -> Tracking:
    """In the first of these frames, unless the recent slices are predicted clearly better in another: learned anew.

    The same state where the frame stays as it is, unless slices are to be learned `again`.
    """
    past = usual_slices(state.recent[:-1])
    best = frames[0] if frames else state.frame
    if len(frames) > 1 and past:
        best = trials.best_of(frames, trials.losses([(one, past) for one in frames], len(frames)))
    return state if best == state.frame and not again else replayed(replace(state, frame=best))


def replayed(state: Tracking) -> Tracking:
    """The same frame, learned anew from the recent slices but the newest."""
    fresh = anew(start(state.shape), state)
    for earlier in usual_slices(state.recent[:-1]):
        fresh, _ = _learned(fresh, earlier)
    return expecting(fresh)


def expecting(fresh: Tracking) -> Tracking:
    """What has learned the recent slices without what was grossly off, expecting as much from now on."""
    past = fresh.recent[:-1]
    usual = usual_slices(past)
    gross = sum(int(one.mask.sum()) for one in past) - sum(int(one.mask.sum()) for one in usual)
    if len(usual) < len(past) or not gross:
        return fresh
    return replace(fresh, core=replace(fresh.core, law=_expected(fresh.core.law, np.float32(gross))))


_expected = program()(law.with_outliers)


def anew(blank: Tracking, state: Tracking) -> Tracking:
    """What has seen nothing, with what is known of a stream without its arrays."""
    core = replace(blank.core, events=replace(blank.core.events, after=state.core.events.after))
    fresh = replace(blank, core=core, frame=state.frame, recent=state.recent, seen=state.seen, used=state.used)
    return replace(fresh, history=state.history, season=None)


def _another_size(current: Frame, recent: tuple[Slice, ...]) -> bool:
    """Whether the last three slices, and most of the recent ones, agree that unit or origin are wrong by far."""
    three = recent[-3:]
    if len(three) < 3 or _clearly_the_same_size(current, three):
        return False
    return all(choose(one, current, current.scale) not in (None, current) for one in (three, recent))


def _clearly_the_same_size(current: Frame, three: tuple[Slice, ...]) -> bool:
    """Whether some entries of large slices say so beyond doubt: to order all of them takes longer than to learn."""
    some = _some_entries(three)
    if some is three:
        return False
    enough = sum(int(np.count_nonzero(one.mask)) for one in some) >= FEWEST_SAMPLED
    return enough and choose(some, current, current.scale, CLOSE) == current


def _some_entries(slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """Some entries of large slices, flat, the same of all; small ones as they are."""
    places = sampled(slices[0].values.size)
    if places is None:
        return slices
    return tuple(Slice(one.values.ravel()[places], one.mask.ravel()[places]) for one in slices)


def noticed(empty: Any, beyond: Any, filled: Any) -> Flags:
    """What the host sees of a slice."""
    found = Flags.EMPTY if empty else Flags.NONE
    found |= Flags.OUT_OF_RANGE if beyond else Flags.NONE
    return found | (Flags.FILL_VALUES if filled else Flags.NONE)


def _learned(
    state: Tracking, given: Slice, learning: bool = True, steps: float = 1.0
) -> tuple[Tracking, TrackerOutput]:
    frame = state.frame or Frame()
    values, flat_mask, scale, beyond = _on_device(frame, given)
    observed = bool(given.mask.any() if beyond is None else (given.mask & ~beyond).any())
    said = tuple(model.predict(values, flat_mask, steps) for model in state.cps)
    entries = given.mask.size
    expected = seasons.predict(state.season, entries)
    verdict = judging.judge(state.core, values, flat_mask, scale, expected, said)
    learned, reports = state.cps, []
    if state.used == 1:  # the CP models are still being compiled
        nothing = np.zeros(entries, np.float32)
        fits = tuple(nothing.reshape(state.shape) for _ in said)
        _answered.prepare(state.core, verdict, values, flat_mask, scale, nothing, fits, _active(state.cps))
    if learning and observed and frame is state.frame:
        shaped, used, unused = _shaped(values, verdict.for_cp, state.shape)
        pairs = [model.learn(shaped, used, unused) for model in grown(state.cps, state.core)]
        learned, reports = tuple(model for model, _ in pairs), [report for _, report in pairs]
    means = tuple(report.low_rank for report in reports) or tuple(verdict.means[len(registry.NAMES) :])
    season, seasonal = seasons.fitted(state.season, values, verdict.learn, entries)
    core, answer, every, found = _answered(
        state.core, verdict, values, flat_mask, scale, seasonal, means, _active(learned)
    )
    chosen, part, dead, summary, active = found
    after = replace(state, core=core, cps=learned)
    if season is not None:
        spread = state.core.law.spread
        new = Happened(values, flat_mask, verdict.learn, answer.scaled, verdict.variance, spread, scale)
        after = _past(replace(after, season=season), season, new)
    wrong = verdict.probability, verdict.slice_off, verdict.changed, dead
    output = TrackerOutput(
        answer=answer,
        frame=frame,
        shape=state.shape,
        low_rank_part=part,
        components=partial(_rank_of, chosen, tuple(model.rank for model in learned)),
        found=partial(_named, wrong, given.mask, beyond, events.ages(core.events), state.seen - 1),
        noticed=noticed(not given.mask.any(), beyond is not None, np.any(given.filled)).value,
        dtype=given.values.dtype,
        config=settings(frame),
        ranks=tuple(model.rank for model in learned),
        given=given,
        said=every,
        beyond=None if beyond is None else (beyond, given.values),
        asked=core.events.after,
        summary=summary,
        active=active,
    )
    return after, output


def _past(after: Tracking, season: Season, new: Happened) -> Tracking:
    """Season and forecasts take the slice in, or it waits for that."""
    model = after.cps[0].state.core
    if can_wait(season, len(after.waiting)):
        new = on_its_way(season, len(after.waiting), new, after.core, model)
        return caught_up(replace(after, waiting=(*after.waiting, new)), BEHIND)
    after = caught_up(after)
    assert after.season is not None
    season, ahead = taken_in(after.season, after.ahead, new, after.core, model)
    return replace(after, season=season, ahead=ahead)


def _on_device(frame: Frame, given: Slice) -> tuple[Array, Array, Array, np.ndarray | None]:
    """What is computed with, as `_prepared` gives it; which entries are too large for that, None where none is."""
    values, mask, beyond = given.values, given.mask, None
    far = max(abs(float(values.max()) - frame.origin), abs(float(values.min()) - frame.origin))
    if not far < 0.99 * trials.LARGEST * frame.unit:
        values, mask, beyond = usable(frame, given)
        frame, beyond = Frame(scale=frame.scale), beyond if beyond.any() else None
    with jax.enable_x64(True):
        relative, mask = _relative(values, mask, np.float64(frame.origin), np.float64(frame.unit))
    return *_prepared(relative, mask, np.int32(frame.scale)), beyond


@program()
def _relative(values: Array, mask: Array, origin: Array, unit: Array) -> tuple[Array, Array]:
    """As `Frame.relative` has it, flat, 0 where nothing is observed; the mask, flat. To be run in double precision."""
    mask = mask.ravel()
    relative = ((values.ravel().astype(jnp.float64) - origin) / unit).astype(jnp.float32)
    return jnp.where(mask, relative, 0), mask


@program()
def _prepared(relative: Array, mask: Array, scale: Array) -> tuple[Array, Array, Array]:
    """Values on the scale of the stream, 0 where nothing is observed; the mask; the scale."""
    return jnp.where(mask, scales.scaled(relative, scale), 0), mask, scale


@program(static=["shape"])
def _shaped(values: Array, mask: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Values and mask in the shape of a slice; how many entries are not used."""
    return values.reshape(shape), mask.reshape(shape), mask.size - mask.sum(dtype=jnp.int32)


@program(small=MIDDLING)
def _answered(
    core: Core,
    verdict: judging.Verdict,
    values: Array,
    mask: Array,
    scale: Array,
    season: Array,
    means: tuple[Array, ...],
    active: tuple[Array, ...],
) -> tuple[Core, answering.Answer, Array, tuple[Any, ...]]:
    """`answering.learn`, and beside it: the CP model that counts most, what it says in units of the stream (n,), which
    sensors are dead (n,), what is kept of the slice for pictures, and which slots of each CP model are in use, in
    memory of its own, since learning donates the model's."""
    core, answer, every = answering.learn(core, verdict, values, mask, scale, season, means)
    chosen = jnp.argmax(verdict.weighing.answering[len(registry.NAMES) :])
    part = scales.plain(jnp.stack([mean.ravel() for mean in means])[chosen], scale)
    summary = summed_up(answer.innovation, answer.probability, answer.noise, jnp)
    return core, answer, every, (chosen, part, events.dead(core.events), summary, tuple(one | False for one in active))


def settings(frame: Frame) -> dict[str, Any]:
    """What was decided about the stream, by name."""
    return {"scale": ("linear", "root", "log")[frame.scale]}


def _active(models: tuple[CP, ...]) -> tuple[Array, ...]:
    """Which slots of each are in use."""
    return tuple(model.state.core.factors.active for model in models)


def _rank_of(chosen: Array, ranks: tuple[Any, ...]) -> int:
    return int(ranks[int(chosen)])


def _named(
    wrong: tuple[Array, ...], mask: np.ndarray, beyond: np.ndarray | None, lasting: events.Ages, now: int
) -> events.Named:
    """What is wrong beyond single entries, by probability, whether the slice is off, what has changed and is dead."""
    mask = mask if beyond is None else mask & ~beyond
    probability, off, changed, dead = jax.device_get(wrong)
    return events.named(probability.reshape(mask.shape) > 0.5, bool(off), changed, dead, mask, lasting, now)


def remembered(recent: tuple[Slice, ...], given: Slice, used: int) -> tuple[tuple[Slice, ...], int]:
    """The recent slices and this one, as many as are kept, and how many were learned from.

    Where the stream is of another nature since a few slices, only those: reviews begin anew, with one of this slice.
    """
    recent, used = (*recent, given)[-_kept(given.values.nbytes + given.mask.nbytes) :], used + 1
    if used <= RECENT or used % BEGINNING or len(recent) < RECENT:
        return recent, used
    some = _some_entries(recent)
    older, newer = usual_slices(some[:-BEGINNING]), usual_slices(some[-BEGINNING:])
    return (recent[-BEGINNING:], BEGINNING) if changed(older, newer) else (recent, used)


def recent_bytes(shape: tuple[int, ...]) -> int:
    """The most memory that recent slices take."""
    size = 9 * math.prod(shape)
    return _kept(size) * size


def _kept(size: int) -> int:
    """How many slices of `size` bytes are kept."""
    return max(3, min(RECENT, RECENT_BYTES // size))
