"""What lasts: entries that have changed for good, slices that are wrong as a whole, sensors that are dead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model.flags import Flags

BELIEVED_AFTER, CHANCE = 4, 1e-3
"""Flagged slices in a row, all on the same side, after which a change is believed to last; more where outliers are so
many that chance alone would give such a row in more than this fraction of the slices."""
LIKE_OTHERS = 2.0
"""Times the distance of the nearest of a run, up to which an observation can be the new level."""
MOST_SUPPORT = 1000
"""More is not counted."""
OFF_FRACTION = 0.5
"""A slice is wrong as a whole if more than this fraction of its observed entries is flagged."""
FEWEST_ENTRIES = 4
"""Observed entries from which on that can be said."""
FARTHER, FARTHEST = 1.0, 1.5
"""A slice is wrong as a whole if it lies farther from what the past predicts than any slice lately, by the first (of
the logarithm), where no entry counts as farther than by the second: so a third of the entries must lie that far."""
LEAST_RECORD = -1.0
"""The farthest lately counts as this at least: what lies well within the error bars of the past is no surprise."""
KNOWN_AFTER, SURPRISE_MEMORY, RECORD_MEMORY = 8, 30.0, 0.98
"""Slices from which on that is known, over which the usual distance is averaged, and how fast the farthest is forgotten
(per slice, towards the usual)."""
REPEATED = 0.05
"""What an observation that repeats the one before it says about the noise, against one that does not: codecs of video
and loggers that report changes only do not measure anew. Zeros do: nothing was counted, again."""
DEAD_AFTER, DEAD_FACTOR = 12, 4
"""A sensor is dead if it repeats one number this many times, this many times longer than ever before, and so often that
it cannot be chance."""
NEAR_FORMER = 3.0
"""Standard deviations of a level before a change within which an observation says that it is back."""

SHARE_MEMORY = 20.0
"""Observations over which it is averaged how often an entry is flagged."""


@register_dataclass
@dataclass(frozen=True)
class Events:
    """Counts per entry (n,), of observed slices.

    Attributes:
        run: Flagged slices in a row, one less for every one between them that is not; negative where they lie below
            what is expected.
        nearest: Of these, the least distance from what is expected, in standard deviations.
        support: Observations in a row, up to `MOST_SUPPORT`, that were as expected since the entry was first seen or
            last changed.
        former: The level before the last change that was believed, if it was known well, until the new one has more
            support; else NaN.
        former_square: Variance of an observation around it.
        former_support: Its support.
        off_run: Slices in a row that were wrong as a whole.
        value: The last observed.
        repeats: How often in a row it came.
        same: How often before that an observation was equal to the one before it, where that may be chance.
        moves: How often it was not.
        longest: The longest row of repeats before this one.
        stuck: Where a number that is off repeats itself.
        flagged_share: How much of what was observed lately was flagged.
        flagged_for: Slices since what is flagged now was first flagged.
        repeated_for: Slices since the last change.
        surprise: Usual log root mean square of what the past did not predict, in standard deviations.
        record: The largest lately.
        known: Slices that these come from.
        after: Flagged slices in a row after which a change is believed, as the user asked; 0 where chance decides.
    """

    run: Array
    nearest: Array
    support: Array
    former: Array
    former_square: Array
    former_support: Array
    off_run: Array
    value: Array
    repeats: Array
    same: Array
    moves: Array
    longest: Array
    stuck: Array
    flagged_share: Array
    flagged_for: Array
    repeated_for: Array
    surprise: Array
    record: Array
    known: Array
    after: Array


@register_dataclass
@dataclass(frozen=True)
class Found:
    """Decisions about one slice.

    Attributes:
        accept: Entries whose change is believed (n,).
        back: Of these, those that are back at the level before their last change (n,).
        slice_off: Whether the slice is wrong as a whole.
        stuck: Entries that were off and have repeated the same number since (n,).
    """

    accept: Array
    back: Array
    slice_off: Array
    stuck: Array


def init(entries: int) -> Events:
    """Nothing seen."""
    zero, number = jnp.zeros(entries, jnp.int32), jnp.zeros(())
    return Events(
        run=zero,
        nearest=jnp.full(entries, jnp.inf, jnp.float32),
        support=zero,
        former=jnp.full(entries, jnp.nan, jnp.float32),
        former_square=jnp.zeros(entries),
        former_support=zero,
        off_run=number.astype(jnp.int32),
        value=jnp.full(entries, jnp.nan, jnp.float32),
        repeats=zero,
        same=zero,
        moves=zero,
        longest=zero,
        stuck=zero > 0,
        flagged_share=jnp.zeros(entries),
        flagged_for=zero,
        repeated_for=zero,
        surprise=number,
        record=number,
        known=number,
        after=number.astype(jnp.int32),
    )


def _record(events: Events) -> Array:
    return jnp.maximum(events.record, LEAST_RECORD)


def distance(events: Events, squares: Array, which: Array) -> Array:
    """Log root mean square of how far entries lie from what the past predicts; `squares` in variances (n,)."""
    most = jnp.where(events.known >= KNOWN_AFTER, jnp.exp(2 * (_record(events) + FARTHEST)), jnp.inf)
    total = jnp.where(which, jnp.minimum(squares, most), 0).sum()
    size: Array = 0.5 * jnp.log(total / jnp.maximum(which.sum(), 1) + 1e-12)
    return size


def _run(events: Events, probability: Array, innovation: Array, mask: Array) -> Array:
    side = jnp.where(innovation > 0, 1, -1)
    flagged = mask & (probability > 0.5)
    longer = jnp.where(jnp.sign(events.run) == side, events.run + side, side)
    return jnp.where(flagged, longer, jnp.where(mask, events.run - jnp.sign(events.run), events.run))


def _nearest(events: Events, run: Array, innovation: Array, mask: Array) -> Array:
    """The least distance in the run, this slice included; infinite without one."""
    goes_on = jnp.where(jnp.sign(events.run) == jnp.sign(run), events.nearest, jnp.inf)
    longer = mask & (jnp.abs(run) > jnp.where(jnp.isinf(goes_on), 0, jnp.abs(events.run)))
    return jnp.where(longer, jnp.minimum(goes_on, jnp.abs(innovation)), goes_on)


def _lasts(run: Array, nearest: Array, innovation: Array, needed: Array) -> Array:
    """Whether the run is long enough, and this is no outlier among its own: the level would begin anew far off."""
    return (jnp.abs(run) >= needed) & (jnp.abs(innovation) <= LIKE_OTHERS * nearest)


def _needed(events: Events, rate: Array | float, mask: Array) -> Array:
    """Flagged slices (n,) that are more than chance and than what spoke for the level, or as many as were asked for."""
    odds = jnp.clip(rate / (1 - rate), 1e-9, 0.9)
    likely = jnp.log(CHANCE / jnp.maximum(mask.sum(), 1)) / jnp.log(odds)
    many = jnp.maximum(jnp.ceil(likely), BELIEVED_AFTER).astype(jnp.int32)
    return jnp.where(events.after > 0, events.after, jnp.minimum(many, jnp.maximum(events.support, 1) + 1))


def _surprising(events: Events, surprise: Array | float, mask: Array) -> Array:
    """Whether a slice lies much farther from what the past predicts than any slice lately."""
    limit = _record(events) + FARTHER
    return (surprise > limit) & (events.known >= KNOWN_AFTER) & (mask.sum() >= FEWEST_ENTRIES)


def _no_chance(events: Events, repeats: Array) -> Array:
    """Whether this many repeats in a row are no chance, given how often the entry has repeated a number before.

    An observation is equal to the one before it with probability q ~ Beta(same + a, moves + b), a and b being worth one
    observation and as frequent as in all entries: P(r repeats) = Γ(same + a + r) Γ(N) / (Γ(same + a) Γ(N + r)).
    """
    all_same, all_moves = events.same.sum(), events.moves.sum()
    same = events.same + (all_same + 1) / (all_same + all_moves + 2)
    total = 1.0 + events.same + events.moves
    log = jax.lax.lgamma
    chance = log(same + repeats) - log(same) + log(total) - log(total + repeats)
    known = jnp.maximum((~jnp.isnan(events.value)).sum(), 1)
    rare: Array = (events.moves > 0) & (chance < np.log(CHANCE) - jnp.log(known))
    return rare


def _off(probability: Array, mask: Array) -> Array:
    observed, flagged = mask.sum(), (mask & (probability > 0.5)).sum()
    return (flagged > OFF_FRACTION * observed) & (observed >= FEWEST_ENTRIES)


def decide(
    events: Events,
    probability: Array,
    innovation: Array,
    values: Array,
    mask: Array,
    surprise: Array | float = 0.0,
    rate: Array | float = 0.0,
) -> Found:
    """What to believe of this slice; `rate` is the usual fraction of outliers."""
    same, flagged = mask & (values == events.value), mask & (probability > 0.5)
    back = flagged & ((values - events.former) ** 2 < NEAR_FORMER**2 * events.former_square)
    off = _off(jnp.where(back, 0, probability), mask) | _surprising(events, surprise, mask)
    repeating = _no_chance(events, events.repeats + 1) & (events.moves >= KNOWN_AFTER)
    off_before = (events.run != 0) & (events.flagged_for > 0)
    stuck = same & repeating & (events.stuck | off_before | flagged)
    run = _run(events, probability, innovation, mask)
    nearest = _nearest(events, run, innovation, mask)
    believed = _lasts(run, nearest, innovation, _needed(events, rate, mask)) & ~stuck
    moving = (mask & ~same).any()  # a stream that repeats one slice has not changed
    # Never later than usual: of a slice that is wrong as a whole nothing is learned.
    few = jnp.minimum(BELIEVED_AFTER, jnp.where(events.after > 0, events.after, BELIEVED_AFTER))
    lasting = (events.off_run + off >= few - 1) & moving
    back &= ~stuck
    accept = (flagged & moving & (believed | (off & lasting))) | back
    return Found(accept=accept, back=back, slice_off=off & ~lasting, stuck=stuck)


def learned(
    events: Events,
    probability: Array,
    innovation: Array,
    values: Array,
    mask: Array,
    found: Found,
    surprise: Array | float = 0.0,
    rate: Array | float = 0.0,
    level: tuple[Array, Array] | None = None,
) -> Events:
    """The counts after the slice; `probability` with what was decided, `level` as it was: mean, and variance of what is
    observed around it."""
    run = _run(events, probability, innovation, mask)
    same = mask & (values == events.value)
    moved = mask & ~same & ~jnp.isnan(events.value)
    clean = mask.any() & ~found.slice_off
    share = jnp.where(clean, 1 / jnp.minimum(events.known + 1, SURPRISE_MEMORY), 0)
    usual = events.surprise + share * (surprise - events.surprise)
    record = jnp.maximum(surprise, usual + RECORD_MEMORY * (events.record - usual))
    record = jnp.where(events.known > 0, record, surprise)
    repeats = jnp.where(mask, jnp.where(same, events.repeats + 1, 0), events.repeats)
    lasting = mask.any()
    believed, nearest = found.accept & mask, _nearest(events, run, innovation, mask)
    needed, fresh = _needed(events, rate, mask), probability - events.flagged_share
    support = jnp.where(believed, jnp.abs(run), events.support + (mask & (probability <= 0.5)))
    support = jnp.where(found.back, events.former_support, support)
    mean, square = (jnp.nan, 0.0) if level is None else level
    forgotten = found.back | (support > events.former_support)
    former = jnp.where(believed, jnp.where(events.support >= KNOWN_AFTER, mean, jnp.nan), events.former)
    former = jnp.where(found.back | (~believed & forgotten), jnp.nan, former)
    return Events(
        run=jnp.where(believed | _lasts(run, nearest, innovation, needed), 0, jnp.clip(run, -needed, needed)),
        nearest=jnp.where(believed, jnp.inf, nearest),
        support=jnp.minimum(support, MOST_SUPPORT),
        former=former,
        former_square=jnp.where(believed, square, events.former_square),
        former_support=jnp.where(believed & ~found.back, events.support, events.former_support),
        off_run=jnp.where(lasting, jnp.where(found.slice_off, events.off_run + 1, 0), events.off_run),
        value=jnp.where(mask, values, events.value),
        repeats=repeats,
        same=events.same + jnp.where(moved & ~_no_chance(events, events.repeats), events.repeats, 0),
        moves=events.moves + moved,
        longest=jnp.where(moved, jnp.maximum(events.longest, events.repeats), events.longest),
        stuck=jnp.where(mask, found.stuck, events.stuck),
        flagged_share=events.flagged_share + jnp.where(mask & clean, fresh, 0) / SHARE_MEMORY,
        flagged_for=_longer(events.flagged_for, probability > 0.5, mask),
        repeated_for=_longer(events.repeated_for, same, mask),
        surprise=usual,
        record=jnp.where(clean, record, events.record),
        known=events.known + clean,
        after=events.after,
    )


def _longer(age: Array, lasts: Array, mask: Array) -> Array:
    """Slices since it began; what is not observed goes on."""
    return jnp.where(jnp.where(mask, lasts, age > 0), age + 1, 0)


def news(events: Events, values: Array) -> Array:
    """What observations say about noise, in (0, 1] (n,)."""
    return jnp.where((values == events.value) & (values != 0), REPEATED, 1.0)


def dead(events: Events) -> Array:
    """Entries whose sensor gives the same number for ever, though it did not before (n,)."""
    lengths = jnp.maximum(events.longest, events.repeats)
    usual = _median(lengths, ~jnp.isnan(events.value))  # in films most entries repeat for long
    longest = jnp.maximum(events.longest, usual)
    long = events.repeats >= jnp.maximum(DEAD_AFTER, DEAD_FACTOR * (longest + 1))
    return long & _no_chance(events, events.repeats)


def further_back(learned_anew: Events, before: Events) -> Events:
    """What was learned anew from the recent slices, with counts from before them that depend on no scale."""
    counts = {name: getattr(before, name) for name in ("repeats", "same", "moves", "longest", "repeated_for")}
    flagged_for = jnp.where(learned_anew.flagged_for > 0, jnp.maximum(learned_anew.flagged_for, before.flagged_for), 0)
    return replace(learned_anew, **counts, flagged_for=flagged_for)


def _median(counts: Array, among: Array) -> Array:
    """The lower median of some counts (n,), 0 of none, bit by bit: sorting takes ten times as long."""
    least = (among.sum() + 1) // 2

    def with_bit(turn: int, below: Array) -> Array:
        tried = below | (1 << (30 - turn))
        return jnp.where((among & (counts < tried)).sum() < least, tried, below)

    median: Array = jax.lax.fori_loop(0, 31, with_bit, jnp.zeros((), counts.dtype))
    return median


@register_dataclass
@dataclass(frozen=True)
class Ages:
    """Slices since something began, this one included: what is flagged (n,), one number (n,), slices that are off."""

    flagged: Array
    repeated: Array
    off: Array


def ages(events: Events) -> Ages:
    """After the slice."""
    return Ages(events.flagged_for, events.repeated_for, events.off_run)


@dataclass(frozen=True)
class Named:
    """What is wrong in one slice beyond single entries, by name.

    Attributes:
        slice_off: Whether the slice as a whole is wrong: nothing was learned from it.
        rows: (mode, index) of rows most of whose observed entries are flagged.
        changed: Positions of entries whose change is believed to last, as a tuple of index arrays.
        dead: Positions of entries that give the same number for ever.
        slice_off_since: The first of the slices that are off, counted from 0; −1 where this one is not.
        rows_since: The slice in which each of the rows was first flagged.
        changed_since: The slice in which each of the changed entries was first flagged.
        dead_since: The first slice with the number that each of the dead entries gives.
    """

    slice_off: bool = False
    rows: tuple[tuple[int, int], ...] = ()
    changed: tuple[np.ndarray, ...] = ()
    dead: tuple[np.ndarray, ...] = ()
    slice_off_since: int = -1
    rows_since: tuple[int, ...] = ()
    changed_since: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    dead_since: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    def flags(self) -> int:
        """As `undertow.diagnostics.Flags`."""
        found = Flags.SLICE_OFF if self.slice_off else Flags.NONE
        found |= Flags.ROW_OFF if self.rows else Flags.NONE
        found |= Flags.LASTING_CHANGE if self.changed and self.changed[0].size else Flags.NONE
        found |= Flags.DEAD_SENSOR if self.dead and self.dead[0].size else Flags.NONE
        return found.value


def named(
    flagged: np.ndarray,
    off: bool,
    changed: np.ndarray,
    dead: np.ndarray,
    observed: np.ndarray,
    lasting: Ages,
    now: int,
) -> Named:
    """By position what was found in slice `now`; arrays are flat or have its shape.

    Ages may still be on the device: they are looked at only where something is wrong.
    """
    shape = observed.shape
    changed, dead = changed.reshape(shape), dead.reshape(shape)
    rows = () if off else rows_off(flagged, observed)
    nothing = np.broadcast_to(np.int32(0), shape)

    def since_of(age: Any, needed: Any) -> np.ndarray:
        return now - np.maximum(np.asarray(age).reshape(shape), 1) + 1 if needed else nothing

    since = since_of(lasting.flagged, rows or changed.any())
    repeated = since_of(lasting.repeated, dead.any())
    where = [np.moveaxis(flagged, mode, 0)[index] for mode, index in rows]
    began = [np.moveaxis(since, mode, 0)[index] for mode, index in rows]
    return Named(
        slice_off=off,
        rows=rows,
        changed=np.nonzero(changed),
        dead=np.nonzero(dead),
        slice_off_since=now - max(int(lasting.off), 1) + 1 if off else -1,
        rows_since=tuple(int(np.median(one[bad])) for one, bad in zip(began, where, strict=True)),
        changed_since=since[changed],
        dead_since=repeated[dead] - 1,
    )


def rows_off(flagged: np.ndarray, observed: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Rows of every mode most of whose observed entries are flagged, unless that is so in all of them."""
    if flagged.ndim < 2 or not flagged.any():
        return ()
    found = []
    for mode in range(flagged.ndim):
        others = tuple(axis for axis in range(flagged.ndim) if axis != mode)
        bad, seen = flagged.sum(axis=others), observed.sum(axis=others)
        off = (seen >= FEWEST_ENTRIES) & (bad > OFF_FRACTION * seen)
        if off.any() and not off[seen >= FEWEST_ENTRIES].all():
            found += [(mode, int(index)) for index in np.flatnonzero(off)]
    return tuple(found)
