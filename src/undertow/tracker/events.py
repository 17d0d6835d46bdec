"""What lasts: entries that have changed for good, slices that are wrong as a whole, sensors that are dead."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import register_dataclass

from undertow.model.flags import Flags

BELIEVED_AFTER, CHANCE = 4, 1e-3
"""Flagged slices in a row, all on the same side, after which a change is believed to last; more where outliers are so
many that chance alone would give such a row in more than this fraction of the slices."""
OFF_FRACTION = 0.5
"""A slice is wrong as a whole if more than this fraction of its observed entries is flagged."""
FEWEST_ENTRIES = 4
"""Observed entries from which on that can be said."""
SURPRISING, LEAST_SURPRISE = 8.0, 0.7
"""A slice is wrong as a whole if it lies farther from what the past predicts than usual, by this many times the usual
variation of that distance and by so much (both of its logarithm)."""
KNOWN_AFTER, SURPRISE_MEMORY = 8, 30.0
"""Slices from which on that is known, and over which it is averaged."""
DEAD_AFTER, DEAD_FACTOR = 12, 5
"""A sensor is dead if it repeats one number this many times, and this many times longer than ever before."""


@register_dataclass
@dataclass(frozen=True)
class Events:
    """Counts per entry (n,), of observed slices.

    Attributes:
        run: Flagged slices in a row; negative where they lie below what is expected.
        off_run: Slices in a row that were wrong as a whole.
        value: The last observed.
        repeats: How often in a row it came.
        longest: The longest such row before this one; −1 before the first change.
        surprise: Usual log root mean square of what the past did not predict, in standard deviations.
        surprise_spread: Usual distance from that.
        known: Slices that these come from.
    """

    run: Array
    off_run: Array
    value: Array
    repeats: Array
    longest: Array
    surprise: Array
    surprise_spread: Array
    known: Array


@register_dataclass
@dataclass(frozen=True)
class Found:
    """Decisions about one slice: entries whose change is believed (n,), and whether the slice is wrong as a whole."""

    accept: Array
    slice_off: Array


def init(entries: int) -> Events:
    """Nothing seen."""
    zero = jnp.zeros(entries, jnp.int32)
    number = jnp.zeros(())
    return Events(
        zero,
        number.astype(jnp.int32),
        jnp.full(entries, jnp.nan, jnp.float32),
        zero,
        zero - 1,
        number,
        number + 0.5,
        number,
    )


def _run(events: Events, probability: Array, innovation: Array, mask: Array) -> Array:
    side = jnp.where(innovation > 0, 1, -1)
    flagged = mask & (probability > 0.5)
    longer = jnp.where(jnp.sign(events.run) == side, events.run + side, side)
    return jnp.where(flagged, longer, jnp.where(mask, 0, events.run))


def _needed(rate: Array | float, mask: Array) -> Array:
    """Flagged slices in a row that are more than chance."""
    likely = jnp.log(CHANCE / jnp.maximum(mask.sum(), 1)) / jnp.log(jnp.clip(rate, 1e-9, 0.9))
    return jnp.maximum(jnp.ceil(likely), BELIEVED_AFTER).astype(jnp.int32)


def _surprising(events: Events, surprise: Array | float, mask: Array) -> Array:
    """Whether a slice lies much farther from what the past predicts than slices usually do."""
    limit = events.surprise + jnp.maximum(SURPRISING * events.surprise_spread, LEAST_SURPRISE)
    return (surprise > limit) & (events.known >= KNOWN_AFTER) & (mask.sum() >= FEWEST_ENTRIES)


def _off(probability: Array, mask: Array) -> Array:
    observed, flagged = mask.sum(), (mask & (probability > 0.5)).sum()
    return (flagged > OFF_FRACTION * observed) & (observed >= FEWEST_ENTRIES)


def decide(
    events: Events,
    probability: Array,
    innovation: Array,
    mask: Array,
    surprise: Array | float = 0.0,
    rate: Array | float = 0.0,
) -> Found:
    """What to believe of this slice; `rate` is the usual fraction of outliers."""
    off = _off(probability, mask) | _surprising(events, surprise, mask)
    believed = jnp.abs(_run(events, probability, innovation, mask)) >= _needed(rate, mask)
    believed = believed & (events.repeats < 2)  # a sensor that is stuck has not changed: it is dead
    moving = (mask & (events.repeats == 0)).any()  # a stream that repeats one slice has not changed either
    lasting = (events.off_run + off >= BELIEVED_AFTER - 1) & moving
    return Found(accept=mask & (probability > 0.5) & (believed | (off & lasting)), slice_off=off & ~lasting)


def learned(
    events: Events,
    probability: Array,
    innovation: Array,
    values: Array,
    mask: Array,
    slice_off: Array,
    surprise: Array | float = 0.0,
    rate: Array | float = 0.0,
) -> Events:
    """The counts after the slice."""
    run = _run(events, probability, innovation, mask)
    same = mask & (values == events.value)
    moved = mask & ~same & ~jnp.isnan(events.value)
    clean = mask.any() & ~slice_off
    share = jnp.where(clean, 1 / jnp.minimum(events.known + 1, SURPRISE_MEMORY), 0)
    away = jnp.clip(surprise - events.surprise, -3 * events.surprise_spread, 3 * events.surprise_spread)
    away = jnp.where(events.known == 0, surprise, away)
    return Events(
        run=jnp.where(jnp.abs(run) >= _needed(rate, mask), 0, run),
        off_run=jnp.where(mask.any(), jnp.where(slice_off, events.off_run + 1, 0), events.off_run),
        value=jnp.where(mask, values, events.value),
        repeats=jnp.where(mask, jnp.where(same, events.repeats + 1, 0), events.repeats),
        longest=jnp.where(moved, jnp.maximum(events.longest, events.repeats), events.longest),
        surprise=events.surprise + share * away,
        surprise_spread=jnp.where(
            events.known > 0,
            events.surprise_spread + share * (jnp.abs(away) - events.surprise_spread),
            events.surprise_spread,
        ),
        known=events.known + clean,
    )


def dead(events: Events) -> Array:
    """Entries whose sensor gives the same number for ever, though it did not before (n,)."""
    moved = events.longest >= 0
    return moved & (events.repeats >= DEAD_AFTER) & (events.repeats >= DEAD_FACTOR * (events.longest + 1))


@dataclass(frozen=True)
class Named:
    """What is wrong in one slice beyond single entries, by name.

    Attributes:
        slice_off: Whether the slice as a whole is wrong: nothing was learned from it.
        rows: (mode, index) of rows most of whose observed entries are flagged.
        changed: Positions of entries whose change is believed to last, as a tuple of index arrays.
        dead: Positions of entries that give the same number for ever.
    """

    slice_off: bool = False
    rows: tuple[tuple[int, int], ...] = ()
    changed: tuple[np.ndarray, ...] = ()
    dead: tuple[np.ndarray, ...] = ()

    def flags(self) -> int:
        """As `undertow.diagnostics.Flags`."""
        found = Flags.SLICE_OFF if self.slice_off else Flags.NONE
        found |= Flags.ROW_OFF if self.rows else Flags.NONE
        found |= Flags.LASTING_CHANGE if self.changed and self.changed[0].size else Flags.NONE
        found |= Flags.DEAD_SENSOR if self.dead and self.dead[0].size else Flags.NONE
        return found.value


def named(flagged: np.ndarray, off: bool, changed: np.ndarray, dead: np.ndarray, observed: np.ndarray) -> Named:
    """By position what was found in one slice; arrays are flat or have its shape."""
    return Named(
        slice_off=off,
        rows=() if off else rows_off(flagged, observed),
        changed=np.nonzero(changed.reshape(observed.shape)),
        dead=np.nonzero(dead.reshape(observed.shape)),
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
